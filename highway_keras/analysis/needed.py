"""How deep a network a problem needs, read off its lesions."""

import dataclasses
import math

from highway_keras import checks

THRESHOLD = 0.001  # a tenth of a percentage point
FEW = 10  # samples: a count scatters by about its square root, of these a third


@dataclasses.dataclass(frozen=True)
class NeededLayers:
    """The layers whose lesion raises a network's error; as a string, a sentence about them.

    Attributes:
        layers: Their names, in order.
        of: Number of gated layers.
        threshold: The share of the samples that the error must rise by for a layer to count.
        limit: The same as a number of samples: a layer counts if more than these are lost.
        samples: Number of samples.
    """

    layers: tuple
    of: int
    threshold: float
    limit: int
    samples: int

    def __str__(self):
        few = "A threshold of so few samples leaves much to chance: measure on more."
        return (
            f"{len(self.layers)} of {self.of} gated layers matter: closing one of them raises the "
            f"error by more than {100 * self.threshold:g} points ({self.limit:,} of "
            f"{self.samples:,} samples). Idle: {self.of - len(self.layers)}."
            f"{f' {few}' if self.limit < FEW else ''}"
        )


def needed_layers(lesions, threshold=THRESHOLD):
    """Return the layers whose lesion raises the error: how deep the problem needs the network.

    Each layer is judged alone, with all others intact; several idle ones may still matter together.

    Args:
        lesions: What `lesions` returned.
        threshold: Rise of the error, as a share of the samples, above which a layer counts.

    Returns:
        A `NeededLayers`, which prints as a sentence.

    Raises:
        ValueError: If `threshold` is not in [0, 1).

    Example:

    >>> import numpy as np
    >>> from highway_keras.analysis import Lesions, needed_layers
    >>> found = Lesions(("a", "b", "c"), np.zeros(3), np.array([500, 25, 20]), 0.0, 10, 1000)
    >>> needed_layers(found, threshold=0.01).layers
    ('a', 'b')
    """
    checks.number("threshold", threshold, least=0, below=1)
    # Count samples: with shares, 0.019 - 0.018 > 0.001. 0.0029 * 10000 falls short of 29 by less
    # than a millionth of a sample.
    limit = math.floor(threshold * lesions.samples + 1e-6)
    matters = lesions.wrong - lesions.intact_wrong > limit
    names = tuple(name for name, needed in zip(lesions.layers, matters, strict=True) if needed)
    return NeededLayers(names, len(lesions.layers), float(threshold), limit, lesions.samples)
