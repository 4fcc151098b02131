"""The weights of training images in the loss, by class or by image."""

import numpy as np

from highway_keras.util import checks


def loss_weights(images, class_weight=None, sample_weight=None):
    """Return the weight of each training image in the loss, or `None` for equal ones."""
    if class_weight is None and sample_weight is None:
        return None
    labels, names = images.y_train, images.class_names
    weights = np.ones(len(labels), "float32")
    if sample_weight is not None:
        each = np.asarray(sample_weight, "float32")
        usable = each.shape == labels.shape and np.isfinite(each).all() and (each >= 0).all()
        if not usable or not each.any():
            raise ValueError(
                f"`sample_weight` must hold a weight of at least 0, not all 0, for each of "
                f"{len(labels)} training images. {checks.received('sample_weight', sample_weight)}"
            )
        weights *= each
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(labels, weights, len(names))  # with `sample_weight`
        equal = totals.sum() / (np.count_nonzero(totals) * np.where(totals > 0, totals, 1))
        class_weight = dict(zip(names, equal.tolist(), strict=True))
    if not isinstance(class_weight, dict | None):
        raise ValueError(
            "`class_weight` must be 'balanced' or a dictionary by class. "
            f"{checks.received('class_weight', class_weight)}"
        )
    for key, value in (class_weight or {}).items():
        if key not in names and key not in range(len(names)):
            raise ValueError(
                f"`class_weight` must be 'balanced' or have names or numbers of classes as keys: "
                f"{', '.join(names)}. {checks.received('class_weight', class_weight)}"
            )
        if key not in names and str(key) in names and names[key] != str(key):
            raise ValueError(
                f"`class_weight` must have names as keys here, such as {names[key]!r}: {key} is "
                "the number of that class and the name of another. "
                f"{checks.received('class_weight', class_weight)}"
            )
        checks.number("class_weight", value, least=0)
        weights[labels == (names.index(key) if key in names else key)] *= value
    return weights
