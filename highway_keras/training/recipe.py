"""What a training recipe is. Importing this module does not import Keras."""

import dataclasses
import functools
import json

from highway_keras import checks

PROSE = ("name", "source", "reasons")  # the attributes that do not decide the training
DTYPE_POLICIES = ("float32", "mixed_bfloat16")
OPTIMIZERS = ("sgd", "adamw", "muon")
SCHEDULES = ("constant", "steps", "exponential", "cosine")
SGD = ("momentum", "nesterov", "l2", "classifier_l2", "bias_rate")  # used by "sgd" alone


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
        for name, check in _CHECKS.items():
            check(name, getattr(self, name))
        unused = {"weight_decay"} if self.optimizer == "sgd" else set(SGD)
        unused |= {"warmup"} if self.schedule != "cosine" else set()
        unused |= {"decay"} if self.schedule in ("constant", "cosine") else set()
        unused |= {"decay_epochs"} if self.schedule != "steps" else set()
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            empty = field.name == "decay_epochs" and not value  # a list, too
            if field.name in unused and value != field.default and not empty:
                raise ValueError(
                    f"`{field.name}` must stay {field.default} with optimizer={self.optimizer!r} "
                    f"and schedule={self.schedule!r}, which do not use it. "
                    f"{checks.received(field.name, value)}"
                )
        if self.warmup > self.epochs:
            raise ValueError(
                f"`warmup` must be at most the number of epochs, {self.epochs}. "
                f"{checks.received('warmup', self.warmup)}"
            )

    def override(self, /, **changes):
        """Return a copy with other values; only existing attributes can be named."""
        known = {field.name for field in dataclasses.fields(self)}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise ValueError(
                f"Overrides must name an attribute of the recipe. Received: {', '.join(unknown)}. "
                f"Known: {', '.join(sorted(known))}."
            )
        return dataclasses.replace(self, **changes)


def _number(**bounds):
    return functools.partial(checks.number, **bounds)


def _one_of(choices):
    return functools.partial(checks.one_of, choices=choices)


def _is(is_right, what):
    """Return a check: whether a function is true of the value; `what` it must be, for the error."""

    def check(name, value):
        if not is_right(value):
            raise ValueError(f"`{name}` must be {what}. {checks.received(name, value)}")

    return check


def _are_names(steps):
    return isinstance(steps, tuple | list) and all(isinstance(step, str) for step in steps)


def _are_rising(epochs):
    positive = isinstance(epochs, tuple | list) and all(map(checks.is_positive, epochs))
    return positive and list(epochs) == sorted(set(epochs))


_CHECKS = {
    "name": _is(lambda value: isinstance(value, str), "a string"),
    "source": _is(lambda value: isinstance(value, str), "a string"),
    "reasons": _is(lambda value: isinstance(value, dict), "a dictionary"),
    "epochs": checks.positive_integer,
    "batch_size": checks.positive_integer,
    "learning_rate": _number(above=0),
    "optimizer": _one_of(OPTIMIZERS),
    "momentum": _number(least=0, below=1),
    "nesterov": checks.flag,
    "warmup": _number(least=0),
    "schedule": _one_of(SCHEDULES),
    "decay": _number(above=0),
    "decay_epochs": _is(_are_rising, "a tuple of increasing positive integers, such as (60, 80)"),
    "l2": _number(least=0),
    "classifier_l2": _number(least=0),
    "bias_rate": _number(least=0),
    "weight_decay": _number(least=0),
    "clip_norm": _number(above=0, or_none="no limit"),
    "dropout": _number(least=0, most=1),
    "kernel_initializer": _is(
        lambda value: isinstance(value, str | None),
        "the name of a Keras initializer, or None for the network's own",
    ),
    "preprocessing": _is(_are_names, "a tuple of names of steps, such as ('gcn', 'mean')"),
    "augmentation": _is(_are_names, "a tuple of names of steps, such as ('crop4', 'mirror')"),
    "validation": _number(least=0, below=1),
    "dtype_policy": _one_of(DTYPE_POLICIES),
}
# What it means that a recipe in `run.json` lacks an attribute: it did not have it yet
DEFAULTS = {
    field.name: list(field.default) if isinstance(field.default, tuple) else field.default
    for field in dataclasses.fields(Recipe)
    if field.default is not dataclasses.MISSING
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
