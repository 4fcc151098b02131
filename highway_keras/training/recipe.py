"""What a training recipe is. Importing this module does not import Keras."""

import dataclasses
import functools

from highway_keras import checks

DTYPE_POLICIES = ("float32", "mixed_bfloat16")
OPTIMIZERS = ("sgd", "adamw", "muon")
SCHEDULES = ("constant", "steps", "exponential", "cosine")
SGD = ("momentum", "nesterov", "l2", "classifier_l2", "bias_rate")  # used by "sgd" alone

_COUNT = checks.positive_integer
_FROM_0 = functools.partial(checks.number, least=0)
_ABOVE_0 = functools.partial(checks.number, above=0)
_BELOW_1 = functools.partial(checks.number, least=0, below=1)
CHECKS = {  # of what run.json holds; a step or an initializer is known to who makes it
    **dict.fromkeys(("epochs", "batch_size"), _COUNT),
    **dict.fromkeys(("learning_rate", "decay"), _ABOVE_0),
    **dict.fromkeys(("warmup", "l2", "classifier_l2", "bias_rate", "weight_decay"), _FROM_0),
    **dict.fromkeys(("momentum", "validation"), _BELOW_1),
    "optimizer": functools.partial(checks.one_of, choices=OPTIMIZERS),
    "nesterov": checks.flag,
    "schedule": functools.partial(checks.one_of, choices=SCHEDULES),
    "clip_norm": functools.partial(checks.number, above=0, or_none="no limit"),
    "dropout": functools.partial(checks.number, least=0, most=1),
    "dtype_policy": functools.partial(checks.one_of, choices=DTYPE_POLICIES),
    "kernel_initializer": checks.serialized,
}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Everything that decides how a network is trained, apart from its data and its seed.

    Attributes:
        name: Its name in `RECIPES`.
        source: Where the numbers come from.
        epochs: Passes over the training slice.
        batch_size: Images per step.
        optimizer: `"sgd"`: `CaffeSGD`, which uses `momentum`, `nesterov`, `l2`, `classifier_l2` and
            `bias_rate`; `"adamw"`, Keras's, and `"muon"`, `ConvMuon` with Keras's momentum (0.95,
            Nesterov), both with `weight_decay`. What it does not use must have its default.
        learning_rate: Rate of the first step, or of the first one after `warmup`.
        momentum: Momentum of SGD.
        nesterov: Whether to use Nesterov momentum.
        warmup: Epochs, or a part of one, over which the rate rises from 0; only before `"cosine"`.
        schedule: `"constant"`, which leaves the rate to callbacks; `"steps"`: times `decay` at each
            epoch of `decay_epochs`; `"exponential"`: times `decay` after every epoch; `"cosine"`:
            down to 0 at the end of the last epoch.
        decay: Factor for `"steps"` and `"exponential"`.
        decay_epochs: Epochs at which `"steps"` decays; without any, the rate stays as it is.
        l2: Penalty on kernels, in the gradient (Caffe's `weight_decay`).
        classifier_l2: Factor on `l2` for the classifier's kernel.
        bias_rate: Factor on the learning rate of biases.
        weight_decay: Share of a kernel that a step at rate 1 removes, besides the gradient step.
        clip_norm: Largest norm of all gradients together; `None` for no limit.
        dropout: Factor on the network's dropout rates, at most 1.
        kernel_initializer: Name of the Keras initializer for the kernels in the network's factory;
            `None` for the network's own: the authors', if they built it.
        preprocessing: Steps of `highway_keras.data.preprocessor`, in order.
        augmentation: Steps of `highway_keras.data.augmenter`, in order.
        validation: Share of the training images held out to choose the best epoch.
        dtype_policy: What training computes in: `"float32"`, or `"mixed_bfloat16"` with weights in
            float32. Saved networks compute in float32 either way.
        reasons: Why a number differs from its source, by attribute.
    """

    name: str
    source: str
    epochs: int
    batch_size: int
    learning_rate: float
    optimizer: str = "sgd"
    momentum: float = 0.9
    nesterov: bool = False
    warmup: float = 0.0
    schedule: str = "exponential"
    decay: float = 1.0
    decay_epochs: tuple = ()
    l2: float = 0.0
    classifier_l2: float = 10.0
    bias_rate: float = 1.0
    weight_decay: float = 0.0
    clip_norm: float | None = None
    dropout: float = 1.0
    kernel_initializer: str | None = None
    preprocessing: tuple = ("scale",)
    augmentation: tuple = ()
    validation: float = 0.1
    dtype_policy: str = "float32"
    reasons: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        for name, check in CHECKS.items():
            check(name, getattr(self, name))
        epochs = self.decay_epochs
        rising = isinstance(epochs, tuple | list) and all(map(checks.is_positive, epochs))
        if not rising or list(epochs) != sorted(set(epochs)):
            raise ValueError(
                "`decay_epochs` must be a tuple of increasing positive integers, such as (60, 80). "
                f"{checks.received('decay_epochs', epochs)}"
            )
        unused = {"weight_decay"} if self.optimizer == "sgd" else set(SGD)
        unused |= {"warmup"} if self.schedule != "cosine" else set()
        unused |= {"decay"} if self.schedule in ("constant", "cosine") else set()
        unused |= {"decay_epochs"} if self.schedule != "steps" else set()
        for name in sorted(unused):
            value, default = getattr(self, name), getattr(Recipe, name)
            if value != default and (value or default):  # `[]` is as good as `()`
                raise ValueError(
                    f"`{name}` must stay {default} with optimizer={self.optimizer!r} and "
                    f"schedule={self.schedule!r}, which do not use it. "
                    f"{checks.received(name, value)}"
                )
        if self.warmup > self.epochs:
            raise ValueError(
                f"`warmup` must be at most the number of epochs, {self.epochs}. "
                f"{checks.received('warmup', self.warmup)}"
            )

    def override(self, /, **changes):
        """Return a copy with other values; only existing attributes can be named."""
        known = {each.name for each in dataclasses.fields(self)}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise ValueError(
                f"Overrides must name an attribute of the recipe. Received: {', '.join(unknown)}. "
                f"Known: {', '.join(sorted(known))}."
            )
        return dataclasses.replace(self, **changes)
