"""What training a population needs and Keras backends do differently: compile, loop, gradient."""

import keras

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

    def compiled(f):
        return tf.function(f, autograph=False, jit_compile=True)

    def fold(step, state, xs):
        """`state = step(state, *x)` for every x along the first axis of the tensors `xs`."""
        length = xs[0].shape[0]

        def body(i, state):
            return i + 1, step(state, *[tf.gather(x, i) for x in xs])

        return tf.while_loop(lambda i, _: i < length, body, (0, state))[1]

    def gradients(f, weights):
        """For `f(weights) = (number, others)`: the others, and the gradients of the number."""
        with tf.GradientTape() as tape:
            tape.watch(weights)
            number, others = f(weights)
        return others, tape.gradient(number, weights)

elif keras.backend.backend() == "jax":
    import jax

    compiled = jax.jit

    def fold(step, state, xs):
        """`state = step(state, *x)` for every x along the first axis of the tensors `xs`."""
        return jax.lax.scan(lambda state, x: (step(state, *x), None), state, xs)[0]

    def gradients(f, weights):
        """For `f(weights) = (number, others)`: the others, and the gradients of the number."""
        (_, others), found = jax.value_and_grad(f, has_aux=True)(weights)
        return others, found

else:
    raise ImportError(
        "The population search needs the TensorFlow or the JAX backend; any backend can run "
        "keras_tuner.RandomSearch over HighwayHyperModel. "
        f"Received: KERAS_BACKEND={keras.backend.backend()}."
    )
