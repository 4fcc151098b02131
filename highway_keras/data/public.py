"""Public data sets: scikit-learn's bundled digits, and those of TensorFlow Datasets (TFDS).

Each reader returns a list of one or two pairs `(images, labels)`, to train on and to test on, and
the class names.
"""

import contextlib
import os
import sys

import numpy as np

from highway_keras.data.dataset import DataError
from highway_keras.util.extras import extra

# A name of TFDS, and one file of its download: TFDS can prepare the set if the server answers.
DOWNLOADS = {
    "mnist": "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz",
    "fashion_mnist": "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
    "train-images-idx3-ubyte.gz",
    "cifar10": "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "cifar100": "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
}
NAMES = ("digits", *DOWNLOADS)


def read_digits():
    """Read scikit-learn's 1,797 handwritten digits of 8x8 pixels: real, and without a download."""
    with extra("train"):
        from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.round(digits.images * (255 / 16)).astype("uint8")
    return [(images, digits.target)], digits.target_names


def read_public(name, data_dir=None):
    """Read the prepared copy of a public data set, or download and prepare the set first.

    Without a prepared copy or a network connection, this fails within seconds, where TFDS itself
    would retry for minutes.
    """
    with extra("cpu"):
        import tensorflow  # noqa: F401 (TensorFlow Datasets reads with it)
    with extra("train"):
        import requests
        import tensorflow_datasets as tfds

    data_dir = os.path.expanduser(data_dir or os.environ.get("TFDS_DATA_DIR") or "") or None
    builder = tfds.builder(name, data_dir=data_dir)
    if not builder.is_prepared():
        try:
            requests.head(DOWNLOADS[name], timeout=4)
        except requests.RequestException as error:
            raise DataError(
                f"There is no prepared copy of '{name}' in {builder.data_dir}, and "
                f"{DOWNLOADS[name]} does not answer. Give the directory of a copy as `data_dir` "
                "or in TFDS_DATA_DIR, or use 'digits' or a .npz file."
            ) from error
        with contextlib.redirect_stdout(sys.stderr):  # TFDS announces the download on stdout
            builder.download_and_prepare()
    parts = builder.as_dataset(split=["train", "test"], batch_size=-1, as_supervised=True)
    arrays = [(images.numpy(), labels.numpy()) for images, labels in parts]
    return arrays, builder.info.features["label"].names
