"""What proves a speed: peers side by side in one run, printed as ratios.

Run from a clone, with the repository as the working directory; none of this is installed.

- `python -m benchmarks`: a training or prediction step next to what others write (`cases.py`, and
  `peers/` with what they write).
- `python -m benchmarks.epoch`: an epoch of the trainer next to plain `model.fit`.
- `python -m benchmarks.serving FILE`: the export formats next to Keras `predict`.
- `python -m benchmarks.search`: the population search next to stock keras-tuner.
- `python -m benchmarks.lesions FILE`: all lesions next to one evaluation.
- `python -m benchmarks.server FILE`: an export behind KServe's model server, under load.
- `python -m benchmarks.transfer`: what fine-tuning reaches on few images, four ways.

The first five run every peer in its own process, and the processes take turns (`turns.py`), so a
machine that slows down slows all of them. In the search, half of the peer's trials run before ours
and half after. `rows.py` prints what was measured and writes it to `--out`, case by case.
"""
