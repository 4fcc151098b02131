"""What a training recipe is. Importing this module does not import Keras."""

import dataclasses
import functools
import json
from dataclasses import field

from highway_keras import checks
from highway_keras.runs import PROSE

DTYPE_POLICIES = ("float32", "mixed_bfloat16")
OPTIMIZERS = ("sgd", "adamw", "muon")
SCHEDULES = ("constant", "steps", "exponential", "cosine")
SGD = ("momentum", "nesterov", "l2", "classifier_l2", "bias_rate")  # used by "sgd" alone


def _checked(check, **bounds):
    """Return the metadata of an attribute: how its value is checked."""
    return {"check": functools.partial(check, **bounds)}


def _is(is_right, what):
    """Return the same for what a function is true of; `what` it must be, for the error."""

    def check(name, value):
        if not is_right(value):
            raise ValueError(f"`{name}` must be {what}. {checks.received(name, value)}")

    return {"check": check}


def _are_rising(epochs):
    positive = isinstance(epochs, tuple | list) and all(map(checks.is_positive, epochs))
    return positive and list(epochs) == sorted(set(epochs))


_STRING = _is(lambda value: isinstance(value, str), "a string")
_STEPS = _is(
    lambda steps: isinstance(steps, tuple | list) and all(isinstance(s, str) for s in steps),
    "a tuple of names of steps, such as ('gcn', 'mean')",
)
_RISING = _is(_are_rising, "a tuple of increasing positive integers, such as (60, 80)")
_INITIALIZER = _is(
    lambda value: isinstance(value, str | None),
    "the name of a Keras initializer, or None for the network's own",
)
_REASONS = _is(lambda value: isinstance(value, dict), "a dictionary")
_COUNT = _checked(checks.positive_integer)
_FROM_0 = _checked(checks.number, least=0)
_ABOVE_0 = _checked(checks.number, above=0)
_BELOW_1 = _checked(checks.number, least=0, below=1)


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Everything that decides how a network is trained, apart from its data and its seed.

    Attributes:
        name: Its name in `RECIPES`.
        source: Where the numbers come from.
        epochs: Passes over the training slice.
        batch_size: Images per step.
        optimizer: `"sgd"`: `CaffeSGD`, which uses `momentum`, `nesterov`, `l2`, `classifier_l2` and
            `bias_rate`; `"adamw"`, `"muon"`: Keras's, with `weight_decay`. What it does not use
            must have its default.
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

    name: str = field(metadata=_STRING)
    source: str = field(metadata=_STRING)
    epochs: int = field(metadata=_COUNT)
    batch_size: int = field(metadata=_COUNT)
    learning_rate: float = field(metadata=_ABOVE_0)
    optimizer: str = field(default="sgd", metadata=_checked(checks.one_of, choices=OPTIMIZERS))
    momentum: float = field(default=0.9, metadata=_BELOW_1)
    nesterov: bool = field(default=False, metadata=_checked(checks.flag))
    warmup: float = field(default=0.0, metadata=_FROM_0)
    schedule: str = field(
        default="exponential", metadata=_checked(checks.one_of, choices=SCHEDULES)
    )
    decay: float = field(default=1.0, metadata=_ABOVE_0)
    decay_epochs: tuple = field(default=(), metadata=_RISING)
    l2: float = field(default=0.0, metadata=_FROM_0)
    classifier_l2: float = field(default=10.0, metadata=_FROM_0)
    bias_rate: float = field(default=1.0, metadata=_FROM_0)
    weight_decay: float = field(default=0.0, metadata=_FROM_0)
    clip_norm: float | None = field(
        default=None, metadata=_checked(checks.number, above=0, or_none="no limit")
    )
    dropout: float = field(default=1.0, metadata=_checked(checks.number, least=0, most=1))
    kernel_initializer: str | None = field(default=None, metadata=_INITIALIZER)
    preprocessing: tuple = field(default=("scale",), metadata=_STEPS)
    augmentation: tuple = field(default=(), metadata=_STEPS)
    validation: float = field(default=0.1, metadata=_BELOW_1)
    dtype_policy: str = field(
        default="float32", metadata=_checked(checks.one_of, choices=DTYPE_POLICIES)
    )
    reasons: dict = field(default_factory=dict, metadata=_REASONS)

    def __post_init__(self):
        for each in dataclasses.fields(self):
            each.metadata["check"](each.name, getattr(self, each.name))
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


# What it means that a recipe in `run.json` lacks an attribute: it did not have it yet
DEFAULTS = {
    each.name: list(each.default) if isinstance(each.default, tuple) else each.default
    for each in dataclasses.fields(Recipe)
    if each.default is not dataclasses.MISSING
}


def compared_fields(stored):
    """Return the attributes of a recipe that decide the training, as they read in `run.json`.

    Args:
        stored: A recipe from `run.json`, or a dictionary of one; an empty one is no recipe.
    """
    if not stored:
        return {}
    whole = json.loads(json.dumps({**DEFAULTS, **stored}))
    return {name: value for name, value in whole.items() if name not in PROSE}
