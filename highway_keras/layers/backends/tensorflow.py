"""TensorFlow: compile, loop, differentiate, and what the devices are.

`keras.ops.scan` does not work here: on TensorFlow it emits only what has the shape of the carry,
and XLA cannot bound its loop.
"""

import os

import tensorflow as tf

from highway_keras.util.cores import cores

EXPORTED = ("__call__", "serving_default")  # the functions that Keras's `model.export` traces


def has_loops():
    """Return whether loops may be compiled: `scan` below.

    Not in `tf.vectorized_map`, which Keras's `TimeDistributed` calls where the number of steps is
    unknown: the map drops custom gradients, so all would be zero. A `tf.function` that was traced
    before does not show the map. And not in what `model.export` traces: ONNX has no compiled
    loops, and a server would compile one anew for each batch size.
    """
    graph = tf.compat.v1.get_default_graph()
    while graph is not None:
        is_exported = getattr(graph, "name", None) in EXPORTED
        if is_exported or "loop_body" in graph.get_name_scope():
            return False
        graph = getattr(graph, "outer_graph", None)  # of a function that is called in the map
    return True


def compiled(f):
    """Return `f` compiled by XLA, without a gradient of its own.

    A gradient tape around a compiled loop would need the loop's stacks, which XLA does not return.
    """
    run = tf.function(f, autograph=False, jit_compile=True)
    return lambda *inputs: run(*tf.nest.map_structure(tf.stop_gradient, inputs))


def scan(step, carry, xs, reverse=False):
    """Loop as `jax.lax.scan` does."""
    length = tf.nest.flatten(xs)[0].shape[0]

    def take(i):
        # `gather`, not `w[i]`: OpenVINO cannot slice a weight by the counter of a loop.
        return tf.nest.map_structure(lambda x: tf.gather(x, i), xs)

    def body(i, carry, stacks):
        k = length - 1 - i if reverse else i
        carry, emitted = step(carry, take(k))
        emitted = tf.nest.flatten(emitted)
        return i + 1, carry, [s.write(k, e) for s, e in zip(stacks, emitted, strict=True)]

    trace = tf.function(lambda c: step(c, take(0))[1], autograph=False)
    structure = trace.get_concrete_function(carry).structured_outputs
    stacks = [
        tf.TensorArray(e.dtype, length, element_shape=e.shape) for e in tf.nest.flatten(structure)
    ]
    # XLA reserves the memory of the stacks, so it needs a bound on the iterations.
    _, carry, stacks = tf.while_loop(
        lambda i, *_: i < length, body, (0, carry, stacks), maximum_iterations=length
    )
    return carry, tf.nest.pack_sequence_as(structure, [s.stack() for s in stacks])


def differentiable_once(gradient):
    """Return `gradient` as a function that raises an error when it is differentiated."""

    def refuse(*upstream):
        raise NotImplementedError(
            "A `HighwayStack` is differentiable once on TensorFlow. The layers that `unstack()` "
            "returns are differentiable again."
        )

    @tf.custom_gradient
    def compute(*inputs):
        return gradient(*inputs), refuse

    return compute


def parallel_loops():
    """Return how many compiled loops run at the same time in the graph that is being traced.

    Within a program that XLA compiles as a whole, it would be one, but TensorFlow does not say so.
    """
    if tf.executing_eagerly() or not has_loops():
        return 1
    if tf.config.list_logical_devices("GPU"):
        return 1
    threads = tf.config.threading.get_inter_op_parallelism_threads()
    threads = threads or int(os.environ.get("TF_NUM_INTEROP_THREADS", 0))
    return threads or cores()


def gradients(f, weights):
    """For `f(weights) = (number, others)`, return the others and the gradients of the number."""
    with tf.GradientTape() as tape:
        tape.watch(weights)
        number, others = f(weights)
    return others, tape.gradient(number, weights, unconnected_gradients="zero")


def clipped(gradients, limit):
    """Return a replica's gradients, scaled to a norm of the whole batch's of at most `limit`.

    Keras limits that of each replica's share.
    """
    replica = tf.distribute.get_replica_context()
    if not limit or replica is None or replica.num_replicas_in_sync == 1:
        return gradients
    # The gradients of an embedding are slices, of which several may be of one row.
    shares = [tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None]
    norm = tf.linalg.global_norm(replica.all_reduce(tf.distribute.ReduceOp.SUM, shares))
    return tf.clip_by_global_norm(gradients, limit, norm)[0]


def accelerators():
    """Return the names of the GPUs, such as `["NVIDIA H200"]`."""
    gpus = tf.config.get_visible_devices("GPU")
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
    return [detail.get("device_name", "GPU") for detail in details]
