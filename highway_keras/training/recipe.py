"""What a training recipe is. Importing this module does not import Keras."""

import dataclasses
import json

from highway_keras import checks

PROSE = ("name", "source", "reasons")  # the attributes that do not decide the training


DTYPE_POLICIES = ("float32", "mixed_bfloat16")
OPTIMIZERS = ("sgd", "adamw", "muon")
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
        schedule: `"steps"`: times `decay` at each epoch of `decay_epochs`; `"exponential"`: times
            `decay` after every epoch; `"cosine"`: down to 0 at the end of the last epoch.
        decay: Factor for the first two schedules.
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
        checks.positive_integer("epochs", self.epochs)
        checks.positive_integer("batch_size", self.batch_size)
        for name, bounds in _BOUNDS.items():
            checks.number(name, getattr(self, name), **bounds)
        _check_decay_epochs(self.decay_epochs)
        if not isinstance(self.kernel_initializer, str | None):
            raise ValueError(
                "`kernel_initializer` must be the name of a Keras initializer, or None for the "
                f"network's own. Received: kernel_initializer={self.kernel_initializer!r}."
            )
        checks.flag("nesterov", self.nesterov)
        checks.one_of("dtype_policy", self.dtype_policy, DTYPE_POLICIES)
        checks.one_of("schedule", self.schedule, ("steps", "exponential", "cosine"))
        _check_optimizer(self)
        _check_texts(self)

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


_BOUNDS = {
    "learning_rate": {"above": 0},
    "momentum": {"least": 0, "below": 1},
    "decay": {"above": 0},
    "l2": {"least": 0},
    "classifier_l2": {"least": 0},
    "bias_rate": {"least": 0},
    "warmup": {"least": 0},
    "weight_decay": {"least": 0},
    "clip_norm": {"above": 0, "or_none": "no limit"},
    "dropout": {"least": 0, "most": 1},
    "validation": {"least": 0, "below": 1},
}


def _check_optimizer(recipe):
    """Raise unless every value is one that the recipe's optimizer and schedule use."""
    sgd = checks.one_of("optimizer", recipe.optimizer, OPTIMIZERS) == "sgd"
    unused = {"weight_decay"} if sgd else set(SGD)
    unused |= {"decay"} if recipe.schedule == "cosine" else {"warmup"}
    if recipe.decay_epochs and recipe.schedule != "steps":
        unused.add("decay_epochs")
    for field in dataclasses.fields(recipe):
        value = getattr(recipe, field.name)
        if field.name in unused and value != field.default:
            raise ValueError(
                f"`{field.name}` must stay {field.default} with optimizer={recipe.optimizer!r} and "
                f"schedule={recipe.schedule!r}, which do not use it. "
                f"Received: {field.name}={value}."
            )
    if not recipe.warmup <= recipe.epochs:
        raise ValueError(
            f"`warmup` must be at most the number of epochs, {recipe.epochs}. "
            f"Received: warmup={recipe.warmup}."
        )


def _check_texts(recipe):
    for name in ("preprocessing", "augmentation"):
        steps = getattr(recipe, name)
        if not isinstance(steps, tuple | list) or not all(isinstance(s, str) for s in steps):
            raise ValueError(
                f"`{name}` must be a tuple of names of steps, such as ('gcn', 'mean'). "
                f"Received: {name}={checks.short_repr(steps)}."
            )
    for name, kind in (("name", str), ("source", str), ("reasons", dict)):
        if not isinstance(getattr(recipe, name), kind):
            raise ValueError(
                f"`{name}` of a recipe must be a {kind.__name__}. "
                f"Received: {name}={checks.short_repr(getattr(recipe, name))}."
            )


def _check_decay_epochs(epochs):
    right = isinstance(epochs, tuple | list) and all(map(checks.is_positive, epochs))
    if not right or list(epochs) != sorted(set(epochs)):
        raise ValueError(
            "`decay_epochs` must be a tuple of rising positive integers, such as (60, 80). "
            f"Received: decay_epochs={epochs!r}."
        )


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
