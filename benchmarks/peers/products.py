"""The floor: the matrix products of a step and nothing else, through the same compiler (XLA).

Forward, one product of `(batch, d) @ (d, 2 d)` per layer; in training, two more for the gradients.
"""

import jax
import jax.numpy as jnp
import numpy as np

WIDTH = 50


def run(case, turns):
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.random((case.batch, WIDTH), "float32"))
    w = jnp.asarray(rng.normal(0, 0.1, (case.depth - 1, WIDTH, 2 * WIDTH)), "float32")
    turns.wait()
    step = jax.jit(_training if case.training else _forward)

    def steps():
        for _ in range(case.steps):
            out = step(x, w)
        jax.block_until_ready(out)

    turns.repeat(steps)


def _forward(x, w):
    def block(x, w):
        z = x @ w
        return z[:, :WIDTH], z

    return jax.lax.scan(block, x, w)


def _training(x, w):
    _, z = _forward(x, w)

    def block(dx, layer):
        w, z = layer
        # The products of the two gradients: of the weights, and of the layer's input.
        return z @ w.T, dx.T @ z

    return jax.lax.scan(block, x, (w, z), reverse=True)
