"""What only JAX or PyTorch runs, and is skipped on the backend of this run."""

import os
import subprocess
import sys

import keras
import pytest

FILES = [("jax", "test_cuda.py"), ("jax", "test_jax.py"), ("torch", "test_pytorch.py")]


@pytest.mark.slow
@pytest.mark.parametrize("backend, file", FILES)
def test_on_another_backend(backend, file):
    if keras.backend.backend() == backend:
        pytest.skip("runs here already")
    pytest.importorskip(backend)
    command = [sys.executable, "-m", "pytest", "-v", "-n", "0", "-m", "slow or not slow"]
    done = subprocess.run(
        [*command, os.path.join(os.path.dirname(__file__), file)],
        env={**os.environ, "KERAS_BACKEND": backend},
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
    )
    print(done.stdout)
    assert done.returncode == 0 and " passed" in done.stdout
