"""Adapters of low rank and int8, which a highway layer leaves to Keras's layers in it."""

import keras
import numpy as np
import pytest
from harness import array, standard_normal

from highway_keras import ConvHighway2D, Highway, HighwayStack, HighwayWrapper, analysis

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* does not have a `quantize` method"),
    pytest.mark.usefixtures("untraced"),
]
CASES = {
    "dense": (lambda: Highway(carry="learned"), (4, 6)),
    "convolution": (lambda: ConvHighway2D(6, 3), (2, 5, 5, 6)),
    "wrapper": (lambda: HighwayWrapper(keras.layers.Dense(6), carry="learned"), (4, 5, 6)),
}
cases = pytest.mark.parametrize(("make", "shape"), CASES.values(), ids=CASES)


def sequential(make, shape):
    return keras.Sequential([keras.Input(shape[1:]), make()])


@cases
def test_adapters_learn_and_a_saved_model_loads_merged(make, shape, tmp_path):
    model, x = sequential(make, shape), standard_normal(shape)
    (layer,), before = model.layers, array(model(x))
    layer.enable_lora(2, lora_alpha=6)
    np.testing.assert_allclose(array(model(x)), before, atol=1e-6)
    parts = layer.sublayers
    fixed = [array(part._kernel) for part in parts]
    model.compile("sgd", "mse")
    model.fit(x, -x, epochs=2, verbose=0)
    trained = {w.path.removeprefix(layer.path) for w in layer.trainable_weights}
    weights = ("lora_kernel_a", "lora_kernel_b", "bias")
    assert trained == {f"/{part.name}/{weight}" for part in parts for weight in weights}
    for part, kernel in zip(parts, fixed, strict=True):
        np.testing.assert_array_equal(array(part._kernel), kernel)
        update = 3 * array(part.lora_kernel_a) @ array(part.lora_kernel_b)
        assert update.any()
        np.testing.assert_allclose(array(part.kernel), kernel + update, rtol=1e-5, atol=1e-6)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(array(loaded(x)), array(model(x)), rtol=1e-5, atol=1e-5)


@cases
def test_a_quantized_layer_saves_and_loads(make, shape, tmp_path):
    model, x = sequential(make, shape), standard_normal(shape)
    before = array(model(x))
    model.quantize("int8")
    dense = sum(isinstance(part, keras.layers.Dense) for part in model.layers[0].sublayers)
    assert sum(w.dtype == "int8" for w in model.weights) == dense
    np.testing.assert_allclose(array(model(x)), before, atol=0.1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert [w.dtype for w in loaded.weights] == [w.dtype for w in model.weights]
    np.testing.assert_array_equal(array(loaded(x)), array(model(x)))
    again = keras.models.clone_model(loaded)
    assert [w.dtype for w in again.weights] == [w.dtype for w in model.weights]


def test_a_chain_of_merged_layers_is_a_stack():
    chain, x = [Highway() for _ in range(3)], standard_normal((4, 6))
    model = keras.Sequential([keras.Input((6,)), *chain])
    for layer in chain:
        layer.enable_lora(2, b_initializer="ones")
    stack = HighwayStack.from_layers(chain)
    np.testing.assert_allclose(array(stack(x)), array(model(x)), rtol=1e-5, atol=1e-5)


def test_analysis_measures_the_quantized_layers():
    inputs = keras.Input((6,))
    model = keras.Model(inputs, keras.layers.Softmax()(Highway()(Highway()(inputs))))
    model.quantize("int8")
    x, y = standard_normal((8, 6)), np.arange(8) % 6
    found = analysis.lesions(model, x, y, verbose=0)
    assert found.intact_error == np.mean(array(model(x)).argmax(-1) != y)
    _, _, second, top = model.layers
    loss = keras.losses.sparse_categorical_crossentropy(y, top(second(x)))
    np.testing.assert_allclose(found.loss[0], array(loss).mean(), rtol=1e-5)
