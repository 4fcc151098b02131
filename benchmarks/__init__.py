"""Measurements of speed beside peers, and two comparisons of accuracies.

Run from a clone; `results/README.md` lists the commands. A peer is a generator function in a
process of its own. The processes take turns (`turns.py`), so a machine that slows down slows all.
`measurements.py` prints what was measured and writes it to `--out`.
"""

import os

# Before a library reads it, in this process and in those of the peers
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Several processes share a GPU.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
# Or a first step would be one that compiles only where the disk has no earlier one.
os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
