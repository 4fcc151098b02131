"""scikit-learn's embedded 8x8 handwritten digits: real images without a download."""

import numpy as np

from highway_keras.data.dataset import hold_out
from highway_keras.extras import extra

TEST_FRACTION = 0.2


def read_digits():
    """Return `x_train, y_train, x_test, y_test, class_names` of the 1,797 digits."""
    with extra("train"):
        from sklearn.datasets import load_digits

    digits = load_digits()
    images = np.round(digits.images * (255 / 16)).astype("uint8")[..., None]
    labels = digits.target.astype("int64")
    train, test = hold_out(labels, TEST_FRACTION)
    class_names = tuple(str(digit) for digit in digits.target_names)
    return images[train], labels[train], images[test], labels[test], class_names
