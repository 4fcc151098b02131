"""The public data sets, from TensorFlow Datasets (TFDS): the prepared copy, else a download."""

import contextlib
import os
import threading

from highway_keras.data.dataset import DataError
from highway_keras.extras import command, extra

# One file of each download: a download can begin if the server answers for it.
PUBLIC_URLS = {
    "mnist": "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz",
    "fashion_mnist": "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
    "train-images-idx3-ubyte.gz",
    "cifar10": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "cifar100": "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
}


def read_public(name, data_dir=None):
    """Return `x_train, y_train, x_test, y_test, class_names` of a public data set.

    Without a prepared copy and without a network, it fails within seconds.
    """
    tfds = _import_tfds(name)
    data_dir = data_dir or os.environ.get("TFDS_DATA_DIR") or None
    cannot_read = f"Cannot read '{name}' from {data_dir or 'the default TFDS directory'}"
    remedy = "Remove that copy to prepare it anew, or give another directory as `data_dir`."
    with _explained(cannot_read, remedy):
        builder = tfds.builder(name, data_dir=data_dir)
    if not os.path.exists(os.path.join(builder.data_dir, "dataset_info.json")):
        _download(builder)
    with _explained(cannot_read, remedy):
        parts = builder.as_dataset(split=["train", "test"], batch_size=-1, as_supervised=True)
        arrays = [array.numpy() for part in parts for array in part]
    return *arrays, tuple(builder.info.features["label"].names)


def _import_tfds(name):
    try:
        import tensorflow  # noqa: F401  # TFDS imports without it, and fails only when it reads

        with extra("train"):
            import tensorflow_datasets as tfds
    except ImportError as error:
        raise DataError(
            f"'{name}' needs TensorFlow and tensorflow-datasets: {_one_line(error)} "
            f"Install the extra `cpu` ({command('cpu')}), give the path of a .npz with x_train, "
            "y_train, x_test, y_test, or use 'digits'."
        ) from error
    return tfds


def _download(builder):
    url = PUBLIC_URLS[builder.name]
    if not _answers(url):
        raise DataError(
            f"No prepared copy of '{builder.name}' in {builder.data_dir}, and {url} does not "
            "answer. Give a directory that has one as `data_dir` (or in TFDS_DATA_DIR), or go on "
            "without a network: 'digits', or the path of a .npz with your own images."
        )
    failure = f"Downloading '{builder.name}' to {builder.data_dir} failed"
    remedy = "Try again, give a directory that has it as `data_dir`, or use 'digits'."
    with _explained(failure, remedy):
        builder.download_and_prepare()


@contextlib.contextmanager
def _explained(failure, remedy):
    """Turn whatever the disk, the network, protocol buffers or TensorFlow raise into one line."""
    try:
        yield
    except Exception as error:
        raise DataError(f"{failure}: {_one_line(error)} {remedy}") from error


def _answers(url, seconds=4.0):
    """Return whether a server answers anything at `url` within `seconds`.

    TFDS itself retries for minutes before it gives up. The request goes through `requests`, as
    TFDS's does, so proxies and certificates are the same; the thread bounds the name lookup,
    which no timeout of `requests` covers.
    """
    with extra("train"):
        import requests

    answered = threading.Event()

    def ask():
        with contextlib.suppress(OSError):  # the base of every error of `requests`
            requests.head(url, timeout=seconds)
            answered.set()

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return answered.is_set()


def _one_line(error):
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{lines[0].strip().rstrip('.')[:200]}."
