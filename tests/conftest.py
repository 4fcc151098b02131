"""Settings of every test: quiet and small backends, fixed seeds, our own warnings as errors."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# pytest-xdist starts a worker for every core: more threads would only wait for each other.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import keras
import pytest
from helpers import read_noise

from highway_keras import data
from highway_keras.data import loading
from highway_keras.models import registry
from highway_keras.training import run


def pytest_configure(config):
    # The module that a warning points at: ours, its rooms, or our tests; not Keras's own.
    for module in ("highway_keras", "test_"):
        config.addinivalue_line("filterwarnings", f"error:::{module}")
    config.addinivalue_line("filterwarnings", "ignore:__array__ impl:DeprecationWarning:keras")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    try:
        return (yield)
    except Exception as error:
        if "only supports the NHWC tensor format on the CPU" not in str(error):
            raise
        pytest.skip("TensorFlow does not convolve channels first on this processor")


@pytest.fixture(autouse=True)
def registered_networks(monkeypatch):
    """Networks that a test registers are gone after it."""
    monkeypatch.setattr(registry, "CARDS", dict(registry.CARDS))


@pytest.fixture(scope="session", autouse=True)
def no_pictures():
    """Keep runs from drawing pictures, which takes as long as a small training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "write_picture", lambda *arguments: None)
        yield


@pytest.fixture(scope="session")
def digits():
    return data.load("digits")


@pytest.fixture(scope="module")
def noise():
    """Noise in place of the images of public data sets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "read_public", read_noise)
        yield


@pytest.fixture(scope="module")
def untraced():
    """Run TensorFlow eagerly: tracing would take longer than the few steps of these trainings."""
    if keras.backend.backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(autouse=True)
def fixed_seed():
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy("float32")
