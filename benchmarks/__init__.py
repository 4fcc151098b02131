"""Measurements of speed beside peers, and two comparisons of accuracies.

Run from a clone; `docs/benchmarks.md` lists the commands. A peer is a generator function in a
process of its own. The processes take turns (`turns.py`), so a machine that slows down slows all.
`measurements.py` prints what was measured and writes it to `--out`.
"""
