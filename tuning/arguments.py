"""Checks of what a user passes to a search."""

import numpy as np


def check_images(hypermodel, x, y, x_name, y_name):
    """Returns `x` and `y` as arrays if they are inputs and class numbers for the hypermodel."""
    x, y = np.asarray(x), np.asarray(y)
    if x.ndim < 2 or not len(x) or x[0].size != hypermodel.inputs:
        raise ValueError(
            f"`{x_name}` must hold inputs of the hypermodel's shape {hypermodel.input_shape}. "
            f"Received: shape={x.shape}."
        )
    if y.size != len(x):
        raise ValueError(
            f"`{y_name}` must hold one class number for each input. "
            f"Received: shape={y.shape} for {len(x)} inputs."
        )
    if y.min() < 0 or y.max() >= hypermodel.classes:
        raise ValueError(
            f"`{y_name}` must hold class numbers from 0 to {hypermodel.classes - 1}. "
            f"Received: {y.min()} to {y.max()}."
        )
    return x, y


def check_objective(objective, known):
    """Raises unless `objective` is one of the metrics that the search will measure."""
    if getattr(objective, "name", None) not in known:
        raise ValueError(
            f"`objective` must be one of {', '.join(known)}; those with `val_` need "
            f"`validation_data`. Received: {objective}."
        )
