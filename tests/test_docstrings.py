"""The examples in the docstrings run and print what they say."""

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import types

import keras
import numpy as np
import pytest

import highway_keras
from highway_keras import layers

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# These three rooms lie beside the package, where walking its folder does not come by.
PACKAGES = ("highway_keras", *(f"highway_keras.{room}" for room in ("models", "results", "tuning")))
IMAGES = np.random.default_rng(0).integers(0, 256, (100, 32, 32, 3), "uint8")
# Names that examples use without defining them
GIVEN = {"images": IMAGES, "x_train": IMAGES.astype("float32"), "network": keras.layers.Flatten()}
GIVEN["data"] = types.SimpleNamespace(x_train=IMAGES, input_shape=IMAGES.shape[1:])
PUBLIC = [getattr(layers, name) for name in layers.__all__]
PUBLIC += [highway_keras.TransformBias, highway_keras.ops.highway]


def modules_with_examples():
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        below = (found.name for found in pkgutil.walk_packages(path, f"{package}."))
        for spec in map(importlib.util.find_spec, (package, *below)):
            if ">>>" in spec.loader.get_source(spec.name):
                yield spec.name


@pytest.mark.parametrize("name", sorted(set(modules_with_examples())))
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    given = {key: value for key, value in GIVEN.items() if not hasattr(module, key)}
    results = doctest.testmod(module, extraglobs=given, optionflags=FLAGS)
    assert results.attempted and not results.failed


@pytest.mark.parametrize("thing", PUBLIC, ids=lambda thing: thing.__name__)
def test_docstring_is_complete(thing):
    text = inspect.getdoc(thing)
    assert "Examples:" in text and ">>>" in text
    assert described_arguments(thing) >= set(inspect.signature(thing).parameters)


def described_arguments(thing):
    """The arguments that a docstring describes, itself or by referring to another docstring."""
    text = inspect.getdoc(thing)
    arguments = text.partition("\nArgs:\n")[2].partition("\n\n")[0]
    heads = re.findall(r"^ {4}(?! )([\w*,\s]+):", arguments, re.MULTILINE)
    described = set(re.findall(r"\w+", " ".join(heads)))
    for other in re.findall(r"arguments[^.]* are those of `(?:highway_keras\.)?(\w+)`", text):
        described |= described_arguments(getattr(highway_keras, other))
    return described
