"""Arguments that several commands take, and how commands print."""

import contextlib
import importlib
import json
import logging
import os
import warnings

from highway_keras.util import checks
from highway_keras.util.extras import BACKENDS, missing
from highway_keras.util.messages import Notice, printable


def library(module):
    """Return a module of the library; Keras and its backend are imported without their chatter."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # "triggered tf.function retracing"
    warnings.simplefilter("ignore")  # meant for those who write Python
    warnings.simplefilter("always", Notice)
    try:
        with _silent_stderr():
            package = importlib.import_module("highway_keras")
            if not hasattr(package, "Highway"):  # not executed: see `highway_keras_command`
                package.__spec__.loader.exec_module(package)
            return importlib.import_module(f"highway_keras.{module}")
    except ModuleNotFoundError as error:
        if error.name not in BACKENDS:
            raise
        raise ImportError(
            f"Keras runs on {error.name}. {missing(error.name, BACKENDS[error.name])} Another "
            "backend is chosen by KERAS_BACKEND: tensorflow, jax or torch."
        ) from error


@contextlib.contextmanager
def _silent_stderr():
    """Drop what native libraries write to the descriptor of stderr."""
    stderr = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def add_network(parser):
    """Add the arguments that name a trained network."""
    parser.add_argument(
        "network",
        metavar="RUN_OR_FILE",
        help="the folder of a run, a .keras file, or with --weights a name that `list` shows",
    )
    parser.add_argument(
        "--weights",
        metavar="DATASET",
        help="the included weights for that data set, which `list` shows, such as mnist",
    )


def add_data(parser, default):
    """Add the arguments that name a data set."""
    parser.add_argument(
        "--dataset",
        metavar="NAME_OR_PATH",
        help="a name such as digits, mnist or cifar10, an .npz file, or a folder with a folder of "
        f"pictures for each class (default: {default})",
    )
    add_data_dir(parser)


def add_data_dir(parser):
    data_help = "TensorFlow Datasets' folder (default: TFDS_DATA_DIR, else ~/tensorflow_datasets)"
    parser.add_argument("--data-dir", metavar="FOLDER", help=data_help)


def add_limit(parser, default=None):
    about = f"use N training images (default: {default or 'all'})"
    parser.add_argument("--limit", metavar="N", type=int, default=default, help=about)


def add_dtype_policy(parser):
    policies = ["float32", "mixed_bfloat16"]
    parser.add_argument("--dtype-policy", choices=policies, help="(default: the recipe's)")


def add_population(parser):
    parser.add_argument(
        "--population",
        metavar="N",
        type=int,
        help="trials to train at once (default: all on a GPU, else 10 for each CPU core)",
    )


def given(options, *names):
    """Return the options of some names that were given, a dictionary."""
    return checks.given(**{name: getattr(options, name) for name in names})


def load_network(options):
    """Return the `models.Trained` that `add_network` names."""
    models = library("models")
    if options.weights is None:
        if options.network in models.list_models():
            trained = ", ".join(models.get(options.network).weights) or "none"
            raise ValueError(
                f"{options.network} names an untrained network. Add --weights, one of: {trained}; "
                "or name the folder of a run."
            )
        return models.load(options.network)
    return models.load(models.get(options.network).weights_file(options.weights))


def dataset_of(trained, options):
    """Return `--dataset`, or the data set that a network was trained on."""
    source = options.dataset or trained.dataset
    if source is None:
        raise ValueError(f"{trained.path} does not name its data set: pass --dataset.")
    return source


def load_images(trained, options, **settings):
    """Return the `data.Dataset` of `dataset_of`, whose shape and classes are the network's."""
    source, shape = dataset_of(trained, options), trained.model.input_shape[1:]
    loading = {"data_dir": options.data_dir, "input_shape": shape, "validation": 0.0, **settings}
    images = library("data").load(source, **loading)
    if images.input_shape != shape:
        raise ValueError(
            f"The network takes images of shape {shape}. Received: --dataset {source} with shape "
            f"{images.input_shape}."
        )
    numbers = tuple(map(str, range(images.classes)))  # stand in for names
    both = {trained.class_names, tuple(images.class_names)} - {numbers}
    if len(trained.class_names) != images.classes or len(both) > 1:
        raise ValueError(
            f"The network's classes are {', '.join(trained.class_names)}. Received: --dataset "
            f"{source} with {', '.join(images.class_names)}."
        )
    return images


def print_table(rows, right=()):
    """Print rows of texts in columns; those with an index in `right` are aligned to the right."""
    rows = [[printable(text) for text in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        line = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(cells)]
        print("  ".join(line).rstrip())


def print_saved(path):
    """Print the path of a result."""
    print(f"saved {printable(path)}")


def print_json(content):
    """Print `content` as JSON in ASCII, which every terminal and pipe can take."""
    print(json.dumps(content, indent=2))
