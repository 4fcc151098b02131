"""What a training recipe is, and the recipes as data. Importing this module does not import Keras.

Every number is the authors' own (their Caffe solvers, or the paper) unless `reasons` says why not;
a test compares them.
"""

import dataclasses

from highway_keras.models.registry import BUILT_IN, get
from highway_keras.util import checks

BUILDING = ("kernel_initializer", "dropout", "dtype_policy")  # act when a network is built
SGD = ("momentum", "nesterov", "l2", "classifier_l2", "bias_l2", "bias_rate")  # used by "sgd" alone


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Everything that decides how a network is trained, apart from its data and its seed.

    Attributes:
        name: Its name in `RECIPES`.
        source: Where the numbers come from.
        epochs: Passes over the training slice.
        batch_size: Images per step. An epoch leaves out those that do not fill a batch, different
            ones each time.
        optimizer: `"sgd"`: `CaffeSGD`, which uses `momentum`, `nesterov`, `l2`, `classifier_l2`,
            `bias_l2` and `bias_rate`; `"adamw"`, Keras's, and `"muon"`, `ConvMuon` with Keras's
            momentum (0.95, Nesterov), both with `weight_decay`. What it does not use must have its
            default.
        learning_rate: Rate of the first step, or of the first one after `warmup`.
        momentum: Momentum of SGD.
        nesterov: Whether to use Nesterov momentum.
        warmup: Epochs, or a part of one, over which the rate rises from 0; only before `"cosine"`.
        schedule: `"constant"`, which leaves the rate to callbacks; `"steps"`: times `decay` at each
            epoch of `decay_epochs`; `"exponential"`: times `decay` after every epoch; `"cosine"`:
            down to 0 at the end of the last epoch.
        decay: Factor for `"steps"` and `"exponential"`.
        decay_epochs: Epochs at which `"steps"` decays; without any, the rate stays as it is.
        first_epoch: Factor on the rate in the first epoch; only with `"steps"`.
        l2: Penalty on kernels, in the gradient (Caffe's `weight_decay`).
        classifier_l2: Factor on `l2` for the classifier's kernel.
        bias_l2: Factor on `l2` for biases and the weights of normalization.
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
    first_epoch: float = 1.0
    l2: float = 0.0
    classifier_l2: float = 10.0
    bias_l2: float = 0.0
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
        # Names of steps and initializers are checked where these are made.
        for name in ("epochs", "batch_size"):
            checks.positive_integer(name, getattr(self, name))
        for name in ("learning_rate", "decay", "first_epoch"):
            checks.number(name, getattr(self, name), above=0)
        for name in ("warmup", "bias_rate", "weight_decay", "l2", "classifier_l2", "bias_l2"):
            checks.number(name, getattr(self, name), least=0)
        for name in ("momentum", "validation"):
            checks.number(name, getattr(self, name), least=0, below=1)
        checks.number("dropout", self.dropout, least=0, most=1)
        checks.number("clip_norm", self.clip_norm, above=0, or_none=True)
        checks.one_of("optimizer", self.optimizer, ("sgd", "adamw", "muon"))
        checks.one_of("schedule", self.schedule, ("constant", "steps", "exponential", "cosine"))
        checks.one_of("dtype_policy", self.dtype_policy, ("float32", "mixed_bfloat16"))
        epochs = self.decay_epochs
        are_integers = isinstance(epochs, tuple | list) and all(isinstance(n, int) for n in epochs)
        if not are_integers or list(epochs) != sorted({n for n in epochs if n > 0}):
            raise ValueError(
                "`decay_epochs` must be a tuple of increasing positive integers, such as (60, 80). "
                f"{checks.received('decay_epochs', epochs)}"
            )
        unused = {"weight_decay"} if self.optimizer == "sgd" else set(SGD)
        unused |= {"warmup"} if self.schedule != "cosine" else set()
        unused |= {"decay"} if self.schedule in ("constant", "cosine") else set()
        unused |= {"decay_epochs", "first_epoch"} if self.schedule != "steps" else set()
        for name in sorted(unused):
            value, default = getattr(self, name), getattr(Recipe, name)
            if value != default:
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
        for name in changes:
            checks.one_of("overrides", name, vars(self))
        return dataclasses.replace(self, **changes)


RECIPES: dict[str, Recipe] = {}
RECIPES["thin"] = Recipe(
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
        "validation": "the paper compares training losses; here a tenth is held out to choose by",
    },
)
RECIPES["digits"] = RECIPES["thin"].override(
    name="digits",
    source="As `thin`, for the 1,797 bundled digits.",
    epochs=30,
    batch_size=32,
    learning_rate=0.1,
    decay=0.95,
    reasons={
        **RECIPES["thin"].reasons,
        "epochs": "so few images need more epochs than those of `thin`",
        "batch_size": "the paper names none; so few images need smaller batches",
        "learning_rate": "searched in the paper; less than `thin`'s, for smaller batches",
        "momentum": "as in `thin`",
        "decay": "slower than in `thin`, over three times the epochs",
        "preprocessing": "as in `thin`; the data set spreads its gray levels over 0 to 255",
    },
)
RECIPES["mnist"] = Recipe(
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
)
RECIPES["cifar"] = RECIPES["mnist"].override(
    name="cifar",
    source="The authors' solver for Table 3, taken over for Table 2.",
    epochs=400,
    learning_rate=0.025,
    decay_epochs=(200, 300, 350),
    preprocessing=("gcn", "mean", "times0.7"),
    augmentation=("crop8", "mirror"),
    reasons={
        "preprocessing": "the authors do not give the scale of their images: at 0.7 all three "
        "seeds train, from 0.8 on not all, and the loss before the first step is within two "
        "standard deviations of both of their logs: docs/authors-logs.md"
    },
)
RECIPES["modern-mnist"] = Recipe(
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
        "learning_rate": "a short schedule needs larger steps",
        "schedule": "ends at 0 whatever the number of epochs",
        "l2": "a tenth of the authors': thirty epochs overfit less",
        "bias_rate": "one rate for all weights, as is usual today; twice was not tried",
        "dropout": "for the same reason as `l2` half of the network's",
        "kernel_initializer": "variance 1 / fan-in: the other numbers were chosen with it",
    },
)
RECIPES["quick"] = RECIPES["modern-mnist"].override(
    name="quick",
    source="A few epochs on a laptop, for the convolutional networks.",
    epochs=5,
    l2=0.0,
    dropout=0.25,
    validation=0.1,
    reasons={
        **RECIPES["modern-mnist"].reasons,
        "epochs": "minutes on a laptop, where the authors' 300 take hours",
        "l2": "none: five epochs hardly overfit",
        "dropout": "for the same reason as `l2` a quarter of the network's",
        "validation": "a tenth is held out to choose by",
    },
)
RECIPES["modern-cifar"] = Recipe(
    name="modern-cifar",
    source="The networks of Tables 2 and 3, SGD with momentum, a quarter of the authors' epochs. "
    "Chosen with Highway A on held-out images: docs/recipes.md.",
    epochs=100,
    batch_size=100,
    learning_rate=0.2,
    nesterov=True,
    warmup=1,
    schedule="cosine",
    l2=0.0005,
    clip_norm=1.0,
    dropout=0.0,
    preprocessing=("gcn", "mean", "half"),
    augmentation=("crop4", "mirror"),
    validation=0.0,
    reasons={
        "epochs": "a quarter of the authors'",
        "learning_rate": "eight times the authors': a short schedule needs larger steps; half as "
        "much was worse after 8 epochs, one seed, images not halved",
        "warmup": "without it and `clip_norm` ten points less after 8 epochs, one seed",
        "schedule": "ends at 0 whatever the number of epochs",
        "l2": "half of the authors': fewer epochs overfit less; others were not tried",
        "bias_rate": "one rate for all weights, as is usual today; twice was not tried",
        "clip_norm": "as `warmup`",
        "dropout": "none: the best of 0, 0.25 and 0.5, as `learning_rate` was chosen",
        "preprocessing": "chosen when 1/2 and 1 were the only scales tried: docs/authors-logs.md",
        "augmentation": "up to 4 pixels to each side, as is usual today, instead of 8",
    },
)
RECIPES["fitnet"] = RECIPES["cifar"].override(
    name="fitnet",
    source="`cifar`, made fit for maxout networks without gates.",
    clip_norm=1.0,
    preprocessing=("gcn", "mean", "half"),
    reasons={
        "preprocessing": "chosen when 1/2 and 1 were the only scales tried, and not tried at 0.7",
        "clip_norm": "without it Fitnet B diverged, one seed",
    },
)
RECIPES["modern-fitnet"] = RECIPES["modern-cifar"].override(
    name="modern-fitnet",
    source="`modern-cifar` at the rate that suits maxout networks without gates.",
    learning_rate=0.1,
    reasons={
        **RECIPES["modern-cifar"].reasons,
        "learning_rate": "half of `modern-cifar`'s, chosen on held-out images at scale 1, one seed",
        "warmup": "without it and `clip_norm` Fitnet A diverged, one seed, images not halved",
        "dropout": "as in `modern-cifar`; others were not tried",
    },
)
RECIPES["muon-cifar"] = RECIPES["modern-cifar"].override(
    name="muon-cifar",
    source="`modern-cifar` with Muon, chosen with Highway A and the network of Table 3 on held-out "
    "images: docs/recipes.md.",
    optimizer="muon",
    learning_rate=0.01,
    batch_size=400,
    weight_decay=0.4,
    nesterov=False,
    l2=0.0,
    reasons={
        **RECIPES["modern-cifar"].reasons,
        "optimizer": "better than SGD on held-out images, after 8, 25 and 30 epochs, one seed",
        "batch_size": "as good as 200 for the network of Table 3 after 25 epochs, in half as many "
        "steps; for Highway A, measured later, 100 was better after 8 epochs, as good after 30, "
        "and 50 worse; one seed",
        "learning_rate": "half the rate was worse, and so was twice the rate, which was tried at a "
        "quarter of the decay; batches of 100, one seed",
        "weight_decay": "half as much was worse, twice as much about as good after 8 epochs; a "
        "quarter of it was as good after 30; batches of 100, one seed",
        "warmup": "as in `modern-cifar`; not tried without",
        "clip_norm": "as `warmup`",
        "nesterov": "SGD's; Muon has Keras's momentum, 0.95 with Nesterov",
        "l2": "`weight_decay` in its place",
        "dropout": "none: 0.25 was worse by one to three points after 25 to 50 epochs, three "
        "networks, one seed",
    },
)
RECIPES["muon-fitnet"] = RECIPES["muon-cifar"].override(
    name="muon-fitnet",
    source="`muon-cifar` at the rate that suits maxout networks without gates.",
    learning_rate=0.006,
    reasons={
        **RECIPES["muon-cifar"].reasons,
        "optimizer": "better than SGD for Fitnet A on held-out images, after 8 epochs, one seed",
        "batch_size": "as in `muon-cifar`; for Fitnet A, 100 was tried at the rate 0.01 only",
        "learning_rate": "with Fitnet A better than 0.003 and 0.01 on held-out images, 8 epochs, "
        "one seed",
        "weight_decay": "as in `muon-cifar`; for Fitnet A, 0.1 was tried in batches of 100 only",
        "dropout": "as in `muon-cifar`; others were not tried",
    },
)
RECIPES["muon-fitnet-b"] = RECIPES["muon-fitnet"].override(
    name="muon-fitnet-b",
    source="`muon-fitnet` at a rate at which Fitnet B, with 19 layers, trains.",
    learning_rate=0.003,
    reasons={
        **RECIPES["muon-fitnet"].reasons,
        "learning_rate": "at 0.006 and 0.01 Fitnet B falls to chance, one seed: docs/recipes.md",
    },
)
RECIPES["skip-2025"] = Recipe(
    name="skip-2025",
    source="The first author's comparison of January 2025: docs/skip-connections.md.",
    epochs=200,
    batch_size=128,
    learning_rate=0.1,
    schedule="steps",
    decay=0.1,
    decay_epochs=(100, 150),
    l2=1e-4,
    classifier_l2=1.0,
    bias_l2=1.0,
    preprocessing=("imagenet",),
    augmentation=("crop4", "mirror"),
    validation=0.0,
    dtype_policy="mixed_bfloat16",
    reasons={
        "augmentation": "the author pads images with black before they are normalized; here images "
        "are padded with the mean after they are normalized",
    },
)
RECIPES["skip-2025-resnet"] = RECIPES["skip-2025"].override(
    name="skip-2025-resnet",
    source="`skip-2025` with a first epoch at a tenth of the rate, as He et al. start 110 layers.",
    first_epoch=0.1,
)

# Names of the recipes for the networks of Tables 1 to 3; {} is the recipe on the network's card or,
# where there is a recipe of that name, the network itself.
VARIANTS = {"authors": "{}", "modern": "modern-{}", "muon": "muon-{}"}


def variants(card):
    """Return the recipe's name for each of `VARIANTS` that a network of the tables has."""
    names = {}
    for own in (card.recipe, card.name):  # a recipe for the network itself replaces the card's
        for variant, pattern in VARIANTS.items():
            if pattern.format(own) in RECIPES:
                names[variant] = pattern.format(own)
    return names


def get_recipe(name):
    """Return the recipe `name`, or raise a `ValueError` that lists the known names."""
    return RECIPES[checks.one_of("recipe", name, RECIPES)]


def choose_recipe(recipe, name=None, source=None):
    """Return the recipe to train a network with.

    Args:
        recipe: A `Recipe`, the name of one, or `None`: `digits` on the bundled digits, which are
            too few for any other, otherwise the one on the network's card, `quick` without a card.
            A network that is not the paper's keeps the dropout that its author chose.
        name: Registered name of the network, or `None`.
        source: Name or path of the data set.
    """
    if isinstance(recipe, Recipe):
        return recipe
    if recipe is not None:
        return get_recipe(recipe)
    if source == "digits":
        return RECIPES["digits"]
    if name is None:
        return RECIPES["quick"]
    recipe = get_recipe(get(name).recipe)
    return recipe if name in BUILT_IN else recipe.override(dropout=1.0)
