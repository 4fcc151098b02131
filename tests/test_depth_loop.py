"""The depth loop against a plain Python chain of blocks, differentiated by the backend."""

import keras
import numpy as np
import pytest
from harness import value_and_gradients
from helpers import needs_tensorflow
from keras import ops

from highway_keras.layers.depth_loop import scan

BACKEND = keras.backend.backend()
WIDTH, BATCH = 5, 6
DTYPE, TOLERANCE = ("float64", 1e-10) if BACKEND == "tensorflow" else ("float32", 1e-5)
LEARNED = {"carry": "learned"}
KINDS = {"coupled": {}, "learned": LEARNED, "plain": {"kind": "plain"}}
KINDS["residual"] = {"kind": "residual"}
BRANCHES = {"coupled": 2, "learned": 3, "plain": 1, "residual": 1}


def weights(depth, kind, lead=(), dtype="float32", batch=(BATCH,), seed=0):
    """Input, kernel and bias of a chain, scaled so that its signal neither dies nor explodes."""
    rng, m = np.random.default_rng(seed), BRANCHES[kind]
    scale = 0.2 if kind == "residual" else 0.8
    x = rng.normal(size=(*lead, *batch, WIDTH))
    kernel = rng.normal(size=(depth, *lead, WIDTH, m * WIDTH)) * scale / WIDTH**0.5
    bias = rng.normal(size=(depth, *lead, m * WIDTH)) * 0.3
    return [v.astype(dtype) for v in (x, kernel, bias)]


def chain(x, kernel, bias, kind="highway", carry="coupled", return_sequence=False, **functions):
    """The equations of the paper, block after block; for a sequence, all outputs and gates."""
    functions = {"activation": "relu", "transform_activation": "sigmoid", **functions}
    h_of, gate_of = map(keras.activations.get, functions.values())
    outputs, gates = [], []
    for w, b in zip(kernel, bias, strict=True):
        parts = ops.split(ops.matmul(x, w) + b, w.shape[-1] // WIDTH, axis=-1)
        h = h_of(parts[0])
        if kind == "highway":
            t = gate_of(parts[1])
            x = h * t + x * (gate_of(parts[2]) if carry == "learned" else 1 - t)
            gates.append(t)
        else:
            x = h if kind == "plain" else x + h
        outputs.append(x)
    every = ops.stack(outputs), *([ops.stack(gates)] if gates else [])
    return every if return_sequence else x


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
    **{kind: (20, kind, TANH) for kind in KINDS},
    "one block": (1, "coupled", {}),
    # Softmax is not elementwise: it must see the units of a sample, not those of others.
    "softmax": (4, "learned", {"activation": "softmax"}),
    "linear": (4, "residual", {"activation": "linear"}),
    "own activation": (4, "residual", {"activation": lambda z: z * ops.sigmoid(3 * z)}),
    "gates": (3, "learned", {"transform_activation": "hard_sigmoid"}),
    "rematerialized": (7, "learned", {**TANH, "rematerialize": True}),
}


@pytest.mark.parametrize("case", CASES)
def test_value_and_gradients_equal_the_chains(case):
    depth, kind, options = CASES[case]
    of_chain = {k: v for k, v in options.items() if k != "rematerialize"} | KINDS[kind]
    arrays = weights(depth, kind, dtype=DTYPE)
    found = value_and_gradients(lambda *a: weighted(scan(*a, **options, **KINDS[kind])), arrays)
    expected = value_and_gradients(lambda *a: weighted(chain(*a, **of_chain)), arrays)
    assert_equal(found, expected, TOLERANCE)


@pytest.mark.parametrize("rematerialize", [False, True])
@pytest.mark.parametrize("kind", ["coupled", "learned", "plain"])
def test_all_outputs_and_gates(kind, rematerialize):
    """Every block's output and gate, and the gradients that come in through them."""
    options = {**TANH, **KINDS[kind], "return_sequence": True}
    of_loop = {"rematerialize": rematerialize, "return_gate": kind != "plain"}

    def value(results):
        results = results if isinstance(results, tuple) else (results,)
        assert {tuple(z.shape) for z in results} == {(7, BATCH, WIDTH)}
        return sum(weighted(z * z) for z in results)

    arrays = weights(7, kind)
    found = value_and_gradients(lambda *a: value(scan(*a, **options, **of_loop)), arrays)
    assert_equal(found, value_and_gradients(lambda *a: value(chain(*a, **options)), arrays), 1e-5)


@pytest.mark.parametrize("kind", ["coupled", "learned", "residual"])
def test_trials_equal_separate_networks(kind):
    """Activations by trial included: trials 0 and 2 have relu, trial 1 tanh."""
    relu_mask = np.array([1.0, 0.0, 1.0]).reshape(3, 1, 1)

    def separately(x, kernel, bias):
        trials = [(x[k], kernel[:, k], bias[:, k]) for k in range(3)]
        names = ["relu", "tanh", "relu"]
        ys = [
            chain(*t, activation=name, **KINDS[kind]) for t, name in zip(trials, names, strict=True)
        ]
        return weighted(ops.stack(ys))

    def together(*a):
        return weighted(scan(*a, activation=relu_mask, **KINDS[kind]))

    found, expected = (
        value_and_gradients(f, weights(6, kind, lead=(3,))) for f in (together, separately)
    )
    assert_equal(found, expected, 1e-5)


@pytest.mark.parametrize("function", [False, pytest.param(True, marks=needs_tensorflow)])
def test_the_gradient_passes_through_a_vectorized_map(function):
    """As in Keras's `TimeDistributed` over an unknown number of steps."""
    options = {"rematerialize": BACKEND != "torch"}  # which cannot map `torch.utils.checkpoint`

    def mapped(x, kernel, bias):
        steps = ops.reshape(x, (2, -1, WIDTH))

        def of_step(rows):
            return scan(rows, kernel, bias, **options)

        if function:
            import tensorflow as tf

            of_step = tf.function(of_step)
        outputs = ops.vectorized_map(of_step, steps)
        return weighted(ops.reshape(outputs, x.shape))

    inputs = weights(4, "coupled")
    expected = value_and_gradients(lambda *parts: weighted(scan(*parts)), inputs)
    assert_equal(value_and_gradients(mapped, inputs), expected, 1e-5)


def test_mixed_precision():
    """Half-precision inputs with float32 weights: the gradients keep the dtype of their tensor."""

    def loss(x, kernel, bias):
        y = scan(ops.cast(x, "float16"), kernel, bias, activation="tanh")
        assert keras.backend.standardize_dtype(y.dtype) == "float16"
        return weighted(ops.cast(y, "float32"))

    def expected(*a):
        return weighted(chain(*a, activation="tanh"))

    arrays = weights(5, "coupled")
    found, expected = (value_and_gradients(f, arrays) for f in (loss, expected))
    assert_equal(found, expected, 1e-2)


@needs_tensorflow
def test_it_is_differentiable_once_on_tensorflow():
    import tensorflow as tf

    def slope(x, *others):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = weighted(scan(x, *others))
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
            value = weighted(scan(*tensors))
        return value, *tape.gradient(value, tensors)

    def size(depth):
        tensors = map(tf.constant, weights(depth, "coupled"))
        graph = tf.function(run).get_concrete_function(*tensors).graph.as_graph_def()
        return len(graph.node) + sum(len(f.node_def) for f in graph.library.function)

    assert size(100) == size(200)  # TensorFlow writes down zeros of less than 1000 elements


@pytest.mark.parametrize(
    ("error", "named", "change"),
    [
        (ValueError, "kernel", {"kernel": np.zeros((0, 5, 10)), "bias": np.zeros((0, 10))}),
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
