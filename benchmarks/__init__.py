"""Measurements of speed: peers run side by side, and their ratios are printed.

Run from a clone, with the repository as the working directory; none of this is installed.
`docs/benchmarks.md` lists the commands. Peers have a process each, and the processes take turns
(`turns.py`), so a machine that slows down slows all of them; in the search, half of the peer's
trials run before ours and half after. `measurements.py` prints what was measured and writes it to
`--out`.
"""
