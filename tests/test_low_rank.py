"""Adapters of low rank: what they compute, what trains, what is saved."""

import re

import keras
import numpy as np
import pytest
from harness import array, standard_normal

from highway_keras import ConvHighway2D, Highway, HighwayStack

CASES = {
    "highway": (lambda: Highway(), (4, 6)),
    "learned carry": (lambda: Highway(carry="learned"), (4, 6)),
    "convolution": (lambda: ConvHighway2D(6, 3), (2, 5, 5, 6)),
    "stack": (lambda: HighwayStack(3), (4, 6)),
}
cases = pytest.mark.parametrize(("make", "shape"), CASES.values(), ids=CASES)
RANK = 2


def adapted(make, shape, **options):
    """A model of one layer with adapters that have learned something."""
    model = keras.Sequential([keras.Input(shape[1:]), make()])
    model.layers[0].enable_lora(RANK, **options)
    for weight in adapters(model):
        weight.assign(standard_normal(weight.shape))
    return model


def adapters(model):
    """The factors that the one layer of a model has beside its kernels."""
    found = [w for w in model.layers[0].trainable_weights if w.name.startswith("lora")]
    assert found
    return found


@cases
def test_adapters_change_nothing_until_they_learn(make, shape):
    layer = make()
    x = standard_normal(shape)
    before = layer(x)
    layer.enable_lora(RANK)
    np.testing.assert_allclose(layer(x), before, atol=1e-6)


@cases
def test_the_update_is_the_scaled_product_of_the_factors(make, shape):
    model = adapted(make, shape, lora_alpha=6)
    layer = model.layers[0]
    for name in layer.kernel_names:
        a, b = (array(getattr(layer, f"lora_{name}_{factor}")) for factor in "ab")
        expected = array(getattr(layer, f"_{name}")) + 3 * (a @ b)
        np.testing.assert_allclose(getattr(layer, name), expected, rtol=1e-5, atol=1e-5)


@cases
def test_only_adapters_and_biases_train(make, shape):
    model = adapted(make, shape)
    layer = model.layers[0]
    x = standard_normal(shape)
    before = {w.path: array(w) for w in layer.weights}
    model.compile("sgd", "mse")
    model.fit(x, -x, verbose=0)
    changed = {w.path for w in layer.weights if not np.array_equal(before[w.path], array(w))}
    kernels = {getattr(layer, f"_{name}").path for name in layer.kernel_names}
    assert changed == before.keys() - kernels
    assert len(changed) == 3 * len(layer.kernel_names)  # two factors and a bias each


@cases
def test_a_saved_model_loads_merged(make, shape, tmp_path):
    model = adapted(make, shape, lora_alpha=1)
    x = standard_normal(shape)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(x), model(x), rtol=1e-5, atol=1e-5)
    assert loaded.layers[0].lora_rank is None
    assert len(loaded.trainable_weights) == 2 * len(loaded.layers[0].kernel_names)


@cases
def test_weights_resume_with_their_adapters(make, shape, tmp_path):
    model, other = adapted(make, shape), adapted(make, shape)
    model.save_weights(tmp_path / "state.weights.h5")
    for adapter, saved in zip(adapters(other), adapters(model), strict=True):
        adapter.assign(standard_normal(adapter.shape, seed=1))
        assert not np.allclose(array(adapter), array(saved))
    other.load_weights(tmp_path / "state.weights.h5")
    for weight, loaded in zip(model.weights, other.weights, strict=True):
        np.testing.assert_array_equal(weight, loaded)


def test_weights_without_adapters_load_with_adapters_at_zero(tmp_path):
    make, shape = CASES["highway"]
    plain = keras.Sequential([keras.Input(shape[1:]), make()])
    plain.save_weights(tmp_path / "plain.weights.h5")
    model = adapted(make, shape)
    model.load_weights(tmp_path / "plain.weights.h5")
    x = standard_normal(shape)
    np.testing.assert_allclose(model(x), plain(x), rtol=1e-6)
    model.compile("sgd", "mse")
    model.fit(x, -x, epochs=2, verbose=0)  # from there they learn
    assert not np.allclose(array(model.layers[0].lora_kernel_b), 0)


@cases
@pytest.mark.parametrize("other", [{"rank": 3}, {"rank": RANK, "lora_alpha": 4}])
def test_weights_with_other_adapters_are_refused(make, shape, other, tmp_path):
    model = adapted(make, shape)
    model.save_weights(tmp_path / "state.weights.h5")
    different = keras.Sequential([keras.Input(shape[1:]), make()])
    different.layers[0].enable_lora(**other)
    message = r"rank=2 and lora_alpha=2\. Call `enable_lora` with these, or load into a layer"
    with pytest.raises(ValueError, match=message):
        different.load_weights(tmp_path / "state.weights.h5")


def test_a_stack_comes_apart_merged():
    model = adapted(*CASES["stack"])
    x = y = standard_normal((4, 6))
    for layer in model.layers[0].unstack():
        y = layer(y)
    np.testing.assert_allclose(y, model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda: Highway(), "is not built"),
        (lambda: adapted(*CASES["highway"]).layers[0], "has adapters already"),
        (lambda: built(kernel_constraint="unit_norm"), "constrains its kernels"),
        (lambda: built(dtype="int8_from_float32"), "is quantized"),
    ],
)
def test_mistakes(prepare, message):
    with pytest.raises(ValueError, match=message):
        prepare().enable_lora(RANK)


@pytest.mark.parametrize("rank", [0, 7, 10**12, 2.0, True])
def test_rank_is_at_most_the_outputs(rank):
    message = f"`rank` must be an integer of at least 1 and at most 6. Received: rank={rank}."
    with pytest.raises(ValueError, match=re.escape(message)):
        built().enable_lora(rank)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lora_alpha": np.nan},
        {"lora_alpha": 0},
        {"lora_alpha": "x"},
        {"a_initializer": "magic"},
        {"b_initializer": None},
        {"b_initializer": "magic"},
    ],
)
def test_a_mistake_leaves_the_layer_as_it_was(wrong):
    layer, (name,) = built(), wrong
    before = len(layer.weights), len(layer.trainable_weights)
    with pytest.raises(ValueError, match=rf"`{name}` must be an? .* Received: {name}=.*\.$"):
        layer.enable_lora(RANK, **wrong)
    assert (len(layer.weights), len(layer.trainable_weights)) == before


def test_kernels_with_adapters_are_not_quantized():
    with pytest.raises(ValueError, match="needs kernels without adapters"):
        adapted(*CASES["highway"]).layers[0].quantize("int8")


def built(**options):
    layer = Highway(**options)
    layer.build((None, 6))
    return layer
