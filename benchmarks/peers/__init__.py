"""The peers, one a file, each with `run(case, turns)`."""
