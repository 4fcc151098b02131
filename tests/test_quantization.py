"""Networks in int8: what is exported, how it is verified and served."""

import dataclasses
import json
import zipfile

import keras
import numpy as np
import pytest
from harness import array
from helpers import needs_tensorflow
from keras.layers import Dense, Flatten

from highway_keras import data, export
from highway_keras.export.writers import classifier, unrolled
from highway_keras.layers import ConvHighway2D, Highway, HighwayStack

pytestmark = pytest.mark.filterwarnings("ignore:.* does not have a `quantize` method")


def network(digits):
    start = [keras.Input((8, 8, 1)), data.preprocessor(("scale", "mean"), digits.x_train)]
    layers = [ConvHighway2D(1, 3), Flatten(), Dense(24), HighwayStack(2, activation="tanh")]
    return keras.Sequential([*start, *layers, Highway(), Dense(10, activation="softmax")])


@pytest.fixture(scope="module")
def small(digits, tmp_path_factory):
    """A network, and the int8 file of it."""
    model, path = network(digits), tmp_path_factory.mktemp("small") / "small.keras"
    before = model.get_weights()
    export.export(model, path, "keras", "int8", verify=False)
    np.testing.assert_equal(model.get_weights(), before)
    return model, path


def test_what_is_exported_is_what_keras_quantizes(small, tmp_path):
    model, path = small
    chain = unrolled(model)
    twin = keras.models.clone_model(chain)
    twin.set_weights(chain.get_weights())
    twin.quantize("int8")
    loaded = keras.models.load_model(path)
    np.testing.assert_equal(loaded.get_weights(), twin.get_weights())
    assert sum(w.dtype == "int8" for w in loaded.weights) == 2 * 3 + 2  # and no convolution
    loaded.save(tmp_path / "by_keras.keras")
    assert path.stat().st_size < 0.5 * (tmp_path / "by_keras.keras").stat().st_size
    card = json.loads(path.with_name(f"{path.name}.json").read_text("utf-8"))
    assert (card["format"], card["quantize"]) == ("keras", "int8")
    assert card["parameters"] == model.count_params()


@pytest.mark.slow
def test_exported_for_keras(digits, tmp_path):
    model = network(digits)
    model.compile(keras.optimizers.Adam(0.005), "sparse_categorical_crossentropy")
    model.fit(digits.x_train, digits.y_train, epochs=12, verbose=0)
    done = export.export(model, tmp_path / "small.keras", "keras", "int8", digits)
    assert done.keras_accuracy > 0.9 and 0 < done.difference < 0.1
    # In floating point, the file leaves out the optimizer.
    assert export.export(model, tmp_path / "float.keras", "keras", None, digits).difference <= 1e-5
    with zipfile.ZipFile(tmp_path / "float.keras") as file:
        assert b"optimizer" not in file.read("model.weights.h5")


@needs_tensorflow
def test_a_quantized_network_is_served_by_tensorflow(small, digits):
    model = keras.models.load_model(small[1])
    expected = model.predict(digits.x_test[:50], verbose=0)
    outputs = classifier(model)(digits.x_test[:50])
    np.testing.assert_allclose(array(outputs["probabilities"]), expected, atol=1e-5)


@needs_tensorflow
def test_other_runtimes_want_the_float_network(small, digits, tmp_path, monkeypatch):
    installed = dataclasses.replace(export.FORMATS["onnx"], packages=())
    monkeypatch.setitem(export.FORMATS, "onnx", installed)
    with pytest.raises(ValueError, match=r"`format='onnx'`.*int8"):
        export.export(small[1], tmp_path / "out.onnx", "onnx", dataset=digits)
    assert not (tmp_path / "out.onnx").exists()
