"""Keras and its backend, imported without their chatter."""

import contextlib
import os
import warnings


def import_backend():
    """Import Keras without the lines that TensorFlow's libraries print while they load."""
    warnings.simplefilter("ignore")  # meant for those who write Python
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with silent_libraries():
        import highway_keras

        if not hasattr(highway_keras, "Highway"):  # see `highway_keras_command`
            highway_keras.__spec__.loader.exec_module(highway_keras)


@contextlib.contextmanager
def silent_libraries():
    """Drop what native libraries write to the descriptor of stderr."""
    stderr = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
