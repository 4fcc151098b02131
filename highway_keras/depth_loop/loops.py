"""What the depth loop needs and Keras backends do differently: scan, compile, pull back.

`keras.ops.scan` does not serve: on TensorFlow it emits only what has the shape of the carry, and
XLA cannot bound its loop.
"""

import os

import keras

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf
    from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

    def compiled(f):
        return tf.function(f, autograph=False, jit_compile=True)

    def scan(step, carry, xs, reverse=False):
        """As `jax.lax.scan`; it differs from `keras.ops.scan` as the head of this file says."""
        length = tf.nest.flatten(xs)[0].shape[0]

        def take(i):
            # `gather`, not `w[i]`: OpenVINO cannot slice a weight by the counter of a loop.
            return tf.nest.map_structure(lambda x: tf.gather(x, i), xs)

        def body(i, carry, stacks):
            k = length - 1 - i if reverse else i
            carry, emitted = step(carry, take(k))
            emitted = tf.nest.flatten(emitted)
            return i + 1, carry, [s.write(k, e) for s, e in zip(stacks, emitted, strict=True)]

        emitted = tf.function(lambda c: step(c, take(0))[1], autograph=False)
        emitted = emitted.get_concrete_function(carry).structured_outputs
        stacks = [
            tf.TensorArray(e.dtype, length, element_shape=e.shape) for e in tf.nest.flatten(emitted)
        ]
        # XLA reserves the memory of the stacks, and so asks for a bound on the iterations.
        _, carry, stacks = tf.while_loop(
            lambda i, *_: i < length, body, (0, carry, stacks), maximum_iterations=length
        )
        return carry, tf.nest.pack_sequence_as(emitted, [s.stack() for s in stacks])

    def side_by_side():
        """How many compiled loops run at the same time in the graph that is being traced."""
        within_xla = GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())
        if tf.executing_eagerly() or within_xla or tf.config.list_logical_devices("GPU"):
            return 1
        threads = tf.config.threading.get_inter_op_parallelism_threads()
        return threads or int(os.environ.get("TF_NUM_INTEROP_THREADS", 0)) or _cores()

    def _cores():
        has_affinity = hasattr(os, "sched_getaffinity")
        return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count()

    def pullback(f, x, dy):
        """The gradient of `f` at `x`, given the gradient `dy` of its output."""
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x, dy, unconnected_gradients="zero")

elif keras.backend.backend() == "jax":
    import jax

    compiled = jax.jit
    scan = jax.lax.scan

    def pullback(f, x, dy):
        """The gradient of `f` at `x`, given the gradient `dy` of its output."""
        return jax.vjp(f, x)[1](dy)[0]
