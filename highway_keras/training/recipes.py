"""Training recipes as data. Importing this module does not import Keras.

Every number is the authors' own (their Caffe solvers, or the paper) unless `reasons` says why not;
a test compares them.
"""

import dataclasses
import json

from highway_keras import checks
from highway_keras.models.registry import get

PROSE = ("name", "source", "reasons")  # the attributes that do not decide the training


DTYPE_POLICIES = ("float32", "mixed_bfloat16")


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Everything that decides how a network is trained, apart from its data and its seed.

    Attributes:
        name: Its name in `RECIPES`.
        source: Where the numbers come from.
        epochs: Passes over the training slice.
        batch_size: Images a step.
        learning_rate: Rate of the first step.
        momentum: Momentum of SGD.
        nesterov: Whether momentum is Nesterov's.
        schedule: `"steps"`: times `decay` at each epoch of `decay_epochs`; `"exponential"`: times
            `decay` after every epoch; `"cosine"`: down to 0 at the end of the last epoch.
        decay: Factor of the first two schedules.
        decay_epochs: Epochs at which `"steps"` decays.
        l2: Penalty on kernels, in the gradient (Caffe's `weight_decay`).
        classifier_l2: Factor on `l2` for the classifier's kernel.
        bias_rate: Factor on the learning rate of biases.
        clip_norm: Largest norm of all gradients together; `None` for no limit.
        dropout: Factor on the network's dropout rates, at most 1.
        kernel_initializer: Name of the Keras initializer that the network's factory starts its
            kernels by; `None` for the network's own: the authors', where they built it.
        preprocessing: Steps of `highway_keras.data.preprocessor`, in order.
        augmentation: Steps of `highway_keras.data.augmenter`, in order.
        validation: Share of the training images that is held out to choose by.
        dtype_policy: What training computes in: `"float32"`, or `"mixed_bfloat16"` with weights in
            float32. Saved networks compute in float32 either way.
        reasons: Why a number differs from its source, by attribute.
    """

    name: str
    source: str
    epochs: int
    batch_size: int
    learning_rate: float
    momentum: float = 0.9
    nesterov: bool = False
    schedule: str = "exponential"
    decay: float = 1.0
    decay_epochs: tuple = ()
    l2: float = 0.0
    classifier_l2: float = 10.0
    bias_rate: float = 1.0
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
        if not isinstance(self.kernel_initializer, str | None):
            raise ValueError(
                "`kernel_initializer` must be the name of a Keras initializer, or None for the "
                f"network's own. Received: kernel_initializer={self.kernel_initializer!r}."
            )
        checks.flag("nesterov", self.nesterov)
        checks.one_of("dtype_policy", self.dtype_policy, DTYPE_POLICIES)
        checks.one_of("schedule", self.schedule, ("steps", "exponential", "cosine"))
        _check_decay_epochs(self.decay_epochs)
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
    "clip_norm": {"above": 0, "none": "no limit"},
    "dropout": {"least": 0, "most": 1},
    "validation": {"least": 0, "below": 1},
}


def _check_texts(recipe):
    for name in ("preprocessing", "augmentation"):
        steps = getattr(recipe, name)
        if not isinstance(steps, tuple | list) or not all(isinstance(s, str) for s in steps):
            raise ValueError(
                f"`{name}` must be a tuple of names of steps, such as ('gcn', 'mean'). "
                f"Received: {name}={checks.shown(steps)}."
            )
    for name, kind in (("name", str), ("source", str), ("reasons", dict)):
        if not isinstance(getattr(recipe, name), kind):
            raise ValueError(
                f"`{name}` of a recipe must be a {kind.__name__}. "
                f"Received: {name}={checks.shown(getattr(recipe, name))}."
            )


def _check_decay_epochs(epochs):
    right = isinstance(epochs, tuple | list) and all(map(checks.is_positive, epochs))
    if not right or list(epochs) != sorted(set(epochs)):
        raise ValueError(
            "`decay_epochs` must be a tuple of rising positive integers, such as (60, 80). "
            f"Received: decay_epochs={epochs!r}."
        )


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="thin",
            source="Section 3.1: SGD with momentum, exponential decay; the values are searched.",
            epochs=10,
            batch_size=128,
            learning_rate=0.15,
            decay=0.8,
            reasons={
                "epochs": "a fortieth of Figure 1's: enough to tell the networks apart",
                "batch_size": "the paper names none",
                "learning_rate": "searched in the paper; chosen on held-out images",
                "momentum": "as `learning_rate`",
                "decay": "as `learning_rate`",
                "preprocessing": "the paper names none; this is the authors' for Table 1",
                "validation": "the paper compares training losses; here a tenth is held out to "
                "choose by",
            },
        ),
        Recipe(
            name="digits",
            source="As `thin`, for the 1,797 embedded digits.",
            epochs=30,
            batch_size=32,
            learning_rate=0.1,
            decay=0.95,
            reasons={
                "epochs": "so few images need more epochs than those of `thin`",
                "batch_size": "the paper names none; so few images need smaller batches",
                "learning_rate": "searched in the paper; less than `thin`'s, for smaller batches",
                "momentum": "as in `thin`",
                "decay": "slower than in `thin`, over three times the epochs",
                "preprocessing": "as in `thin`; the data set spreads its grey levels over 0 to 255",
                "validation": "as in `thin`",
            },
        ),
        Recipe(
            name="mnist",
            source="The authors' solver for Table 1.",
            epochs=300,
            batch_size=100,
            learning_rate=0.01,
            nesterov=True,
            schedule="steps",
            decay=0.1,
            decay_epochs=(100, 200),
            l2=0.001,
            bias_rate=2.0,
            validation=0.0,
        ),
        Recipe(
            name="cifar",
            source="The authors' solver for Table 3, taken over for Table 2.",
            epochs=400,
            batch_size=100,
            learning_rate=0.025,
            nesterov=True,
            schedule="steps",
            decay=0.1,
            decay_epochs=(200, 300, 350),
            l2=0.001,
            bias_rate=2.0,
            preprocessing=("gcn", "mean"),
            augmentation=("crop8", "mirror"),
            validation=0.0,
        ),
        Recipe(
            name="quick",
            source="A few epochs on a laptop, for the convolutional networks.",
            epochs=5,
            batch_size=100,
            learning_rate=0.1,
            nesterov=True,
            schedule="cosine",
            dropout=0.25,
            kernel_initializer="lecun_uniform",
            reasons={
                "epochs": "minutes on a laptop, where the authors' 300 take hours",
                "learning_rate": "a short schedule needs larger steps",
                "schedule": "ends at 0 whatever the number of epochs",
                "l2": "none: five epochs hardly overfit",
                "bias_rate": "one rate for all weights, as is usual today; twice was not tried",
                "dropout": "for the same reason as `l2` a quarter of the network's",
                "kernel_initializer": "variance 1 / fan-in: the other numbers were chosen with it",
                "validation": "a tenth is held out to choose by",
            },
        ),
        Recipe(
            name="modern-mnist",
            source="The networks of Table 1, SGD with momentum, a tenth of the authors' epochs.",
            epochs=30,
            batch_size=100,
            learning_rate=0.1,
            nesterov=True,
            schedule="cosine",
            l2=0.0001,
            dropout=0.5,
            kernel_initializer="lecun_uniform",
            validation=0.0,
            reasons={
                "epochs": "a tenth of the authors'",
                "learning_rate": "as in `quick`: a short schedule needs larger steps",
                "schedule": "ends at 0 whatever the number of epochs",
                "l2": "a tenth of the authors': thirty epochs overfit less",
                "bias_rate": "one rate for all weights, as is usual today; twice was not tried",
                "dropout": "for the same reason as `l2` half of the network's",
                "kernel_initializer": "variance 1 / fan-in: the other numbers were chosen with it",
            },
        ),
        Recipe(
            name="modern-cifar",
            source="The networks of Tables 2 and 3, SGD with momentum, a quarter of the authors' "
            "epochs. Not tuned: no GPU was at hand.",
            epochs=100,
            batch_size=100,
            learning_rate=0.05,
            nesterov=True,
            schedule="cosine",
            l2=0.0005,
            kernel_initializer="lecun_uniform",
            preprocessing=("gcn", "mean"),
            augmentation=("crop8", "mirror"),
            validation=0.0,
            reasons={
                "epochs": "a quarter of the authors'",
                "learning_rate": "twice the authors': a short schedule needs larger steps",
                "schedule": "ends at 0 whatever the number of epochs",
                "l2": "half of the authors': fewer epochs overfit less",
                "bias_rate": "one rate for all weights, as is usual today; twice was not tried",
                "kernel_initializer": "variance 1 / fan-in: with 2 / fan-in networks die at this "
                "rate (Highway A: 10 % of held-out images after six epochs)",
            },
        ),
    )
}

RECIPES |= {
    name.replace("cifar", "fitnet"): RECIPES[name].override(
        name=name.replace("cifar", "fitnet"),
        source=f"`{name}`, made fit for maxout networks without gates.",
        clip_norm=1.0,
        reasons={
            **RECIPES[name].reasons,
            "clip_norm": "without it they diverge: the first gradients have a norm of 80",
        },
    )
    for name in ("cifar", "modern-cifar")
}


def get_recipe(name):
    """Return the recipe of that name; an unknown name is a `ValueError` that lists the others."""
    return RECIPES[checks.one_of("recipe", name, RECIPES)]


def choose_recipe(recipe, model, dataset=None):
    """Return the recipe to train a network by.

    Args:
        recipe: A `Recipe`, the name of one, or `None` for the one on the network's card; on the
            embedded digits, too few for any other, for `digits`.
        model: Registered name.
        dataset: Name or `.npz` of the images.
    """
    if isinstance(recipe, Recipe):
        return recipe
    default = "digits" if dataset == "digits" else get(model).recipe
    return get_recipe(default if recipe is None else recipe)


def deciding(stored):
    """Return the attributes of a recipe that decide the training, as they read in `run.json`.

    Args:
        stored: A recipe from `run.json`. What it lacks, since recipes did not have it yet, takes
            its default; an empty dictionary is no recipe.
    """
    if not stored:
        return {}
    later = {
        field.name: field.default
        for field in dataclasses.fields(Recipe)
        if field.default is not dataclasses.MISSING
    }
    whole = json.loads(json.dumps({**later, **stored}))
    return {name: value for name, value in whole.items() if name not in PROSE}
