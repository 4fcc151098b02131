"""The weights of training images in the loss, by class or by image."""

import numpy as np

from highway_keras import checks


def loss_weights(images, class_weight=None, sample_weight=None):
    """Return the weight of each training image in the loss, or `None` for equal ones."""
    if class_weight is None and sample_weight is None:
        return None
    labels, names = images.y_train, images.class_names
    weights = np.ones(len(labels), "float32")
    if sample_weight is not None:
        each = np.asarray(sample_weight, "float32")
        if each.shape != labels.shape or not np.isfinite(each).all() or (each < 0).any():
            raise ValueError(
                f"`sample_weight` must hold a weight of at least 0 for each of {len(labels)} "
                f"training images. {checks.received('sample_weight', sample_weight)}"
            )
        weights *= each
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(labels, minlength=len(names))
        equal = len(labels) / (np.count_nonzero(counts) * np.maximum(counts, 1))
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
