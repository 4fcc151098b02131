"""What proves a speed: peers side by side in one run, printed as ratios.

Run from a clone, with the repository as working directory; none of this is installed.

- `python -m benchmarks`: a training or prediction step beside what others write (`cases.py`); a
  peer is a module in `peers/` with a function `run(case, turns)`.
- `python -m benchmarks.epoch`: an epoch of the trainer beside plain `model.fit`.
- `python -m benchmarks.serving FILE`: the export formats beside Keras `predict`.
- `python -m benchmarks.search`: the population search beside stock keras-tuner.
- `python -m benchmarks.lesions FILE`: all lesions beside one evaluation.

All but the last run every peer in a process of its own, and these take turns (`turns.py`), so that
a machine that slows down slows all of them.
"""
