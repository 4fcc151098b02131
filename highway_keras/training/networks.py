"""What is trained: a registered network, optionally with trained weights, or a user's model."""

import contextlib
import re

import keras

from highway_keras import checks, models
from highway_keras.data.normalization import GlobalContrastNormalization, MeanImage
from highway_keras.messages import notice
from highway_keras.models import shipped
from highway_keras.models.cards import check_name
from highway_keras.models.memory import check_memory
from highway_keras.runs.folder import RunFolder
from highway_keras.training.own_models import architecture, check_is_saved

SCALING = (
    keras.layers.Rescaling,
    keras.layers.Normalization,
    GlobalContrastNormalization,
    MeanImage,
)
_NUMBERED = re.compile(r"^(functional|sequential)_\d+$")  # as Keras numbers models in a process


def find_network(model, model_options=None, weights=None, freeze=False, distribute=False):
    """Return the `Registered` or `Own` network that the arguments of `fit` name."""
    checks.flag("freeze", freeze)
    if isinstance(model, keras.Model):
        return Own(model, model_options, weights, freeze, distribute)
    return Registered(model, model_options, weights, freeze)


class Registered:
    """A network of the zoo.

    Args:
        model: Its name.
        model_options: Arguments of its factory.
        weights: As for `models.create`.
        freeze: Whether only its classifier is trained.

    Attributes:
        name, dataset, input_shape: As on its card.
        settings: What `run.json` says about it.
    """

    def __init__(self, model, model_options, weights, freeze):
        self.card = models.get(model)
        self.name, self.dataset = self.card.name, self.card.dataset
        self.input_shape = self.card.input_shape
        self.options, self.freeze = _checked_options(model_options, weights), freeze
        self.settings = {"model": self.name, "model_options": model_options or {}}
        self.weights = shipped.resolve(self.name, self.options.get("weights"))
        if freeze and self.weights is None:
            raise ValueError(
                "`freeze` needs `weights`: layers that were never trained must not stay as they "
                "are. Received: freeze=True, weights=None."
            )
        if weights is not None:
            self.settings["weights"] = str(weights)
            self.settings["weights_sha256"] = shipped.sha256(self.weights)[:16]
        if freeze:
            self.settings["freeze"] = True

    def build(self, images, recipe, engine):
        """Return the network, and its twin in float32 if it computes in something else."""
        options = {"input_shape": images.input_shape, "classes": images.classes}
        if recipe.kernel_initializer and self._takes_initializer(recipe):
            options["kernel_initializer"] = recipe.kernel_initializer
        options |= self.options
        _check_preprocessing(self.weights, recipe)
        with engine.scope():
            network = self._make(options, recipe.dtype_policy)
            saved = None if recipe.dtype_policy == "float32" else self._make(options, "float32")
        check_memory(
            network.count_params(), 3, model=self.name, model_options=self.settings["model_options"]
        )
        return network, saved

    def _takes_initializer(self, recipe):
        takes = self.card.takes("kernel_initializer")
        if not takes:
            notice(
                f"{self.name!r} takes no `kernel_initializer`, so that of the recipe is left out: "
                f"{recipe.kernel_initializer!r}."
            )
        return takes

    def in_training(self):
        """Return a context in which the network is built and trained."""
        return contextlib.nullcontext()

    def _make(self, options, dtype_policy):
        with _computing_in(dtype_policy):
            network = self.card.build(**options)
        if self.freeze:
            freeze_below_top(network)
        return network


class Own:
    """A user's own `keras.Model`, which is trained in place.

    The arguments are those of `fit`; the attributes are those of a `Registered` network.
    """

    dataset = None

    def __init__(self, model, model_options, weights, freeze, distribute):
        for name, value in {"model_options": model_options, "weights": weights}.items():
            if value is not None and value != {}:
                raise ValueError(
                    f"`{name}` is for registered networks; a `keras.Model` brings its own. "
                    f"Received: {name}={checks.short_repr(value)}."
                )
        if distribute:
            raise ValueError(
                "`distribute` needs a registered network, which it builds on every device: see "
                f"`models.register`. Received: distribute=True with the model {model.name!r}."
            )
        if not getattr(model, "inputs", None) or len(model.inputs) != 1:
            raise ValueError(
                "`model` must be a registered name, or a functional or Sequential `keras.Model` "
                f"with one input. Received: model={checks.short_repr(model)}."
            )
        self.model = model
        self.name = check_name(_NUMBERED.sub(r"\1", model.name))
        shape = tuple(model.inputs[0].shape[1:])
        self.input_shape = shape if len(shape) == 3 and None not in shape else None
        self.settings = {"model": self.name, "architecture": architecture(model)}
        if freeze:
            self.settings["freeze"] = True

    @contextlib.contextmanager
    def in_training(self):
        """Return a context in which the model is trained; with `freeze`, all but its top is frozen.

        Afterwards its layers and weights are trainable as they were before.
        """
        # Layers first: setting a layer sets all layers and weights in it.
        parts = [*self.model._flatten_layers(), *self.model.variables]
        were = [(part, part.trainable) for part in parts]
        try:
            if "freeze" in self.settings:
                freeze_below_top(self.model)
            yield
        finally:
            for part, trainable in were:
                part.trainable = trainable

    def build(self, images, recipe, engine):
        """Return the model itself."""
        if recipe.dtype_policy != "float32":
            raise ValueError(
                "`dtype_policy` is for registered networks; a `keras.Model` computes in what it "
                f"was built for. Received: dtype_policy={recipe.dtype_policy!r}."
            )
        check_is_saved(self.model, images.input_shape)
        scales = any(isinstance(layer, SCALING) for layer in layers_of(self.model))
        if recipe.preprocessing and scales:
            notice(
                f"{self.name!r} scales its input itself, after the recipe's preprocessing "
                f"({', '.join(recipe.preprocessing)}). `preprocessing=()` leaves that out."
            )
        return self.model, None


def layers_of(model):
    """Yield the layers of a model, after each model among them its own layers."""
    for layer in model.layers:
        yield layer
        if isinstance(layer, keras.Model):
            yield from layers_of(layer)


def freeze_below_top(network):
    """Freeze all layers of a network but the last one that has weights.

    If that is a model, the same holds for its layers.
    """
    trained = [layer for layer in network.layers if layer.weights]
    if not trained:
        raise ValueError(
            "`freeze` needs a network with weights. "
            f"Received: freeze=True with {network.name!r}, which has none."
        )
    *below, top = trained
    for layer in below:
        layer.trainable = False
    if isinstance(top, keras.Model):
        freeze_below_top(top)


def _checked_options(model_options, weights):
    """Return the arguments of a network's factory that a user chose, `weights` among them."""
    options = {} if model_options is None else model_options
    if not isinstance(options, dict) or options.keys() & {"input_shape", "classes"}:
        raise ValueError(
            "`model_options` must be a dictionary of arguments of the network's factory, without "
            "`input_shape` and `classes`, which are those of the data set. "
            f"Received: model_options={checks.short_repr(model_options)}."
        )
    if weights is None:
        return options
    if "weights" in options:
        raise ValueError(
            f"`weights` is given twice. Received: weights={weights!r} and "
            f"model_options={checks.short_repr(options)}."
        )
    return {**options, "weights": weights}


def _check_preprocessing(weights, recipe):
    """Say so if weights were trained on images that were preprocessed differently."""
    if weights is None:
        return
    folder = RunFolder(weights.parent)
    known = folder.settings.exists()
    trained = folder.read_json() if known else shipped.entry_of(weights)
    before = trained.get("preprocessing")  # in the index of the zoo's weights
    if isinstance(trained.get("recipe"), dict):
        before = trained["recipe"].get("preprocessing")
    if isinstance(before, list) and before != list(recipe.preprocessing):
        notice(
            f"The weights expect images preprocessed by {', '.join(before) or 'nothing'}; the "
            f"recipe's preprocessing is {', '.join(recipe.preprocessing) or 'none'}."
        )


@contextlib.contextmanager
def _computing_in(dtype_policy):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype_policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
