"""Loading the weights of a network from what Keras or `fit` saved, and from nothing else."""

import contextlib
import pathlib
import tempfile
import zipfile

import h5py

from highway_keras import checks

PREPROCESSOR = "preprocessor"  # the model in front of the network in what `fit` saves


def load_weights(model, weights):
    """Loads a `.weights.h5` or `.keras` file into `model`; `None` leaves it as initialized.

    Of a network behind its preprocessing, as `fit` saves it, only the network is loaded.
    """
    if weights is None:
        return model
    path = checks.existing_file("weights", weights)
    misfit = f"`weights` does not fit the model {model.name!r}. Received: weights={path}."
    try:
        with _network_weights(path) as (file, stored):
            # Keras alone would leave out what the file has in excess, and load a deeper network's.
            foreign = stored ^ {layer.name for layer in model.layers}
            if not foreign:
                model.load_weights(file)
    except Exception as error:  # damaged files raise errors of many kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{misfit} {reason:.300}") from error
    if foreign:
        names = ", ".join(sorted(map(str, foreign)))
        raise ValueError(f"{misfit} Layers that only one of them has: {names:.200}.")
    return model


@contextlib.contextmanager
def _network_weights(path):
    """A `.weights.h5` file with the network's weights alone, and the names of its layers."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        file = path
        if path.suffix == ".keras":
            archive = opened.enter_context(zipfile.ZipFile(path))
            file = opened.enter_context(archive.open("model.weights.h5"))
        content = opened.enter_context(h5py.File(file))
        names = _layer_names(content)
        if PREPROCESSOR in names.values() and len(names) == 2:
            (network,) = (key for key, name in names.items() if name != PREPROCESSOR)
            content = content["layers"][network]
            names = _layer_names(content)
        extracted = pathlib.Path(folder) / "network.weights.h5"
        with h5py.File(extracted, "w") as alone:
            for part in ("layers", "vars"):
                content.copy(part, alone)
        yield extracted, set(names.values())


def _layer_names(content):
    return {key: layer["vars"].attrs.get("name") for key, layer in content["layers"].items()}
