"""The depth loop against a plain Python chain of blocks, differentiated by the backend."""

import keras
import numpy as np
import pytest
from harness import value_and_gradients
from helpers import needs_tensorflow
from keras import ops

from highway_keras.layers.depth_loop import apply_blocks

BACKEND = keras.backend.backend()
WIDTH, BATCH = 5, 6
DTYPE, TOLERANCE = ("float64", 1e-10) if BACKEND == "tensorflow" else ("float32", 1e-5)
PARTS = {"coupled": 2, "learned": 3, "plain": 1, "residual": 1}  # of H, T and C


def kind_of(name):
    return {"kind": name if PARTS[name] == 1 else "highway"}


def weights(depth, name, lead=(), dtype="float32", batch=(BATCH,)):
    """Input, kernel and bias of a chain, scaled so that its signal neither dies nor explodes."""
    rng, m = np.random.default_rng(0), PARTS[name]
    scale = 0.2 if name == "residual" else 0.8
    x = rng.normal(size=(*lead, *batch, WIDTH))
    kernel = rng.normal(size=(depth, *lead, WIDTH, m * WIDTH)) * scale / WIDTH**0.5
    bias = rng.normal(size=(depth, *lead, m * WIDTH)) * 0.3
    return [v.astype(dtype) for v in (x, kernel, bias)]


def chain(x, kernel, bias, activation="relu", transform_activation="sigmoid", kind="highway"):
    """The equations of the paper, block after block; return the output and all gates."""
    h_of, gate_of = map(keras.activations.get, (activation, transform_activation))
    gates = []
    for w, b in zip(kernel, bias, strict=True):
        z, *zs = ops.split(ops.matmul(x, w) + b, w.shape[-1] // WIDTH, axis=-1)
        h = h_of(z)
        if kind == "highway":
            t, *c = [gate_of(z) for z in zs]
            x = h * t + x * (c[0] if c else 1 - t)
            gates.append(t)
        else:
            x = h if kind == "plain" else x + h
    return x, gates


def weighted(y):
    """A scalar that depends on every element of `y`, each in its own way."""
    return ops.sum(y * ops.cos(ops.reshape(ops.arange(np.prod(y.shape), dtype=y.dtype), y.shape)))


def assert_equal(actual, expected, tolerance):
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape
        assert a.dtype == e.dtype
        assert np.max(np.abs(a - e)) <= tolerance * max(np.max(np.abs(e)), 1.0)


TANH = {"activation": "tanh"}
CASES = {
    **{name: (20, name, TANH) for name in PARTS},
    "one block": (1, "coupled", {}),
    # Softmax is not elementwise: it must see the units of a sample, not those of others.
    "softmax": (4, "learned", {"activation": "softmax"}),
    "linear": (4, "residual", {"activation": "linear"}),
    "own activation": (4, "residual", {"activation": lambda z: z * ops.sigmoid(3 * z)}),
    "gates": (3, "learned", {"transform_activation": "hard_sigmoid"}),
}


@pytest.mark.parametrize("case", CASES)
def test_value_and_gradients_equal_the_chains(case):
    depth, name, options = CASES[case]
    options = {**options, **kind_of(name)}
    arrays = weights(depth, name, dtype=DTYPE)
    actual = value_and_gradients(lambda *a: weighted(apply_blocks(*a, **options)), arrays)
    expected = value_and_gradients(lambda *a: weighted(chain(*a, **options)[0]), arrays)
    assert_equal(actual, expected, TOLERANCE)


@pytest.mark.parametrize("rematerialize", [False, True])
@pytest.mark.parametrize("name", ["coupled", "learned"])
def test_outputs_and_gates(name, rematerialize):
    """The gate of each block, and the gradients that come in through the gates."""

    def value(y, gates):
        return weighted(y * y) + weighted(gates * gates)

    def of_loop(*a):
        return value(*apply_blocks(*a, **TANH, return_gate=True, rematerialize=rematerialize))

    def of_chain(*a):
        y, gates = chain(*a, **TANH)
        return value(y, ops.stack(gates))

    actual, expected = (value_and_gradients(f, weights(7, name)) for f in (of_loop, of_chain))
    assert_equal(actual, expected, 1e-5)


@pytest.mark.parametrize("name", ["coupled", "learned", "residual"])
def test_trials_equal_separate_networks(name):
    """Activations by trial included: trials 0 and 2 have relu, trial 1 tanh."""
    relu_mask = np.array([1.0, 0.0, 1.0]).reshape(3, 1, 1)

    def separately(x, kernel, bias):
        ys = [
            chain(x[k], kernel[:, k], bias[:, k], activation, **kind_of(name))[0]
            for k, activation in enumerate(("relu", "tanh", "relu"))
        ]
        return weighted(ops.stack(ys))

    def together(*a):
        return weighted(apply_blocks(*a, relu_mask=relu_mask, **kind_of(name)))

    arrays = weights(6, name, lead=(3,))
    actual, expected = (value_and_gradients(f, arrays) for f in (together, separately))
    assert_equal(actual, expected, 1e-5)


@pytest.mark.parametrize("function", [False, pytest.param(True, marks=needs_tensorflow)])
def test_the_gradient_passes_through_a_vectorized_map(function):
    """As in Keras's `TimeDistributed` over an unknown number of steps."""
    options = {"rematerialize": BACKEND != "torch"}  # which cannot map `torch.utils.checkpoint`

    def mapped(x, kernel, bias):
        steps = ops.reshape(x, (2, -1, WIDTH))

        def of_step(rows):
            return apply_blocks(rows, kernel, bias, **options)

        if function:
            import tensorflow as tf

            of_step = tf.function(of_step)
        outputs = ops.vectorized_map(of_step, steps)
        return weighted(ops.reshape(outputs, x.shape))

    inputs = weights(4, "coupled")
    expected = value_and_gradients(lambda *parts: weighted(apply_blocks(*parts)), inputs)
    assert_equal(value_and_gradients(mapped, inputs), expected, 1e-5)


def test_mixed_precision():
    """Half-precision inputs with float32 weights: the gradients keep the dtype of their tensor."""

    def loss(x, kernel, bias):
        y = apply_blocks(ops.cast(x, "float16"), kernel, bias, activation="tanh")
        assert keras.backend.standardize_dtype(y.dtype) == "float16"
        return weighted(ops.cast(y, "float32"))

    def expected(*a):
        return weighted(chain(*a, activation="tanh")[0])

    arrays = weights(5, "coupled")
    actual, expected = (value_and_gradients(f, arrays) for f in (loss, expected))
    assert_equal(actual, expected, 1e-2)


@needs_tensorflow
def test_it_is_differentiable_once_on_tensorflow():
    import tensorflow as tf

    def slope(x, *others):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = weighted(apply_blocks(x, *others))
        return ops.sum(tape.gradient(y, x) ** 2)

    with pytest.raises(NotImplementedError, match="TensorFlow"):
        value_and_gradients(slope, weights(3, "coupled"))


@needs_tensorflow
def test_the_program_does_not_grow_with_depth():
    """The point of the loop: a value and its gradients take as many operations at any depth."""
    import tensorflow as tf

    def run(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = weighted(apply_blocks(*tensors))
        return value, *tape.gradient(value, tensors)

    def size(depth):
        tensors = map(tf.constant, weights(depth, "coupled"))
        graph = tf.function(run).get_concrete_function(*tensors).graph.as_graph_def()
        return len(graph.node) + sum(len(f.node_def) for f in graph.library.function)

    assert size(100) == size(200)  # TensorFlow writes down zeros of less than 1000 elements
