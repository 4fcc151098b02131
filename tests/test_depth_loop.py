"""The depth loop against a plain Python chain of blocks, differentiated by the backend."""

import functools

import keras
import numpy as np
import pytest
from harness import value_and_gradients
from keras import ops

from highway_keras.depth_loop import scan

BACKEND = keras.backend.backend()
needs_tensorflow = pytest.mark.skipif(BACKEND != "tensorflow", reason="tf.function is TensorFlow's")
WIDTH, BATCH = 5, 6
DTYPE, TOLERANCE = ("float64", 1e-10) if BACKEND == "tensorflow" else ("float32", 1e-5)
KINDS = {
    "coupled": {"kind": "highway", "carry": "coupled"},
    "learned": {"kind": "highway", "carry": "learned"},
    "plain": {"kind": "plain"},
    "residual": {"kind": "residual"},
}


def branches(kind="highway", carry="coupled"):
    return 1 if kind != "highway" else 3 if carry == "learned" else 2


def weights(depth, kind, lead=(), dtype="float32", batch=(BATCH,), seed=0):
    """Input, kernel and bias of a chain, scaled so that its signal neither dies nor explodes."""
    rng, m = np.random.default_rng(seed), branches(**KINDS[kind])
    scale = 0.2 if kind == "residual" else 0.8
    x = rng.normal(size=(*lead, *batch, WIDTH))
    kernel = rng.normal(size=(depth, *lead, WIDTH, m * WIDTH)) * scale / WIDTH**0.5
    bias = rng.normal(size=(depth, *lead, m * WIDTH)) * 0.3
    return [v.astype(dtype) for v in (x, kernel, bias)]


def python_chain(x, kernel, bias, activation="relu", kind="highway", carry="coupled"):
    """The equations of the paper, block after block. Returns all outputs and all gates."""
    outputs, gates = [], []
    for w, b in zip(kernel, bias, strict=True):
        parts = ops.split(ops.matmul(x, w) + b, branches(kind, carry), axis=-1)
        h = keras.activations.get(activation)(parts[0])
        if kind == "highway":
            t = ops.sigmoid(parts[1])
            c = ops.sigmoid(parts[2]) if carry == "learned" else 1 - t
            gates.append(t)
            x = h * t + x * c
        else:
            x = h if kind == "plain" else x + h
        outputs.append(x)
    return outputs, gates


def weighted(y):
    """A scalar that depends on every element of `y`, each in its own way."""
    return ops.sum(y * ops.cos(ops.reshape(ops.arange(np.prod(y.shape), dtype=y.dtype), y.shape)))


def assert_equal(actual, expected, tolerance):
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape
        assert a.dtype == e.dtype
        assert np.max(np.abs(a - e)) <= tolerance * max(np.max(np.abs(e)), 1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation, depth", [("relu", 1), ("tanh", 30)])
def test_equals_the_chain(kind, activation, depth):
    options = {"activation": activation, **KINDS[kind]}
    arrays = weights(depth, kind, dtype=DTYPE)
    actual = value_and_gradients(lambda *a: weighted(scan(*a, **options)), arrays)
    expected = value_and_gradients(lambda *a: weighted(python_chain(*a, **options)[0][-1]), arrays)
    assert_equal(actual, expected, TOLERANCE)


@pytest.mark.parametrize("kind", ["learned", "residual"])
@pytest.mark.parametrize("activation", ["softmax", lambda z: z * ops.sigmoid(3 * z)])
def test_any_activation(activation, kind):
    """Softmax is not elementwise: it must see the units of a sample, not the samples of a unit."""
    test_equals_the_chain(kind, activation, 4)


def test_any_gate_activation():
    x, kernel, bias = weights(3, "learned")
    options = {"transform_activation": "hard_sigmoid"}
    y = x
    for w, b in zip(kernel, bias, strict=True):
        h, t, c = np.split(y @ w + b, 3, axis=-1)
        t, c = np.clip(np.stack([t, c]) / 6 + 0.5, 0, 1)
        y = np.maximum(h, 0) * t + y * c
    actual = ops.convert_to_numpy(scan(x, kernel, bias, carry="learned", **options))
    np.testing.assert_allclose(actual, y, atol=1e-5)


@pytest.mark.parametrize("rematerialize", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_all_outputs_and_gates(kind, rematerialize):
    """Every block's output and gate, and the gradients that come in through them."""
    gated = KINDS[kind]["kind"] == "highway"

    def loop(*a):
        options = {"return_sequence": True, "return_gate": gated, "rematerialize": rematerialize}
        results = scan(*a, activation="tanh", **options, **KINDS[kind])
        return value(*results) if gated else value(results)

    def chain(*a):
        outputs, gates = python_chain(*a, activation="tanh", **KINDS[kind])
        return value(ops.stack(outputs), ops.stack(gates)) if gated else value(ops.stack(outputs))

    def value(*results):
        assert {tuple(z.shape) for z in results} == {(7, BATCH, WIDTH)}
        return sum(weighted(z * z) for z in results)

    arrays = weights(7, kind)
    assert_equal(value_and_gradients(loop, arrays), value_and_gradients(chain, arrays), 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_trials_equal_separate_networks(kind):
    """A mixture of activations included: trials 0 and 2 have relu, trial 1 tanh."""
    arrays = weights(6, kind, lead=(3,))
    share = np.array([1.0, 0.0, 1.0]).reshape(3, 1, 1)
    together = value_and_gradients(
        lambda *a: weighted(scan(*a, activation=share, **KINDS[kind])), arrays
    )

    def separately(x, kernel, bias):
        names = ["relu", "tanh", "relu"]
        ys = [
            python_chain(x[k], kernel[:, k], bias[:, k], activation=name, **KINDS[kind])[0][-1]
            for k, name in enumerate(names)
        ]
        return weighted(ops.stack(ys))

    assert_equal(together, value_and_gradients(separately, arrays), 1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_mixed_precision(dtype):
    """Half-precision inputs with float32 weights: the gradients keep the dtype of their tensor."""
    x, kernel, bias = weights(5, "coupled")

    def loss(x, kernel, bias):
        y = scan(ops.cast(x, dtype), kernel, bias, activation="tanh")
        assert keras.backend.standardize_dtype(y.dtype) == dtype
        return weighted(ops.cast(y, "float32"))

    actual = value_and_gradients(loss, [x, kernel, bias])
    expected = value_and_gradients(
        lambda *a: weighted(python_chain(*a, activation="tanh")[0][-1]), [x, kernel, bias]
    )
    assert_equal(actual, expected, {"float16": 1e-2, "bfloat16": 8e-2}[dtype])


@needs_tensorflow
def test_it_is_differentiable_once_on_tensorflow():
    import tensorflow as tf

    def slope(x, *others):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = weighted(scan(x, *others))
        return ops.sum(tape.gradient(y, x) ** 2)

    with pytest.raises(NotImplementedError, match="differentiable once on TensorFlow"):
        value_and_gradients(slope, weights(3, "coupled"))


@needs_tensorflow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_inside_a_compiled_function(jit_compile):
    import tensorflow as tf

    def loss(*a):
        return weighted(scan(*a, activation="tanh", rematerialize=jit_compile))

    arrays = weights(7, "coupled")
    compiled = functools.partial(tf.function, jit_compile=jit_compile)
    found = value_and_gradients(loss, arrays, compiled)
    assert_equal(found, value_and_gradients(loss, arrays), 1e-6)


@pytest.mark.skipif(BACKEND == "torch", reason="PyTorch's chain is a plain loop")
def test_the_program_does_not_grow_with_depth():
    """The point of the loop: a value and its gradients take as many operations at any depth."""

    def size(depth):
        arrays = weights(depth, "coupled")
        if BACKEND == "jax":
            import jax

            return str(jax.make_jaxpr(jax.grad(lambda *a: weighted(scan(*a))))(*arrays)).count("\n")
        import tensorflow as tf

        def run(*tensors):
            with tf.GradientTape() as tape:
                tape.watch(tensors)
                value = weighted(scan(*tensors))
            return value, *tape.gradient(value, tensors)

        tensors = map(tf.constant, arrays)
        graph = tf.function(run).get_concrete_function(*tensors).graph.as_graph_def()
        return len(graph.node) + sum(len(f.node_def) for f in graph.library.function)

    assert size(100) == size(200)  # TensorFlow writes down zeros of less than 1000 elements


@pytest.mark.parametrize(
    ("error", "named", "change"),
    [
        (ValueError, "kernel", {"kernel": np.zeros((0, 5, 10)), "bias": np.zeros((0, 10))}),
        (ValueError, "kernel", {"kernel": np.zeros((3, 5, 5))}),
        (ValueError, "kernel", {"kernel": np.zeros((3, 4, 10))}),
        (ValueError, "bias", {"bias": np.zeros((3, 5))}),
        (ValueError, "x", {"kernel": np.zeros((3, 2, 5, 10)), "bias": np.zeros((3, 2, 10))}),
        (ValueError, "kind", {"kind": "dense"}),
        (ValueError, "carry", {"carry": "free"}),
        (ValueError, "kind", {"kind": "plain", "return_gate": True}),
        (ValueError, "activation", {"activation": np.ones((3, 1, 1))}),
        (TypeError, "x", {"x": np.ones((BATCH, WIDTH), "int32")}),
    ],
)
def test_errors(error, named, change):
    x, kernel, bias = weights(3, "coupled")
    with pytest.raises(error, match=f"`{named}`"):
        scan(**{"x": x, "kernel": kernel, "bias": bias, **change})
