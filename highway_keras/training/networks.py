"""What is trained: a registered network, optionally with trained weights, or a user's model."""

import contextlib
import functools
import inspect
import json
import pathlib
import re
import tempfile

import keras
import numpy as np

from highway_keras import models
from highway_keras.analysis.graph import class_of_keras
from highway_keras.data.normalization import GlobalContrastNormalization, MeanImage
from highway_keras.models import shipped
from highway_keras.models.registry import BUILT_IN, check_name
from highway_keras.models.weight_files import without_preprocessor
from highway_keras.runs import trained_file
from highway_keras.runs.folder import RunFolder
from highway_keras.training.saved_network import load_network, settings_beside
from highway_keras.util import checks
from highway_keras.util.files import digest
from highway_keras.util.messages import notice, reason

SCALING = (
    keras.layers.Rescaling,
    keras.layers.Normalization,
    GlobalContrastNormalization,
    MeanImage,
)


def named_network(model):
    """Return the network's file if a run's folder is named; a registered name comes first."""
    return model if model in models.list_models() else trained_file(model)


def find_network(model, model_options=None, weights=None, freeze=False, distribute=False):
    """Return the `RegisteredModel` or `UserModel` that the arguments of `fit` name."""
    checks.flag("freeze", freeze)
    if not isinstance(model, keras.Model) and not str(model).endswith(".keras"):
        return RegisteredModel(model, model_options, weights, freeze)
    options = {"model_options": model_options, "weights": weights, "distribute": distribute}
    for name, value in options.items():
        if value:
            raise ValueError(
                f"`{name}` is for registered networks, which `fit` builds: see "
                f"`models.register`. {checks.received(name, value)}"
            )
    if isinstance(model, keras.Model):
        return UserModel(model, freeze)
    path = checks.existing_file("model", model)
    saved, known = without_preprocessor(load_network(path)), _known(path)
    if known.get("freeze"):  # for that run alone
        for layer in saved._flatten_layers():  # `saved.trainable` is True, and TensorFlow's base
            layer.trainable = True  # class ignores what an attribute is already
    network = UserModel(saved, freeze)
    network.dataset, network.before = known.get("dataset"), known
    network.settings |= {"weights": str(path), "weights_sha256": shipped.sha256(path)[:16]}
    return network


@contextlib.contextmanager
def under_policy(dtype_policy):
    """Set Keras's global policy for a `with` block."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype_policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _known(path):
    known = settings_beside(path)
    if "results" not in known and RunFolder(path.parent).state.exists():
        notice(
            f"{path} is of a run that has not ended. The command of that run continues it, with "
            "--resume (`resume=True`); this one begins another."
        )
    return known


class RegisteredModel:
    """A network of the zoo, from the arguments of `fit`.

    `settings` is what `run.json` says about it, `before` what it says about the run that the
    weights come from, a dictionary, empty if not known.
    """

    def __init__(self, model, model_options, weights, freeze):
        self.card = models.get(model)
        self.name, self.dataset = self.card.name, self.card.dataset
        self.input_shape = self.card.input_shape
        options = {} if model_options is None else model_options
        taken = {"input_shape", "classes", "weights", "input_tensor"}
        if not isinstance(options, dict) or options.keys() & taken:
            raise ValueError(
                "`model_options` must be a dictionary of arguments of the network's factory, "
                "without `input_shape` and `classes`, which are those of the data set, `weights`, "
                "which `fit` takes itself, and `input_tensor`. "
                f"{checks.received('model_options', model_options)}"
            )
        for name in options:
            if not self.card.takes(name):
                known = inspect.signature(self.card.factory).parameters
                raise ValueError(
                    f"`model_options` must hold arguments of {self.name}, such as "
                    f"{', '.join(one for one in known if one not in taken)}. "
                    f"{checks.received('model_options', options)}"
                )
        try:
            json.dumps(options, default=lambda number: number.item())  # NumPy's, as for run.json
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(
                "`model_options` must hold what run.json can: names and numbers. For functions, "
                f"register a network. {checks.received('model_options', model_options)}"
            ) from error
        self.options = options if weights is None else {**options, "weights": weights}
        self.weights = shipped.resolve(self.name, weights)
        if freeze and self.weights is None:
            raise ValueError("`freeze=True` needs trained `weights`. Received: weights=None.")
        self.freeze = freeze
        self.settings, self.before = {"model": self.name, "model_options": options}, {}
        if weights is not None:
            self.settings["weights"] = str(weights)
            if not shipped.is_on_hub(self.weights):
                self.settings["weights_sha256"] = shipped.sha256(self.weights)[:16]
                self.before = _known(self.weights)

    @contextlib.contextmanager
    def in_training(self, images, recipe, scope):
        """Yield the network to train, built in `scope()`, and a float32 one to save its weights in.

        They are the same unless the recipe trains in another precision.
        """
        options = {"input_shape": images.input_shape, "classes": images.classes}
        if recipe.kernel_initializer and not self.card.takes("kernel_initializer"):
            notice(
                f"{self.name!r} takes no `kernel_initializer`, so that of the recipe is left out: "
                f"{recipe.kernel_initializer!r}."
            )
        elif recipe.kernel_initializer and "kernel_initializer" not in self.card.arguments:
            options["kernel_initializer"] = recipe.kernel_initializer
        options |= self.options
        _compare_preprocessing(self.before, recipe)

        def build(dtype_policy, **changes):
            with under_policy(dtype_policy):
                network = self.card.build(**{**options, **changes})
            check_name(network.name)
            if self.freeze:
                freeze_below_top(network)
            scale_dropout(network, recipe.dropout)
            return network

        with scope():
            network = build(recipe.dtype_policy)
            saved = network
            if recipe.dtype_policy != "float32":  # its weights come from the other one
                saved = build("float32", weights=None)
        if self.name not in BUILT_IN:
            check_loads_as_saved(saved, images.input_shape)
        yield network, saved


class UserModel:
    """A user's own `keras.Model`, which is trained in place.

    The arguments are those of `fit`; the attributes are those of a `RegisteredModel`.
    """

    def __init__(self, model, freeze):
        if not getattr(model, "inputs", None) or len(model.inputs) != 1:
            raise ValueError(
                "`model` must be a registered name, or a functional or Sequential `keras.Model` "
                f"with one input. {checks.received('model', model)}"
            )
        plain = class_of_keras(model)
        for method in ("call", "train_step", "test_step", "compute_loss", "compute_metrics"):
            if getattr(type(model), method) is not getattr(plain, method):
                raise ValueError(
                    f"`model` must not override `{method}`, which `fit` does not use and Keras "
                    "does not save: put it into a layer, or call `model.fit`. Received: "
                    f"{model.name!r}."
                )
        self.model, self.freeze, self.dataset, self.before = model, freeze, None, {}
        # Drop the number that Keras appends, which depends on what else the process has built.
        self.name = check_name(re.sub(r"^(functional|sequential)_\d+$", r"\1", model.name))
        shape = tuple(model.inputs[0].shape[1:])
        self.input_shape = shape if len(shape) == 3 and None not in shape else None
        trained = [model.trainable and w.trainable for w in model.weights]
        shapes = [list(w.shape) for w in model.weights]  # those of adapters, too
        self.settings = {
            "model": self.name,
            "architecture": architecture(model),
            "trained_weights": digest([shapes, trained]),
        }

    @contextlib.contextmanager
    def in_training(self, images, recipe, scope):
        """Yield the model twice; afterwards restore what it was compiled for, rates of dropout, and
        what is trainable."""
        if recipe.dtype_policy != "float32":
            raise ValueError(
                "`dtype_policy` is for registered networks; a `keras.Model` computes in what it "
                f"was built for. Received: dtype_policy={recipe.dtype_policy!r}."
            )
        takes = keras.backend.standardize_dtype(self.model.inputs[0].dtype)
        if recipe.preprocessing and "int" in takes:
            raise ValueError(
                f"{self.name!r} takes {takes}, to which preprocessed images would be rounded. "
                f"Pass preprocessing=(). {checks.received('preprocessing', recipe.preprocessing)}"
            )
        _compare_preprocessing(self.before, recipe)
        # Already in the rates of a file that `fit` saved
        factor = self.before.get("recipe", {}).get("dropout", 1.0)
        factor = self.before.get("dropout_in_file", factor)
        if recipe.dropout and not factor:
            notice(f"{self.settings['weights']} was trained without dropout, and has none.")
        scales = any(isinstance(layer, SCALING) for layer in self.model._flatten_layers())
        if recipe.preprocessing and scales:
            notice(
                f"{self.name!r} scales its input itself, after the recipe's preprocessing "
                f"({', '.join(recipe.preprocessing)}). `preprocessing=()` (--set "
                "'preprocessing=()') leaves that out."
            )
        # Layers first: setting a layer sets all layers and weights in it.
        parts = [*self.model._flatten_layers(), *self.model.variables]
        kept = [(part, "trainable", part.trainable) for part in parts]
        kept += [
            (part, "rate", part.rate) for part in parts if isinstance(part, keras.layers.Dropout)
        ]
        compiled = [part for part in parts if getattr(part, "compiled", False)]
        kept += [(part, "compiled", True) for part in compiled]
        try:
            for part in compiled:  # or Keras saves their losses in our files, unable to load them
                part.compiled = False
            check_loads_as_saved(self.model, images.input_shape)
            if self.freeze:
                freeze_below_top(self.model)
            scale_dropout(self.model, recipe.dropout / (factor or 1.0))
            yield self.model, self.model
        finally:
            for part, name, value in kept:
                setattr(part, name, value)


def _compare_preprocessing(before, recipe):
    """Give a notice if weights, of a run with the settings `before`, expect other preprocessing."""
    steps, now = before.get("recipe", {}).get("preprocessing"), recipe.preprocessing
    if steps is not None and list(steps) != list(now):
        notice(
            f"The weights expect images preprocessed by {', '.join(steps) or 'nothing'}; the "
            f"recipe's preprocessing is {', '.join(now) or 'none'}. Choose the recipe that they "
            "were trained by, or one like it."
        )


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


def scale_dropout(network, factor):
    """Multiply the rates of a network's dropout layers."""
    for layer in network._flatten_layers():
        if isinstance(layer, keras.layers.Dropout):
            layer.rate *= factor


def check_loads_as_saved(model, image_shape):
    """Raise a `ValueError`, before the training, unless Keras can save and load a model.

    The outputs are compared, too: Keras saves a function by name and loads its own one of that name
    if there is one, and a layer's `get_config` may leave something out.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "model.keras"
        try:
            model.save(file)
            loaded = keras.models.load_model(file, compile=False)
        except (MemoryError, OSError):  # a full disk
            raise
        except Exception as error:  # of many kinds
            raise ValueError(
                f"`model` must be one that Keras can save and load again. Received: {model.name!r}"
                f" ({reason(error):.200}). Layers of your own need the decorator "
                "`@keras.saving.register_keras_serializable()`; they also replace a `Lambda`."
            ) from error
    takes = model.inputs[0]
    if len(takes.shape) != 1 + len(image_shape):
        return  # the images do not fit, which `fit` reports
    # Some samples of either sign: functions may differ for one sign alone.
    shape = (8, *(n or m for n, m in zip(takes.shape[1:], image_shape, strict=True)))
    x = keras.ops.cast(np.random.default_rng(0).standard_normal(shape), takes.dtype)

    def outputs(network):
        found = keras.tree.flatten(network(x, training=False))
        flat = [keras.ops.reshape(keras.ops.cast(y, "float32"), [-1]) for y in found]
        return keras.ops.convert_to_numpy(keras.ops.concatenate(flat))

    same = functools.partial(np.allclose, rtol=1e-3, atol=1e-4, equal_nan=True)
    before = outputs(model)
    # A model that draws random numbers differs from itself, too, which is no error.
    if not same(before, outputs(loaded)) and same(before, outputs(model)):
        raise ValueError(
            f"`model` must be one that Keras can save and load again. Received: {model.name!r}, "
            "which computes something else when loaded. Functions of your own need a name that "
            "Keras does not use and the decorator `@keras.saving.register_keras_serializable()`; "
            "a layer's `get_config` must return all of its arguments."
        )


def architecture(model):
    """Return 16 hexadecimal digits that identify an architecture, whatever the names of its layers.

    Seeds are left out: a run sets the random state itself, and some layers draw a random seed.
    """
    names = {}

    def anonymous(config):
        if isinstance(config, dict):
            if isinstance(config.get("name"), str):
                names.setdefault(config["name"], f"#{len(names)}")
            return {k: None if k == "seed" else anonymous(v) for k, v in config.items()}
        return list(map(anonymous, config)) if isinstance(config, list | tuple) else config

    text = json.dumps(anonymous(model.get_config()), sort_keys=True, default=repr)
    for name, number in names.items():  # also where other layers refer to it
        text = text.replace(f'"{name}"', f'"{number}"')
    return digest(text)
