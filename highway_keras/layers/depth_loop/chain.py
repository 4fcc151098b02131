"""The chain of blocks: both loops over depth, tied together as one differentiable operation."""

import functools

import keras
from keras import ops, tree

from highway_keras.layers.backends import name as BACKEND
from highway_keras.layers.backends import plain_scan, shim


def chain(block, x, kernel, bias, relu_mask, return_sequence, return_gate):
    """Run `block` over all layers of `kernel`, on `x` of shape `(n, d)` or `(K, n, d)`.

    Return the outputs in a tuple: the last block's or, as a sequence, every block's, then the
    transform gates if requested.
    """
    has_loops = shim.has_loops()
    forward, backward = _loops(block, return_sequence, return_gate, has_loops)
    if not has_loops:  # autodiff gives the gradient
        return forward(x, kernel, bias, relu_mask)[0]

    # `run` takes every tensor as an argument: on JAX it must not capture traced ones.
    @ops.custom_gradient
    def run(x, kernel, bias, relu_mask):
        outputs, residuals = forward(x, kernel, bias, relu_mask)

        def gradient(*upstream):  # TensorFlow gives it as arguments, JAX as one tuple
            d_outputs = tree.flatten(upstream)
            once = shim.differentiable_once(backward)
            gradients = once(d_outputs, kernel, bias, relu_mask, *residuals)
            return *gradients, ops.zeros_like(relu_mask)

        return outputs, gradient

    try:
        return run(x, kernel, bias, relu_mask)
    except TypeError as error:
        if "forward-mode" not in str(error):
            raise
        raise TypeError(
            "A `HighwayStack` has no forward mode on JAX. The layers that `unstack()` returns have."
        ) from error


@functools.lru_cache(maxsize=64)
def _loops(block, return_sequence, return_gate, has_loops):
    """Return the loops of a block, made once: a new function would be compiled again."""

    def forward(x, kernel, bias, relu_mask):
        def step(x, weights):
            y, parts = block.forward(x, *weights, relu_mask)
            residuals = parts if has_loops and not block.recomputes else []
            before = x if has_loops or return_sequence else []
            return y, (before, residuals, [parts[1]] if return_gate else [])

        if block.rematerialize and BACKEND == "torch":  # TensorFlow's is a custom gradient
            step = keras.remat(step)
        scan = shim.scan if has_loops else plain_scan
        y, (xs, residuals, gates) = scan(step, _columns(x), (kernel, bias[..., None]))
        outputs = ops.concatenate([xs[1:], y[None]]) if return_sequence else y
        return tuple(_columns(v) for v in (outputs, *gates)), (xs, residuals)

    def backward(d_outputs, kernel, bias, relu_mask, xs, parts):
        d_outputs = [_columns(d) for d in d_outputs]
        d_gates = [d_outputs[1]] if return_gate else []
        dys = [d_outputs[0]] if return_sequence else []

        def step(dy, layer):
            x, parts, w, b, d_y, d_gate = layer
            dy, d_gate = sum(d_y, dy), sum(d_gate)
            dx, dz = block.backward(dy, d_gate, x, parts, w, b, relu_mask)
            return dx, (ops.matmul(x, _columns(dz)), ops.sum(dz, axis=-1))

        last = ops.zeros_like(xs[0]) if return_sequence else d_outputs[0]
        layers = (xs, parts, kernel, bias[..., None], dys, d_gates)
        dx, d_weights = shim.scan(step, last, layers, reverse=True)
        return _columns(dx), *d_weights

    return [shim.compiled(f) if has_loops else f for f in (forward, backward)]


def _columns(x):
    """Rows to columns, and back."""
    return ops.swapaxes(x, -1, -2)
