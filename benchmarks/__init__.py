"""What proves a speed: peers side by side in one run, printed as ratios.

`python -m benchmarks` or `highway-keras benchmark` runs them. Every peer is a process
of its own (`worker.py`), so that back ends do not share memory or threads, and all take turns
(`run.py`), so that a machine that slows down slows all of them. A peer is a module in `peers/` with
a function `prepare(case)` that returns a function running that many steps.
"""
