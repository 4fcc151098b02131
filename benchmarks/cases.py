"""What is measured: networks, their size, and the peers that run them."""

import dataclasses

THIN = ("ours", "dense_chain", "dense_chain_xla", "plain", "torch_eager", "torch_compile")
THIN += ("jax_scan", "products")
# Unrolled, 1000 layers take minutes to trace, and hours under XLA.
LOOPS = ("ours", "torch_eager", "jax_scan", "products")
CONVOLUTIONAL = ("ours", "two_convolutions", "maxout", "torch_eager")


@dataclasses.dataclass(frozen=True)
class Case:
    """A network to train, or to predict with.

    Attributes:
        model: Registered name, or `thin-highway-DEPTH` of any depth.
        training: Whether a step trains or only predicts.
        batch: Images of a step.
        steps: Steps of a turn.
        peers: Names of modules in `peers/`, ours first.
    """

    model: str
    training: bool
    batch: int
    steps: int
    peers: tuple

    @property
    def name(self):
        return f"{self.model} {'train' if self.training else 'predict'}"

    @property
    def depth(self):
        """Hidden layers of a thin network."""
        return int(self.model.rpartition("-")[2])

    @property
    def image_shape(self):
        return (28, 28, 1) if self.model.startswith("thin") else (32, 32, 3)


def _cases():
    # `predict` sets itself up at every call, so that its turns need more steps.
    for depth, steps in ((10, 120), (50, 60), (100, 30), (1000, 4)):
        peers = THIN if depth <= 100 else LOOPS
        yield Case(f"thin-highway-{depth}", True, 128, steps, peers)
        yield Case(f"thin-highway-{depth}", False, 128, 5 * steps, peers)
    for model in ("highway-b", "highway-gap-10"):
        yield Case(model, True, 32, 2, CONVOLUTIONAL)
        yield Case(model, False, 32, 10, CONVOLUTIONAL)


CASES = {case.name: case for case in _cases()}
