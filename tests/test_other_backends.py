"""On JAX and PyTorch: what only they run, trainings, and the weights of the zoo."""

import os
import subprocess
import sys

import keras
import pytest

TRAINING = "raises or divergence or weights_in_the_loss"
WEIGHTS = "compute and (highway-100 or mnist-highway-16 or highway-a)"
RUNS = [  # the backend, a file, and which of its tests
    ("jax", "test_cuda.py", ""),
    ("jax", "test_highway_stack.py", "exports"),
    ("jax", "test_training.py", TRAINING),
    ("jax", "test_weights.py", WEIGHTS),
    ("torch", "test_pytorch.py", ""),
    ("torch", "test_run_folder.py", "crash"),
    ("torch", "test_training.py", TRAINING),
    ("torch", "test_weights.py", WEIGHTS),
]


@pytest.mark.slow
@pytest.mark.parametrize("backend, file, chosen", RUNS)
def test_on_another_backend(backend, file, chosen):
    if keras.backend.backend() == backend:
        pytest.skip("runs here already")
    pytest.importorskip(backend)
    command = [sys.executable, "-m", "pytest", "-v", "-n", "0", "-m", "slow or not slow"]
    command += ["-k", chosen]
    done = subprocess.run(
        [*command, os.path.join(os.path.dirname(__file__), file)],
        env={**os.environ, "KERAS_BACKEND": backend},
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
    )
    print(done.stdout)
    assert done.returncode == 0 and " passed" in done.stdout
