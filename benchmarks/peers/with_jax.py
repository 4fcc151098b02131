"""JAX by hand, no Keras."""

import jax
import jax.numpy as jnp
import numpy as np

WIDTH = 50


def jax_scan(case):
    """`lax.scan` over stacked weights."""
    x, y = map(jnp.asarray, case.images())
    x = x.reshape(len(x), -1)
    yield
    weights = _weights(case.depth)
    velocity = jax.tree.map(jnp.zeros_like, weights)
    step, predict = jax.jit(_train), jax.jit(_forward)

    while True:
        for i in range(case.steps):
            batch = slice(i * case.batch, (i + 1) * case.batch)
            if case.training:
                weights, velocity, out = step(weights, velocity, x[batch], y[batch])
            else:
                out = predict(weights, x[batch])
        jax.block_until_ready(out)
        yield


def _weights(depth):
    rng = np.random.default_rng(0)

    def glorot(*shape):
        limit = (6 / sum(shape[-2:])) ** 0.5
        return jnp.asarray(rng.uniform(-limit, limit, shape), "float32")

    bias = jnp.zeros((depth - 1, 2 * WIDTH)).at[:, WIDTH:].set(-4.0)
    return {
        "first": (glorot(784, WIDTH), jnp.zeros(WIDTH)),
        "stack": (glorot(depth - 1, WIDTH, 2 * WIDTH), bias),
        "top": (glorot(WIDTH, 10), jnp.zeros(10)),
    }


def _forward(weights, x):
    w, b = weights["first"]

    def block(x, layer):
        h, t = jnp.split(x @ layer[0] + layer[1], 2, axis=-1)
        t = jax.nn.sigmoid(t)
        return x + t * (jnp.tanh(h) - x), None

    x, _ = jax.lax.scan(block, jnp.tanh(x @ w + b), weights["stack"])
    w, b = weights["top"]
    return x @ w + b


def _train(weights, velocity, x, y):
    def loss(weights):
        logits = jax.nn.log_softmax(_forward(weights, x))
        return -jnp.take_along_axis(logits, y[:, None], 1).mean()

    value, gradient = jax.value_and_grad(loss)(weights)
    velocity = jax.tree.map(lambda v, g: 0.9 * v - 0.01 * g, velocity, gradient)
    return jax.tree.map(jnp.add, weights, velocity), velocity, value
