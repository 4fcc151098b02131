"""The peers, one a file, each with `run(case, turns)`: prepares, and takes turns until the end."""
