"""The data sets with names: the embedded digits, and those of TensorFlow Datasets (TFDS).

Each reader returns a list of `(images, labels)`, to train on and, if they are apart, to test on,
and the names of the classes.
"""

import contextlib
import os

import numpy as np

from highway_keras.data.dataset import DataError
from highway_keras.extras import command, extra
from highway_keras.messages import reason

# One file of each download: a download can begin if the server answers for it.
PUBLIC_URLS = {
    "mnist": "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz",
    "fashion_mnist": "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
    "train-images-idx3-ubyte.gz",
    "cifar10": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "cifar100": "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
}
NAMES = ("digits", *PUBLIC_URLS)


def read_digits():
    """Read scikit-learn's 1,797 handwritten digits of 8x8 pixels: real, and without a download."""
    with extra("train"):
        from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.round(digits.images * (255 / 16)).astype("uint8")[..., None]
    return [(images, digits.target.astype("int64"))], tuple(map(str, digits.target_names))


def read_public(name, data_dir=None):
    """Read a public data set: the prepared copy, else a download.

    Without a prepared copy and without a network, it fails within seconds; TFDS itself retries for
    minutes.
    """
    try:
        import tensorflow  # noqa: F401  # TFDS imports without it, and fails only when it reads

        with extra("train"):
            import requests
            import tensorflow_datasets as tfds
    except ImportError as error:
        raise DataError(
            f"'{name}' needs TensorFlow and tensorflow-datasets: {reason(error)}. "
            f"Install the extra `cpu` ({command('cpu')}), give the path of a .npz with x_train, "
            "y_train, x_test, y_test, or use 'digits'."
        ) from error
    data_dir = data_dir or os.environ.get("TFDS_DATA_DIR") or None
    failure = f"Cannot read '{name}' from {data_dir or 'the default TFDS directory'}"
    with _explained(failure):
        builder = tfds.builder(name, data_dir=data_dir)
    if not os.path.exists(os.path.join(builder.data_dir, "dataset_info.json")):
        url = PUBLIC_URLS[name]
        try:
            requests.head(url, timeout=4)
        except OSError as error:  # the base of every error of `requests`
            raise DataError(
                f"No prepared copy of '{name}' in {builder.data_dir}, and {url} does not answer. "
                "Give a directory that has one as `data_dir` (or in TFDS_DATA_DIR), or go on "
                "without a network: 'digits', or the path of a .npz with your own images."
            ) from error
        with _explained(f"Downloading '{name}' to {builder.data_dir} failed"):
            builder.download_and_prepare()
    with _explained(failure):
        parts = builder.as_dataset(split=["train", "test"], batch_size=-1, as_supervised=True)
        arrays = [(images.numpy(), labels.numpy()) for images, labels in parts]
    return arrays, tuple(builder.info.features["label"].names)


@contextlib.contextmanager
def _explained(failure):
    """Turn whatever the disk, the network, protocol buffers or TensorFlow raise into one line."""
    try:
        yield
    except Exception as error:
        raise DataError(
            f"{failure}: {reason(error)[:200]}. Remove what is there to prepare it anew, give "
            "another directory as `data_dir`, or use 'digits'."
        ) from error
