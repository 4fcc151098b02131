"""How deep a problem needs a network to be, read off its lesions."""

import dataclasses

THRESHOLD = 0.001  # a tenth of a percentage point


@dataclasses.dataclass(frozen=True)
class NeededLayers:
    """The layers without which a network errs more.

    Attributes:
        layers: Their names, in order.
        of: Number of gated layers.
        threshold: By how much, as a share of the samples, the error must rise for a layer to count.
    """

    layers: tuple
    of: int
    threshold: float

    def __str__(self):
        return (
            f"{len(self.layers)} of {self.of} gated layers matter: closing one of them raises the "
            f"error by more than {100 * self.threshold:g} points. Idle: "
            f"{self.of - len(self.layers)}."
        )


def needed_layers(lesions, threshold=THRESHOLD):
    """How deep the problem needs the network to be: the layers whose lesion raises the error.

    Each layer is judged alone, with all others intact; several idle ones may matter together.

    Args:
        lesions: What `lesions` returned.
        threshold: Rise of the error, as a share of the samples, above which a layer counts. With
            fewer than `1 / threshold` samples a single one decides.

    Returns:
        A `NeededLayers`, which prints as a sentence.

    Raises:
        ValueError: If `threshold` is not in [0, 1).

    Example:

    >>> import numpy as np
    >>> from highway_keras.analysis import Lesions, needed_layers
    >>> error = np.array([0.5, 0.025, 0.02])
    >>> found = Lesions(("a", "b", "c"), error, error, 0.02, 0.02, 100)
    >>> print(needed_layers(found, threshold=0.01))
    1 of 3 gated layers matter: closing one of them raises the error by more than 1 points. Idle: 2.
    """
    if not 0 <= threshold < 1:
        raise ValueError(
            "`threshold` must be a share of the samples, from 0 to below 1. "
            f"Received: threshold={threshold!r}."
        )
    matters = lesions.error - lesions.intact_error > threshold
    names = tuple(name for name, needed in zip(lesions.layers, matters, strict=True) if needed)
    return NeededLayers(names, len(lesions.layers), float(threshold))
