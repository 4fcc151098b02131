"""Every row of the table through the harness, and the guard that every layer has a row."""

import keras
import numpy as np
import pytest
from harness import MaskProbe, array, check_layer, standard_normal
from layer_cases import CASES, named

from highway_keras import Highway, HighwayStack, HighwayWrapper, layers
from highway_keras.layers import MatchSize

pytestmark = pytest.mark.usefixtures("untraced")
# Other cases have their options.
SLOW = ("stack-gate-options", "stack-penalized", "dense-rank4", "2d-groups", "2d-penalized")
SLOW += ("3d-gate-options", "wrapped-conv2d", "wrapped-first", "wrapped-dense-gate-options")


@pytest.mark.parametrize(**named(CASES, SLOW))
def test_layer(case, tmp_path):
    check_layer(case, tmp_path)


def test_every_layer_has_a_row_and_is_registered_under_the_package():
    exported = {getattr(layers, name) for name in layers.__all__}
    assert exported == {case.layer for case in CASES}
    assert len({case.name for case in CASES}) == len(CASES)
    for layer in exported:
        assert keras.saving.get_registered_name(layer) == f"highway_keras>{layer.__name__}"


@pytest.mark.parametrize("make", [Highway, lambda **k: HighwayWrapper(keras.layers.Dense(5), **k)])
def test_a_model_may_be_built_by_its_first_fit(make):
    model = keras.Sequential([make(carry="learned"), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(standard_normal((8, 5)), standard_normal((8, 1)), verbose=0)
    assert len([w for w in model.layers[0].weights if "kernel" in w.name]) == 3


@pytest.mark.parametrize("make", [Highway, lambda **options: HighwayStack(3, **options)])
def test_the_activity_regularizer_acts_on_the_output_alone(make):
    x, layer = standard_normal((4, 5)), make(activity_regularizer=keras.regularizers.L2(0.5))
    inputs = keras.Input((5,))
    model = keras.Model(inputs, layer(inputs, return_gate=True)[0])
    model.compile("sgd", "mse", jit_compile=False)
    expected = 0.5 * (array(layer(x)) ** 2).sum() / 4
    for return_gate in (False, True):
        layer(x, return_gate=return_gate)
        np.testing.assert_allclose([array(loss) for loss in layer.losses], [expected], rtol=1e-5)
    y = array(model(x))
    np.testing.assert_allclose(model.evaluate(x, y, verbose=0), expected, rtol=1e-5)


def test_wrapper_passes_the_mask_to_its_layer():
    wrapper = HighwayWrapper(keras.layers.LSTM(3, return_sequences=True))
    x = standard_normal((2, 6, 3))
    x[:, :2] = 5
    masked = keras.layers.Masking(mask_value=5)(x)
    # With the mask, the LSTM starts at the first step that it lets through.
    np.testing.assert_allclose(array(wrapper(masked))[:, 2:], array(wrapper(x[:, 2:])), atol=1e-6)
    assert not np.allclose(array(wrapper(x))[:, 2:], array(wrapper(x[:, 2:])), atol=1e-4)


class Own(keras.layers.Layer):
    """A layer of a user's own with nothing but `build` and `call`, and no kernel of its size."""

    kernel_size = 3

    def build(self, input_shape):
        self.own = self.add_weight(shape=(input_shape[-1], input_shape[-1]))

    def call(self, x):
        return keras.ops.tanh(x @ self.own)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_wrapper_takes_layers_of_a_users_own(policy):
    keras.config.set_dtype_policy(policy)
    layer = Own()
    wrapper, x = HighwayWrapper(layer), standard_normal((2, 3, 4))
    assert wrapper(keras.Input((3, 4))).shape == (None, 3, 4)
    assert tuple(wrapper.transform_kernel.shape) == (4, 4)
    y, t = (array(z).astype("float32") for z in wrapper(x, return_gate=True))
    h = array(layer(x)).astype("float32")
    np.testing.assert_allclose(y, x + t * (h - x), atol=1e-6 if policy == "float32" else 0.05)


def test_wrapped_attention_attends_to_its_input():
    layer, x = keras.layers.Attention(), standard_normal((2, 3, 4))
    y, t = (array(z) for z in HighwayWrapper(layer)(x, return_gate=True))
    np.testing.assert_allclose(y, x + t * (array(layer([x, x])) - x), atol=1e-6)


def test_a_frozen_wrapper_and_its_copies_train_nothing():
    wrappers = [HighwayWrapper(keras.layers.Dense(4), trainable=flag) for flag in (False, True)]
    wrappers[1].trainable = False
    for wrapper in wrappers:
        inputs = keras.Input((4,))
        model = keras.Model(inputs, wrapper(inputs))
        copy = keras.models.clone_model(model)
        assert not model.trainable_weights and not copy.trainable_weights
        copy.layers[1].trainable = True
        assert len(copy.trainable_weights) == 4


def test_wrapper_layer_and_gate_may_have_different_dtype_policies():
    h, gate = (keras.layers.Dense(3, "sigmoid", dtype="float32") for _ in range(2))
    for options in ({}, {"transform": gate}):
        wrapper = HighwayWrapper(h, **options, dtype="mixed_bfloat16")
        outputs = wrapper(standard_normal((2, 3)))
        assert keras.backend.standardize_dtype(outputs.dtype) == "bfloat16"
        assert wrapper(keras.Input((3,))).dtype == "bfloat16"


def test_wrapper_trains_the_layer_in_training_mode():
    wrapper = HighwayWrapper(keras.layers.Dropout(0.5), transform_bias_initializer=30)
    x = np.ones((50, 20), "float32")
    np.testing.assert_allclose(array(wrapper(x)), x, atol=1e-6)
    assert 0.4 < (array(wrapper(x, training=True)) == 0).mean() < 0.6


def test_match_size_samples_the_mask_with_the_steps():
    x = standard_normal((2, 5, 3))
    x[:, 2] = 0
    mask = MaskProbe()(MatchSize(strides=2)(keras.layers.Masking()(x)))
    np.testing.assert_array_equal(array(mask), 2 * [[True, False, True]])
    of_images = MatchSize(strides=2).compute_mask(None, np.ones((2, 8, 7), bool))
    assert of_images.shape == (2, 4, 4)


@pytest.mark.parametrize("make", [Highway, lambda **k: HighwayStack(2, **k)])
def test_weights_load_only_with_the_activations_they_were_trained_with(make, tmp_path):
    def model(**options):
        return keras.Sequential([keras.Input((4,)), make(**options)])

    trained = model(activation="tanh")
    trained.save_weights(tmp_path / "w.weights.h5")
    same = model(activation="tanh")
    same.load_weights(tmp_path / "w.weights.h5")
    np.testing.assert_array_equal(same.get_weights()[0], trained.get_weights()[0])
    for options in ({}, {"activation": "tanh", "transform_activation": "hard_sigmoid"}):
        with pytest.raises(ValueError, match=r"activation.*tanh, sigmoid in the file"):
            model(**options).load_weights(tmp_path / "w.weights.h5")
