"""What is measured: networks, their size, and the peers that run them."""

import dataclasses

PRECISIONS = ("ours", "ours_bfloat16", "machine", "machine_bfloat16")
CONVOLUTIONAL = (*PRECISIONS, "fit")
DEEP = (*PRECISIONS, "torch_eager", "torch_bfloat16")
# Unrolled, 1000 layers take minutes to trace, and hours under XLA.
LOOPS = ("ours", "torch_eager", "jax_scan", "machine")
THIN = (*LOOPS, "dense_chain", "dense_chain_xla", "plain", "torch_compile")


@dataclasses.dataclass(frozen=True)
class Case:
    """A network to train or to predict with.

    Attributes:
        model: Registered name, or `thin-highway-DEPTH` of any depth.
        training: Whether a step trains or only predicts.
        batch: Images per step.
        steps: Steps per turn.
        peers: Names of functions in `peers/`, ours first.
    """

    model: str
    training: bool
    batch: int
    steps: int
    peers: tuple

    @property
    def name(self):
        size = "" if self.batch <= 128 else f" batch {self.batch}"  # no recipe for SGD has more
        return f"{self.model} {'train' if self.training else 'predict'}{size}"

    @property
    def thin(self):
        """Whether the network is one of Figure 1, without convolutions."""
        return self.model.startswith("thin")

    @property
    def depth(self):
        """Hidden layers of a thin network."""
        return int(self.model.rpartition("-")[2])

    @property
    def operations(self):
        """Operations in the matrix products of a step, additions included.

        Training takes three products for one in prediction: the other two are the gradients of the
        weights and of a layer's input.
        """
        if self.thin:
            products = 784 * 50 + (self.depth - 1) * 2 * 50 * 50 + 50 * 10
        else:
            from highway_keras import models  # not above: it imports Keras

            products = models.get(self.model).multiplications
        return 2 * products * self.batch * (3 if self.training else 1)

    def images(self):
        """Return random images `(count, height, width, channels)` and labels of one turn."""
        import numpy as np

        rng, count = np.random.default_rng(0), self.steps * self.batch
        shape = (28, 28, 1) if self.thin else (32, 32, 3)
        return rng.random((count, *shape), "float32"), rng.integers(0, 10, count)


ALL = [
    Case("thin-highway-10", True, 128, 120, THIN),
    Case("thin-highway-50", True, 128, 60, THIN),
    Case("thin-highway-100", True, 128, 30, THIN),
    Case("thin-highway-1000", True, 128, 4, LOOPS),
    Case("thin-highway-100", True, 512, 15, LOOPS),
    # `predict` sets itself up on every call, so its turns need more steps.
    Case("thin-highway-10", False, 128, 600, THIN),
    Case("thin-highway-50", False, 128, 300, THIN),
    Case("thin-highway-100", False, 128, 150, THIN),
    Case("thin-highway-1000", False, 128, 20, LOOPS),
    Case("highway-a", True, 100, 6, CONVOLUTIONAL),
    Case("highway-b", True, 100, 1, (*CONVOLUTIONAL, "two_convolutions", "torch_eager")),
    Case("highway110", True, 128, 1, DEEP),
    Case("resnet110", True, 128, 1, DEEP),
]
CASES = {case.name: case for case in ALL}
