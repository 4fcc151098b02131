"""Import Keras and its backend without their chatter."""

import contextlib
import importlib
import logging
import os
import sys
import warnings

from highway_keras.util import checks
from highway_keras.util.extras import BACKENDS, missing
from highway_keras.util.messages import Notice, printable


def library(module):
    """Return a module of the library, and import Keras for it without the backend's chatter."""
    warnings.simplefilter("ignore")  # meant for those who write Python
    warnings.filterwarnings("always", category=Notice)
    warnings.showwarning = _show_warning
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # "triggered tf.function retracing"
    if chosen := os.environ.get("KERAS_BACKEND"):
        checks.one_of("KERAS_BACKEND", chosen, BACKENDS)
    with silent_libraries():
        import highway_keras

        try:
            if not hasattr(highway_keras, "Highway"):  # not executed: see `highway_keras_command`
                highway_keras.__spec__.loader.exec_module(highway_keras)
        except ModuleNotFoundError as error:
            if error.name not in BACKENDS:
                raise
            raise ImportError(
                f"Keras runs on {error.name}. {missing(error.name, BACKENDS[error.name])} Another "
                "backend is chosen by KERAS_BACKEND: tensorflow, jax or torch."
            ) from error
        except AttributeError as error:  # from a module whose import failed earlier
            raise ImportError(
                f"Keras and its backend cannot be imported, as with too little memory: {error}."
            ) from error
    return importlib.import_module(f"highway_keras.{module}")


def _show_warning(message, *where, **others):
    print(f"highway-keras: {printable(message)}", file=sys.stderr)


@contextlib.contextmanager
def silent_libraries():
    """Drop what native libraries write to the descriptor of stderr; hold our notices until then."""
    stderr, show, held = os.dup(2), warnings.showwarning, []
    warnings.showwarning = lambda *warning, **others: held.append((warning, others))
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        warnings.showwarning = show
        for warning, others in held:
            show(*warning, **others)
