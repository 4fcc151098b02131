"""Quantization to int8: kernels by hand, outputs and accuracy near the float ones, and files."""

import dataclasses
import json
import zipfile

import keras
import numpy as np
import pytest
from harness import array, standard_normal
from selection import all_but

from highway_keras import analysis, data, export, layers
from highway_keras.export import verification
from highway_keras.layers import ConvHighway1D, ConvHighway2D, ConvHighway3D, Highway, HighwayStack

pytestmark = pytest.mark.filterwarnings("ignore:.* does not have a `quantize` method")
needs_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="traced by TensorFlow"
)
LEARNED = {"carry": "learned", "carry_bias_initializer": 1.0}
# A layer, the shape of one batch, and the axes of its kernels that have one scale in common.
LAYERS = {
    "dense": (lambda: Highway(**LEARNED), (4, 6), 0),
    "stack": (lambda: HighwayStack(5, use_bias=False, **LEARNED), (4, 6), 1),
    "conv1d": (lambda: ConvHighway1D(4, 3, padding="causal"), (4, 7, 4), (0, 1)),
    "conv2d": (lambda: ConvHighway2D(4, 3, transform_kernel_size=1), (4, 5, 6, 4), (0, 1, 2)),
    "groups": (lambda: ConvHighway2D(4, 3, groups=2), (4, 5, 6, 4), (0, 1, 2)),
    "conv3d": (lambda: ConvHighway3D(2, 3), (2, 4, 4, 4, 2), (0, 1, 2, 3)),
}


@pytest.fixture(params=all_but(("dense", "stack", "conv2d"), LAYERS))
def case(request):
    make, shape, summed = LAYERS[request.param]
    layer = make()
    layer.build(shape)
    return layer, standard_normal(shape), summed


@pytest.fixture(scope="module")
def digits():
    return data.load("digits")


def by_hand(kernel, summed):
    """A float kernel as int8 numbers and scales."""
    scale = 127 / np.abs(kernel).max(axis=summed, keepdims=True)
    return np.round(kernel * scale), scale


# Layers


def test_kernels_are_rounded_and_the_rest_stays(case):
    layer, _, summed = case
    floats = {name: array(getattr(layer, name)) for name in layer.kernel_names}
    biases = {w.name: array(w) for w in layer.weights if w.name.endswith("bias")}
    assert len(floats) + len(biases) == len(layer.weights)
    layer.quantize("int8")
    for name, kernel in floats.items():
        values, scale = by_hand(kernel, summed)
        stored = getattr(layer, f"{name}_int8")
        assert stored.dtype == "int8" and not stored.trainable
        np.testing.assert_array_equal(array(stored), values)
        np.testing.assert_allclose(array(getattr(layer, f"{name}_scale")), scale, rtol=1e-5)
        np.testing.assert_allclose(array(getattr(layer, name)), values / scale, rtol=1e-5)
        assert (np.abs(array(getattr(layer, name)) - kernel) <= 0.501 / scale).all()
    for weight in layer.trainable_weights:
        np.testing.assert_array_equal(array(weight), biases.pop(weight.name))
    assert not biases
    assert len(layer.weights) == len(layer.trainable_weights) + 2 * len(floats)


def test_outputs_are_those_of_the_rounded_kernels(case):
    layer, x, _ = case
    before = array(layer(x))
    twin = type(layer).from_config(layer.get_config())
    twin.build(x.shape)
    twin.set_weights(layer.get_weights())
    layer.quantize("int8")
    for name in layer.kernel_names:
        getattr(twin, name).assign(array(getattr(layer, name)))
    np.testing.assert_allclose(array(layer(x)), array(twin(x)), atol=1e-5)
    change = np.abs(array(layer(x)) - before).max()
    assert 0 < change < 0.05


def test_saved_and_loaded(case, tmp_path):
    layer, x, _ = case
    model = keras.Sequential([keras.Input(x.shape[1:]), layer])
    model.quantize("int8")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert [w.dtype for w in loaded.weights] == [w.dtype for w in model.weights]
    np.testing.assert_array_equal(array(loaded(x)), array(model(x)))
    np.testing.assert_allclose(loaded.predict(x, verbose=0), array(model(x)), atol=1e-5)


def test_a_quantized_stack_is_the_chain_of_its_layers():
    stack, x = HighwayStack(3, **LEARNED), standard_normal((4, 6))
    stack.build(x.shape)
    stack.quantize("int8")
    chain = keras.Sequential(stack.unstack())
    assert chain.layers[0].kernel_int8.shape == (6, 6)
    np.testing.assert_allclose(array(chain(x)), array(stack(x)), atol=1e-5)
    again = HighwayStack.from_layers(chain.layers)
    np.testing.assert_array_equal(array(again(x)), array(stack(x)))


@pytest.mark.parametrize("wrapped", [keras.layers.Dense, lambda n: keras.layers.Conv1D(n, 1)])
def test_a_wrapper_keeps_what_keras_quantized_in_it(wrapped, tmp_path):
    x = standard_normal((4, 5, 6))
    layer = layers.HighwayWrapper(wrapped(6), carry="learned")
    model = keras.Sequential([keras.Input((5, 6)), layer])
    model.quantize("int8")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert [w.dtype for w in loaded.weights] == [w.dtype for w in model.weights]
    np.testing.assert_array_equal(array(loaded(x)), array(model(x)))


def test_mixed_precision():
    x = standard_normal((4, 6))
    layer = HighwayStack(3, dtype="mixed_bfloat16")
    before = array(layer(x))
    layer.quantize("int8")
    outputs = layer(x)
    assert keras.backend.standardize_dtype(outputs.dtype) == "bfloat16"
    np.testing.assert_allclose(array(outputs), before, atol=0.05)


def test_biases_still_train():
    model = keras.Sequential([keras.Input((6,)), HighwayStack(3, kernel_regularizer="l2")])
    model.quantize("int8")
    assert model.losses == []
    kernel, bias = array(model.layers[0].kernel_int8), array(model.layers[0].bias)
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(standard_normal((8, 6)), standard_normal((8, 6), seed=1), verbose=0)
    np.testing.assert_array_equal(array(model.layers[0].kernel_int8), kernel)
    assert np.any(array(model.layers[0].bias) != bias)


def test_analysis_measures_the_rounded_kernels():
    inputs = keras.Input((6,))
    x = HighwayStack(2)(Highway()(inputs))
    model = keras.Model(inputs, keras.layers.Softmax()(x))
    model.quantize("int8")
    x, y = standard_normal((8, 6)), np.arange(8) % 6
    assert analysis.gates(model, x).values.shape == (8, 3, 6)
    found = analysis.lesions(model, x, y, verbose=0)
    assert found.intact_error == np.mean(array(model(x)).argmax(-1) != y)


def test_a_kernel_of_zeros_stays_zero():
    layer = Highway(kernel_initializer="zeros")
    layer.build((None, 6))
    layer.quantize("int8")
    np.testing.assert_array_equal(array(layer.kernel), 0)


# Mistakes


def test_other_modes_leave_the_layer_alone():
    model = keras.Sequential([keras.Input((6,)), Highway()])
    before = model.get_weights()
    with pytest.warns(
        UserWarning, match=r"`mode` must be 'int8' for a `Highway`. Received: mode='"
    ):
        model.quantize("float8")
    np.testing.assert_equal(model.get_weights(), before)
    with pytest.raises(NotImplementedError, match="`mode` must be 'int8' for a `Highway`"):
        Highway(dtype="float8_from_float32").build((None, 6))


def test_a_layer_without_weights_cannot_be_quantized():
    with pytest.raises(ValueError, match="Cannot quantize a layer that isn't yet built"):
        Highway().quantize("int8")


# Networks


def network(digits):
    return keras.Sequential(
        [
            keras.Input(digits.input_shape),
            data.preprocessor(("scale", "mean"), digits.x_train),
            ConvHighway2D(1, 3),
            keras.layers.Flatten(),
            keras.layers.Dense(24),
            HighwayStack(6, activation="tanh"),
            Highway(),
            keras.layers.Dense(digits.classes, activation="softmax"),
        ]
    )


@pytest.fixture(scope="module")
def small(digits, tmp_path_factory):
    """A network, and the int8 file of it."""
    model, path = network(digits), tmp_path_factory.mktemp("small") / "small.keras"
    before = model.get_weights()
    export.export(model, path, "keras", "int8", verify=False)
    np.testing.assert_equal(model.get_weights(), before)
    return model, path


def test_what_is_exported_is_what_keras_quantizes(small):
    model, path = small
    twin = keras.models.clone_model(model)
    twin.set_weights(model.get_weights())
    twin.quantize("int8")
    loaded = keras.models.load_model(path)
    np.testing.assert_equal(loaded.get_weights(), twin.get_weights())
    assert sum(w.dtype == "int8" for w in loaded.weights) == 2 * 3 + 2  # Keras's own, too
    card = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert (card["format"], card["quantize"]) == ("keras", "int8")
    assert card["parameters"] == model.count_params()


@pytest.fixture(scope="module")
def trained(digits):
    model = network(digits)
    model.compile(keras.optimizers.Adam(0.005), "sparse_categorical_crossentropy")
    model.fit(digits.x_train, digits.y_train, epochs=12, verbose=0)
    return model


@pytest.mark.slow
def test_exported_for_keras(trained, digits, tmp_path):
    done = export.export(trained, tmp_path / "small.keras", "keras", "int8", digits)
    assert done.keras_accuracy > 0.9
    assert abs(done.accuracy - done.keras_accuracy) <= 0.01
    assert 0 < done.difference < 0.1


@pytest.mark.slow
def test_a_file_in_floating_point_loses_the_optimizers(trained, digits, tmp_path):
    both = keras.Sequential([keras.Input(digits.input_shape), trained])
    both.compile("adam", "mse")
    both.save(tmp_path / "with_optimizers.keras")
    done = export.export(both, tmp_path / "without.keras", "keras", dataset=digits)
    assert done.difference <= 1e-5
    assert trained.optimizer is not None
    with zipfile.ZipFile(tmp_path / "with_optimizers.keras") as file:
        assert b"optimizer" in file.read("model.weights.h5")
    with zipfile.ZipFile(tmp_path / "without.keras") as file:
        assert b"optimizer" not in file.read("model.weights.h5")


@needs_tensorflow
def test_a_quantized_network_is_served_by_tensorflow(small, digits):
    from highway_keras.export.writers import classifier

    model = keras.models.load_model(small[1])
    expected = model.predict(digits.x_test[:50], verbose=0)
    outputs = classifier(model)(digits.x_test[:50])
    np.testing.assert_allclose(array(outputs["probabilities"]), expected, atol=1e-5)


@needs_tensorflow
def test_a_quantized_network_is_verified_as_such(small, digits, tmp_path, monkeypatch):
    """It rounds its inputs: a difference of 1e-7 may become one of a step of int8."""
    asked = []
    monkeypatch.setattr(verification, "verify", lambda *args: asked.append(args) or {})
    export.export(small[1], tmp_path / "out", dataset=digits)
    assert asked[0][1:3] == ("saved_model", "int8") and len(asked[0][3]) == len(digits.x_test)


@needs_tensorflow
def test_other_runtimes_want_the_float_network(small, digits, tmp_path, monkeypatch):
    installed = dataclasses.replace(export.FORMATS["onnx"], packages=())
    monkeypatch.setitem(export.FORMATS, "onnx", installed)
    text = r"format='onnx'` cannot compute .*Received: a network quantized to int8\. Export th"
    with pytest.raises(ValueError, match=text):
        export.export(small[1], tmp_path / "out.onnx", "onnx", dataset=digits)
    assert not (tmp_path / "out.onnx").exists()
