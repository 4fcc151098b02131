"""A stack against the chain of `Highway` layers that it stands for."""

import keras
import numpy as np
import pytest
from harness import array, standard_normal
from helpers import needs_tensorflow

from highway_keras import Highway, HighwayStack


def built_stack(depth, width=6, **options):
    stack = HighwayStack(depth, **options)
    stack.build((None, width))
    for seed, weight in enumerate(stack.weights):
        weight.assign(weight + 0.2 * standard_normal(weight.shape, seed))
    return stack


def as_chain(layers, width=6):
    return keras.Sequential([keras.Input((width,)), *layers])


LOW = keras.constraints.MaxNorm(0.9)
OPTIONS = {
    "learned": {"activation": "tanh", "carry": "learned", "rematerialize": True},
    "penalized": {"use_bias": False, "kernel_regularizer": "l2", "kernel_constraint": LOW},
    "penalized-bias": {"bias_regularizer": "l1"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_fit_equals_the_chains(options):
    """Losses with their penalties, and the weights after some steps, so the gradients, too."""
    stack, x = built_stack(5, **options), standard_normal((32, 6))
    chain, losses = stack.unstack(), []
    np.testing.assert_allclose(array(stack(x)), array(as_chain(chain)(x)), atol=1e-6)
    for layers in (chain, [stack]):
        model = as_chain(layers)
        model.compile(keras.optimizers.SGD(0.1, 0.9), "mse", jit_compile=False)
        losses.append(model.fit(x, -x, epochs=3, shuffle=False, verbose=0).history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-5)
    again = HighwayStack.from_layers(chain)
    for actual, expected in zip(again.get_weights(), stack.get_weights(), strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-5)
    if "kernel_constraint" in options:
        norms = np.linalg.norm(array(stack.kernel), axis=1)
        assert 0.8 < norms.max() <= 0.9 + 1e-5


def test_from_layers_and_unstack_are_each_others_inverse():
    stack = built_stack(4, activity_regularizer="l2", carry="learned", kernel_regularizer="l2")
    layers = stack.unstack()
    again = HighwayStack.from_layers(layers, name="again")
    assert again.name == "again" and again.units == 6
    np.testing.assert_equal(again.get_weights(), stack.get_weights())
    penalized = [bool(layer.activity_regularizer) for layer in (*layers, again)]
    assert penalized == [False] * 3 + [True] * 2
    stack.trainable = False
    frozen = stack.unstack()
    assert layers[0].trainable_weights and not any(layer.trainable_weights for layer in frozen)
    assert not HighwayStack.from_layers(frozen).trainable_weights


def test_layers_that_differ_or_are_quantized_are_no_stack():
    (one,), (narrow,), (quantized,) = (built_stack(1, n).unstack() for n in (6, 5, 6))
    for part in quantized.parts():
        part.quantize("int8")
    for refused in ([one, narrow], [quantized]):
        with pytest.raises(ValueError, match="layers"):
            HighwayStack.from_layers(refused)


def test_a_users_activation_stays_whatever_its_name():
    def hard_sigmoid(x):
        return keras.ops.clip(0.2 * x + 0.5, 0.0, 1.0)  # Keras's of that name has the slope 1 / 6

    x = standard_normal((5, 6), 1)
    chain = [Highway(activation=hard_sigmoid) for _ in range(3)]
    expected = array(as_chain(chain)(x))
    stack = HighwayStack.from_layers(chain)
    np.testing.assert_allclose(array(stack(x)), expected, atol=1e-6)
    np.testing.assert_allclose(array(as_chain(stack.unstack())(x)), expected, atol=1e-6)


# How it starts: each layer as one alone.


def by_its_shape(shape, dtype=None):
    return keras.random.normal(shape, stddev=shape[0] ** -0.5, dtype=dtype)


BY_AXES = keras.initializers.GlorotNormal(input_axes=[0], output_axes=[1])


@pytest.mark.parametrize("initializer", [None, "he_normal", "orthogonal", by_its_shape, BY_AXES])
def test_every_layer_starts_as_a_layer_alone_does(initializer):
    start = {"kernel_initializer": initializer}
    stack, alone = HighwayStack(6, **start), Highway(**start)
    for layer in (stack, alone):
        layer.build((None, 100))
    assert array(alone.transform_kernel).std() == pytest.approx(array(alone.kernel).std(), rel=0.2)
    assert not np.allclose(array(alone.transform_kernel), array(alone.kernel))
    for name in ("kernel", "transform_kernel"):
        kernels, expected = array(getattr(stack, name)), array(getattr(alone, name))
        for kernel in kernels:
            assert kernel.std() == pytest.approx(expected.std(), rel=0.2)
            product = np.allclose(kernel @ kernel.T, np.eye(100), atol=1e-5)
            assert product == (initializer == "orthogonal")
        assert len({float(kernel.flat[0]) for kernel in kernels}) == len(kernels)


@pytest.mark.parametrize("kind", [keras.initializers.Orthogonal, keras.initializers.GlorotNormal])
def test_a_seed_gives_the_same_stack_again_and_other_numbers_to_each_weight(kind):
    def kernels(seed):
        stack = HighwayStack(2, kernel_initializer=kind(seed=seed))
        stack.build((None, 4))
        return array(keras.ops.concatenate([stack.kernel, stack.transform_kernel]))

    np.testing.assert_array_equal(kernels(1), kernels(1))
    for drawn in (kernels(1), kernels(keras.random.SeedGenerator(1))):
        assert len({float(kernel[0, 0]) for kernel in drawn}) == 4


@pytest.mark.parametrize("depth", [1, 1000])
def test_gates_start_by_the_depth(depth):
    stack = HighwayStack(depth, transform_kernel_initializer="zeros")
    _, gates = stack(standard_normal((2, 3)), return_gate=True)
    np.testing.assert_allclose(array(gates), 1 / (depth + 2), rtol=1e-5)


@needs_tensorflow
def test_rematerializing_multiplies_again_in_the_backward_pass():
    import tensorflow as tf

    def products(rematerialize):
        stack = HighwayStack(3, rematerialize=rematerialize)
        stack.build((None, 6))

        def run(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = stack(x)
            return tape.gradient(y, x)

        graph = tf.function(run).get_concrete_function(tf.TensorSpec((4, 6))).graph.as_graph_def()
        return sum("MatMul" in node.op for f in graph.library.function for node in f.node_def)

    assert products(True) > products(False)


# What Keras's own `model.export` writes.


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="Keras exports so no torch model")
def test_a_stack_exports_for_batches_of_any_size(tmp_path):
    tensorflow = pytest.importorskip("tensorflow")
    model = as_chain([HighwayStack(3)])
    model.export(tmp_path / "saved", verbose=False)
    served = tensorflow.saved_model.load(tmp_path / "saved")
    for rows in (1, 5):
        x = np.ones((rows, 6), "float32")
        np.testing.assert_allclose(served.serve(x), array(model(x)), atol=1e-6)


@needs_tensorflow
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of Keras, about `np.object`
def test_a_stack_exports_to_onnx(tmp_path):
    pytest.importorskip("tf2onnx")
    runtime = pytest.importorskip("onnxruntime")
    model, file = as_chain([built_stack(3, carry="learned")]), str(tmp_path / "stack.onnx")
    x = standard_normal((5, 6))
    expected = array(model(x))
    model.export(file, "onnx", verbose=False)
    session = runtime.InferenceSession(file)
    (outputs,) = session.run(None, {session.get_inputs()[0].name: x})
    np.testing.assert_allclose(outputs, expected, atol=1e-6)
