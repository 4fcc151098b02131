"""A batch in shares against the same batch in one piece."""

import pytest
from harness import value_and_gradients
from helpers import needs_tensorflow
from keras import ops
from test_depth_loop import WIDTH, assert_equal, weighted, weights

from highway_keras.layers.backends import shim
from highway_keras.layers.depth_loop import apply_blocks, shares

pytestmark = needs_tensorflow
CORES = 3


@pytest.fixture(autouse=True)
def three_cores_and_small_shares(monkeypatch):
    threads = "get_inter_op_parallelism_threads"
    monkeypatch.setattr(f"tensorflow.config.threading.{threads}", lambda: CORES)
    monkeypatch.setattr(shares, "ROWS", 2)
    monkeypatch.setattr(shares, "MULTIPLICATIONS", 1)


def graph_of(f, *specs):
    import tensorflow as tf

    specs = [s if isinstance(s, tf.TensorSpec) else tf.TensorSpec(s.shape, s.dtype) for s in specs]
    return tf.function(f, autograph=False).get_concrete_function(*specs)


def loops_in(function):
    """The names of the compiled loops that a graph calls."""
    nodes = function.graph.as_graph_def().node
    return [n.attr["f"].func.name for n in nodes if n.op.endswith("PartitionedCall")]


def in_a_graph(unknown=()):
    """A `wrap` for `value_and_gradients` that traces, with the `unknown` axes of the input open."""

    def wrap(run):
        def call(x, *others):
            import tensorflow as tf

            shape = [None if axis in unknown else n for axis, n in enumerate(x.shape)]
            return graph_of(run, tf.TensorSpec(shape, x.dtype), *others)(x, *others)

        return call

    return wrap


def check_exact(loss, arrays, monkeypatch, tolerance=1e-6, unknown=()):
    """Check that a batch in shares gives the same as in one piece."""
    found = value_and_gradients(loss, arrays, in_a_graph(unknown))
    with monkeypatch.context() as patch:
        patch.setattr(shim, "parallel_loops", lambda: 1)
        expected = value_and_gradients(loss, arrays, in_a_graph(unknown))
    assert_equal(found, expected, tolerance)


@pytest.mark.parametrize("batch", [(11,), (9,), (3,), (5, 3), ()])
def test_any_batch(batch, monkeypatch):
    arrays = weights(4, "coupled", batch=batch, dtype="float64")
    check_exact(lambda *a: weighted(apply_blocks(*a)), arrays, monkeypatch, 1e-14)


@pytest.mark.parametrize("batch, unknown", [((1,), [0]), ((8,), [0]), ((5, 3), [0, 1])])
def test_gates_and_sizes_that_are_unknown(batch, unknown, monkeypatch):
    def loss(*a):
        outputs, gates = apply_blocks(*a, activation="tanh", return_gate=True)
        return ops.sum(ops.sin(outputs) * outputs) + ops.sum(gates * gates)

    check_exact(loss, weights(4, "learned", batch=batch), monkeypatch, unknown=unknown)


def test_the_rows_that_fill_a_share_leave_no_trace(monkeypatch):
    """Rows of zeros would: with this activation and these biases their gradients are NaN."""

    def normalized(z):
        return z / ops.norm(z, axis=-1, keepdims=True)

    x, kernel, bias = weights(4, "plain", batch=(11,))
    options = {"kind": "plain", "activation": normalized}
    check_exact(
        lambda *a: weighted(apply_blocks(*a, **options)), [x, kernel, 0 * bias], monkeypatch
    )


SHARES = [((11, WIDTH), 3), ((5, WIDTH), 2), ((WIDTH,), 1), ((5, 3, WIDTH), 3), ((None, WIDTH), 3)]


@pytest.mark.parametrize("shape, count", SHARES, ids=str)
def test_a_loop_for_each_share_and_one_program_for_all(shape, count):
    import tensorflow as tf

    _, kernel, bias = weights(4, "coupled")

    def run(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            y = apply_blocks(*tensors)
        return y, *tape.gradient(y, tensors)

    function = graph_of(run, tf.TensorSpec(shape, "float32"), kernel, bias)
    assert function.structured_outputs[0].shape.as_list() == list(shape)
    names = loops_in(function)
    assert len(names) == 2 * count
    assert len(set(names)) == 2  # forward and backward, each compiled for one shape


def test_one_share_where_loops_do_not_run_parallel_loops(monkeypatch):
    import tensorflow as tf

    arrays = weights(4, "coupled", batch=(9,))
    trials = weights(4, "coupled", lead=(2,), batch=(9,))
    assert len(loops_in(graph_of(apply_blocks, *arrays))) == CORES
    assert len(loops_in(graph_of(apply_blocks, *trials))) == 1  # cohorts run side by side already
    assert shim.parallel_loops() == 1  # eagerly
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [kind])
    assert len(loops_in(graph_of(apply_blocks, *arrays))) == 1  # on a GPU
