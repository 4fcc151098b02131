"""The peers, one per file, each with `run(case, turns)`: it prepares, and takes turns to the end."""
