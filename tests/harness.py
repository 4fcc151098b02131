"""What every layer must do, checked on one row of the table; and gradients on any backend."""

import inspect
import json

import keras
import numpy as np
from keras import ops
from layer_cases import GATED

from highway_keras.layers.backends import shim


def check_layer(case, folder):
    """Run every check on the layer of `case`; `folder` takes its saved model."""
    x = standard_normal(case.input_shape)
    assert built(case).count_params() == case.parameters
    check_config(case)
    check_shapes(case, x)
    check_model(case, x, folder / "layer.keras")
    check_mixed_precision(case, x)
    if case in GATED:
        check_signature(case)
        check_gate(case, x)
    if len(case.input_shape) == 3 and case.input_shape[1] == case.expected_shape[1]:
        check_mask(case, x)


def check_config(case):
    layer = case.make(name="kept")
    stored = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    copy = keras.saving.deserialize_keras_object(stored)
    assert type(copy) is case.layer and copy.name == "kept"
    one, other = (json.dumps(x.get_config(), sort_keys=True, default=str) for x in (copy, layer))
    assert one == other


def check_shapes(case, x):
    layer = built(case)
    assert tuple(layer.compute_output_shape(case.input_shape)) == case.expected_shape
    eager, symbolic = layer(x), case.make()(keras.Input(case.input_shape[1:]))
    assert tuple(eager.shape) == case.expected_shape
    assert symbolic.shape == (None, *case.expected_shape[1:])
    assert symbolic.dtype == keras.backend.standardize_dtype(eager.dtype)


def check_mixed_precision(case, x):
    layer = built(case)
    keras.config.set_dtype_policy("mixed_bfloat16")
    mixed = built(case)
    keras.config.set_dtype_policy("float32")
    assert {w.dtype for w in mixed.trainable_weights} <= {"float32"}
    mixed.set_weights(layer.get_weights())
    outputs = mixed(x)
    assert keras.backend.standardize_dtype(outputs.dtype) == "bfloat16"
    np.testing.assert_allclose(array(outputs), array(layer(x)), atol=0.05)


def check_model(case, x, path):
    """A model is saved and loaded, and a step of training moves all its weights."""
    model = keras.Sequential([keras.Input(case.input_shape[1:]), case.make()])
    before = model.get_weights()
    model.save(path)
    np.testing.assert_array_equal(array(keras.models.load_model(path)(x)), array(model(x)))
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
    loss = model.fit(x, standard_normal(case.expected_shape), verbose=0).history["loss"]
    assert np.isfinite(loss).all()
    moved = [np.any(a != b) for a, b in zip(before, model.get_weights(), strict=True)]
    assert all(moved), [w.path for w, m in zip(model.weights, moved, strict=True) if not m]


def check_signature(case):
    """Every option is an argument of its own, and is saved."""
    options = set(inspect.signature(case.layer).parameters) - {"kwargs"}
    left_out = options - set(case.make().get_config())
    assert left_out <= {"activity_regularizer", "transform"}  # where they are `None`


def check_gate(case, x):
    layer = case.make()
    outputs, gate = (array(z) for z in layer(x, return_gate=True))
    np.testing.assert_array_equal(outputs, array(layer(x)))
    assert gate.shape == case.gate_shape
    np.testing.assert_array_equal(array(layer.gate(x)), gate)
    assert (gate >= 0).all() and (gate <= 1).all()
    inputs = keras.Input(case.input_shape[1:])
    model = keras.Model(inputs, layer(inputs, return_gate=True)[1])
    assert tuple(n or len(x) for n in model.outputs[0].shape) == case.gate_shape
    np.testing.assert_array_equal(array(model(x)), gate)


def check_mask(case, x):
    x = np.where(np.arange(x.shape[1])[None, :, None] == 1, 0, x)
    masked = keras.layers.Masking()(x)
    mask = MaskProbe()(case.make()(masked))
    np.testing.assert_array_equal(array(mask), (x != 0).any(-1))


class MaskProbe(keras.Layer):
    """A layer that returns the mask that reaches it."""

    supports_masking = True

    def call(self, inputs, mask=None):
        assert mask is not None, "the mask was lost"
        return mask


def built(case, **changes):
    layer = case.make(**changes)
    layer.build(case.input_shape)
    return layer


def standard_normal(shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype("float32")


def array(tensor):
    """Return a tensor of any dtype as a NumPy array of numbers that NumPy knows."""
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    return ops.convert_to_numpy(ops.cast(tensor, "float32") if dtype == "bfloat16" else tensor)


def named_weights(layer):
    """Return the weights of a layer in float64, by the names of its attributes, in order."""
    parts = ("", "transform_", "carry_")
    names = [f"{part}{kind}" for part in parts for kind in ("kernel", "bias")]
    weights = {name: getattr(layer, name, None) for name in names}
    return {k: array(w).astype("float64") for k, w in weights.items() if w is not None}


def shaken(layer):
    """A layer or model with biases away from their start, so that each one shows."""
    for weight in layer.trainable_weights:
        if "bias" in weight.name:
            weight.assign(weight + 0.3 * standard_normal(weight.shape, seed=1))
    return layer


def value_and_gradients(function, values, wrap=lambda f: f):
    """The value of a scalar function and its gradients, in NumPy; on TensorFlow, `wrap` traces."""
    values, backend = [ops.convert_to_tensor(v) for v in values], keras.backend.backend()

    def run(*values):
        return shim.gradients(lambda values: 2 * (function(*values),), values)

    if backend == "torch":
        import torch

        values = [v.detach().clone().requires_grad_() for v in values]
        value = function(*values)
        results = torch.autograd.grad(value, values)
    else:
        value, results = (shim.compiled(run) if backend == "jax" else wrap(run))(*values)
    return [ops.convert_to_numpy(z) for z in (value, *results)]
