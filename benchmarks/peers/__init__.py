"""The peers, one per file, each with `run(case, turns)`: prepare, then take turns to the end."""
