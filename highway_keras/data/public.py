"""Data sets loaded by name: the embedded digits, and those of TensorFlow Datasets (TFDS).

Each reader returns a list of one or two pairs `(images, labels)`, to train on and to test on, and
the class names.
"""

import contextlib
import importlib.util
import os
import sys

import numpy as np

from highway_keras.data.dataset import DataError
from highway_keras.util.extras import command, extra
from highway_keras.util.files import BusyError, folder_lock, is_transient
from highway_keras.util.messages import reason

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
    """Read the prepared copy of a public data set, or download and prepare it first.

    Only preparing needs TensorFlow. Without a prepared copy or a network connection, this fails
    within seconds, where TFDS itself would retry for minutes.
    """
    with extra("train"):
        import requests
        import tensorflow_datasets as tfds
    if not hasattr(tfds, "builder"):  # it logs the errors of its own import, and goes on
        raise DataError(
            "TensorFlow Datasets cannot be imported, as beside a TensorFlow before 2.20, whose "
            "protobuf is too old: upgrade TensorFlow."
        )
    instead = (
        "Give a directory that has one as `data_dir` (or in TFDS_DATA_DIR), or go on without: "
        "'digits', or the path of a .npz with your own images."
    )
    tensorflow = importlib.util.find_spec("tensorflow")
    data_dir = os.path.expanduser(data_dir or os.environ.get("TFDS_DATA_DIR") or "") or None
    failure = f"Cannot read '{name}' from {data_dir or 'the default TFDS directory'}"
    with _explained(failure):
        builder = tfds.builder(name, data_dir=data_dir)
    if not os.path.exists(os.path.join(builder.data_dir, "dataset_info.json")):
        missing, url = f"No prepared copy of '{name}' in {builder.data_dir}", PUBLIC_URLS[name]
        if not tensorflow:
            raise DataError(
                f"{missing}, and TensorFlow, which prepares one, is missing: {command('cpu')}. "
                f"{instead}"
            )
        try:
            requests.head(url, timeout=4)
        except OSError as error:  # the base of every error of `requests`
            raise DataError(f"{missing}, and {url} does not answer. {instead}") from error
        folder, lock = os.path.dirname(builder.data_dir), contextlib.nullcontext()
        with _explained(f"Downloading '{name}' to {builder.data_dir} failed"):
            if "://" not in folder:
                os.makedirs(folder, exist_ok=True)
                lock = folder_lock(folder, seconds=600)
            with lock:  # anew: another process may have prepared it meanwhile
                builder = tfds.builder(name, data_dir=data_dir)
                with contextlib.redirect_stdout(sys.stderr):  # where TFDS announces it
                    builder.download_and_prepare()
    with _explained(failure):
        if tensorflow:
            parts = builder.as_dataset(split=["train", "test"], batch_size=-1, as_supervised=True)
            arrays = [(images.numpy(), labels.numpy()) for images, labels in parts]
        else:
            arrays = [read_records(builder, split) for split in ("train", "test")]
    return arrays, tuple(builder.info.features["label"].names)


def read_records(builder, split):
    """Read images and labels of a prepared data set in its order, without TensorFlow.

    A TFRecord file is a sequence of records: length (8 bytes, the lowest first), checksum of the
    length (4), a `tf.train.Example`, its checksum (4).
    """
    examples = []
    for path in builder.info.splits[split].filepaths:
        with open(path, "rb") as file:
            while head := file.read(12):
                record = file.read(int.from_bytes(head[:8], "little"))
                examples.append(builder.info.features.deserialize_example_np(record))
                file.read(4)
    return tuple(np.stack([example[key] for example in examples]) for key in ("image", "label"))


@contextlib.contextmanager
def _explained(failure):
    """Turn what disk, network, protocol buffers or TensorFlow raise into a one-line `DataError`."""
    try:
        yield
    except (BusyError, MemoryError):
        raise
    except Exception as error:
        remedy = "Give another directory as `data_dir`, or use 'digits'"
        if not is_transient(error):
            remedy += ", or remove what is there to prepare it anew"
        raise DataError(f"{failure}: {reason(error)[:200]}. {remedy}.") from error
