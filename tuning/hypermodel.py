"""The search space of section 3.1 as a keras-tuner HyperModel."""

import math

import keras
import numpy as np

from highway_keras.models import thin_mlp
from highway_keras.models.thin import UNITS
from highway_keras.ops import LOSS
from highway_keras.util import checks
from highway_keras.util.extras import extra

with extra("tune"):
    import keras_tuner
    from keras_tuner.errors import FailedTrialError

ACTIVATIONS = ("relu", "tanh")


class HighwayHyperModel(keras_tuner.HyperModel):
    """A thin network with the hyperparameters that the paper searched over.

    | hyperparameter | range | drawn | source |
    |---|---|---|---|
    | `learning_rate` | 10^-3 to 10^-0.5 | log | ours |
    | `one_minus_momentum` | 10^-2 to 10^-0.3 | log | ours |
    | `decay` of the learning rate, per epoch | 0.9 to 1 | evenly | ours |
    | `activation` of H | relu, tanh | evenly | the paper's |
    | `transform_bias`, highway only | -10 to -1 | evenly | the paper's |

    The paper leaves three ranges open. Our range of rates favors highway networks: deep plain and
    residual ones do best at its lower end (docs/notes/figure1.md).
    Momentum acts through 1 / (1 - momentum), the number of past gradients in a step, which is drawn
    evenly on a log scale from 2 (momentum 0.5) to 100 (0.99). A decay of 0.9 divides the rate by a
    thousand in 66 epochs; 1 keeps it.

    Every keras-tuner tuner can search it. A trial whose loss is no longer finite stops and counts
    as failed; stock tuners give up after three in a row unless `max_consecutive_failed_trials`
    allows more.

    Args:
        depth: Number of hidden layers, at least 2.
        kind: `"highway"`, `"plain"` or `"residual"`.
        input_shape: Shape of one input; it is flattened.
        classes: Number of classes.
        units: Width. Default: 50 for highway, 71 otherwise, about 5000 parameters per layer.
        activations: The activations of H to draw from, `"relu"`, `"tanh"` or both.
        learning_rate, one_minus_momentum, decay, transform_bias: The lowest and the highest value
            to draw, a pair of numbers each.

    Raises:
        ValueError: If an argument is out of its range.

    Examples:
        >>> import keras_tuner
        >>> from highway_keras.tuning import HighwayHyperModel
        >>> hypermodel = HighwayHyperModel(depth=10)
        >>> model = hypermodel.build(keras_tuner.HyperParameters())
        >>> model.count_params()
        85660

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 3.1.
    """

    def __init__(
        self,
        depth,
        kind="highway",
        input_shape=(28, 28, 1),
        classes=10,
        units=None,
        activations=ACTIVATIONS,
        learning_rate=(1e-3, 10**-0.5),
        one_minus_momentum=(1e-2, 10**-0.3),
        decay=(0.9, 1.0),
        transform_bias=(-10.0, -1.0),
    ):
        super().__init__()
        self.depth = checks.integer("depth", depth, least=2)
        self.kind = checks.one_of("kind", kind, UNITS)
        self.input_shape = tuple(map(int, input_shape))
        self.classes = checks.positive_integer("classes", classes)
        self.units = checks.positive_integer("units", units, or_none=True) or UNITS[kind]
        chosen = [activations] if isinstance(activations, str) else activations
        for activation in chosen:
            checks.one_of("activations", activation, ACTIVATIONS)
        self.activations = tuple(name for name in ACTIVATIONS if name in chosen)
        self.learning_rate = _range("learning_rate", learning_rate, above=0)
        self.one_minus_momentum = _range("one_minus_momentum", one_minus_momentum, above=0, most=1)
        self.decay = _range("decay", decay, above=0, most=1)
        self.transform_bias = _range("transform_bias", transform_bias)

    @property
    def has_gates(self):
        """Whether the blocks of this kind have a transform gate."""
        return self.kind == "highway"

    @property
    def inputs(self):
        """The number of values in one flattened input."""
        return math.prod(self.input_shape)

    def declare_hyperparameters(self, hp):
        """Register the space in `hp` and return its current values.

        Override this method to change the space for every tuner. Keep the names in the table:
        `build` and `PopulationRandomSearch` look up the values by them.

        Args:
            hp: A `keras_tuner.HyperParameters`.

        Returns:
            A dictionary from the names in the table to values.
        """
        values = {
            "learning_rate": hp.Float("learning_rate", *self.learning_rate, sampling="log"),
            "one_minus_momentum": hp.Float(
                "one_minus_momentum", *self.one_minus_momentum, sampling="log"
            ),
            "decay": hp.Float("decay", *self.decay),
            "activation": hp.Choice("activation", list(self.activations)),
        }
        if self.has_gates:
            values["transform_bias"] = hp.Float("transform_bias", *self.transform_bias)
        return values

    def build(self, hp):
        """Return the compiled Keras model of one set of hyperparameters.

        Train it with `fit` of this class, which also decays the learning rate.
        """
        values = self.declare_hyperparameters(hp)
        model = thin_mlp(
            self.depth,
            self.kind,
            self.units,
            activation=values["activation"],
            transform_bias=values.get("transform_bias"),
            input_shape=self.input_shape,
            classes=self.classes,
        )
        rate, momentum = values["learning_rate"], 1 - values["one_minus_momentum"]
        sgd = keras.optimizers.SGD(float(rate), float(momentum))
        model.compile(sgd, LOSS, metrics=["accuracy"])
        return model

    def fit(self, hp, model, *args, callbacks=None, **kwargs):
        """Fit `model` with the learning rate of `hp`, which decays from epoch to epoch.

        The other arguments are those of Keras. Its `batch_size` is 32 by default, that of a
        population 128.
        """
        values = self.declare_hyperparameters(hp)
        # By epoch number, not by steps: Hyperband resumes a trial at a later epoch.
        decay = keras.callbacks.LearningRateScheduler(
            lambda epoch: float(values["learning_rate"] * values["decay"] ** epoch)
        )
        callbacks = [decay, keras.callbacks.TerminateOnNaN(), *(callbacks or ())]
        history = model.fit(*args, callbacks=callbacks, **kwargs)
        if not np.isfinite(history.history["loss"][-1]):
            epoch = 1 + history.epoch[-1]
            raise FailedTrialError(f"The loss is no longer finite in epoch {epoch}.")
        return history


def _range(name, pair, **bounds):
    """Return the lowest and the highest value to draw, as floats."""
    low, high = pair
    return tuple(float(checks.number(name, value, **bounds)) for value in (low, high))
