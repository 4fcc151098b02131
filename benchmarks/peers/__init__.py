"""The peers, one per file, each with `run(case, turns)`: prepares, then takes turns to the end."""
