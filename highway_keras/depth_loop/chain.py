"""The chain of blocks: both loops over depth, tied together as one differentiable operation."""

import functools

from keras import ops, tree

from highway_keras.backends import shim


def chain(block, x, kernel, bias, relu_share, return_sequence, return_gate):
    """Run `block` over all layers of `kernel`, on `x` of shape `(n, d)` or `(K, n, d)`.

    Return the outputs in a tuple: the last block's or, as a sequence, every block's, then the
    transform gates if requested.
    """
    if not shim.HAS_LOOPS:
        return _plain_loop(block, x, kernel, bias, relu_share, return_sequence, return_gate)
    forward, backward = _loops(block, return_sequence, return_gate)

    # As arguments, not captured: on JAX a captured tensor could not be a traced one.
    @ops.custom_gradient
    def run(x, kernel, bias, relu_share):
        inputs = [shim.stop_gradient(v) for v in (x, kernel, bias, relu_share)]
        outputs, residuals = forward(*inputs)

        def gradient(*upstream):  # TensorFlow gives it as arguments, JAX as one tuple
            d_outputs = tree.flatten(upstream)
            gradients = backward(d_outputs, kernel, bias, relu_share, *residuals)
            return *gradients, ops.zeros_like(relu_share)

        return outputs, gradient

    return run(x, kernel, bias, relu_share)


@functools.lru_cache(maxsize=64)
def _loops(block, return_sequence, return_gate):
    """Return the compiled loops of a block, made once: a new function would be compiled again."""

    def forward(x, kernel, bias, relu_share):
        def step(x, weights):
            y, parts = block.forward(x, *weights, relu_share)
            kept = [] if block.recomputes else parts
            return y, (x, kept, [parts[1]] if return_gate else [])

        y, (xs, kept, gates) = shim.scan(step, _columns(x), (kernel, bias[..., None]))
        outputs = ops.concatenate([xs[1:], y[None]]) if return_sequence else y
        return tuple(_columns(v) for v in (outputs, *gates)), (xs, kept)

    def backward(d_outputs, kernel, bias, relu_share, xs, parts):
        d_outputs = [_columns(d) for d in d_outputs]
        d_gates = [d_outputs[1]] if return_gate else []
        dys = [d_outputs[0]] if return_sequence else []

        def step(dy, layer):
            x, parts, w, b, d_y, d_gate = layer
            dy, d_gate = sum(d_y, dy), sum(d_gate)
            dx, dz = block.backward(dy, d_gate, x, parts, w, b, relu_share)
            return dx, (ops.matmul(x, _columns(dz)), ops.sum(dz, axis=-1))

        last = ops.zeros_like(xs[0]) if return_sequence else d_outputs[0]
        layers = (xs, parts, kernel, bias[..., None], dys, d_gates)
        dx, d_weights = shim.scan(step, last, layers, reverse=True)
        return _columns(dx), *d_weights

    return shim.compiled(forward), shim.differentiable_once(shim.compiled(backward))


def _columns(x):
    """Rows to columns, and back."""
    return ops.swapaxes(x, -1, -2)


def _plain_loop(block, x, kernel, bias, relu_share, return_sequence, return_gate):
    """The chain for a backend without compiled loops; its own autodiff gives the gradient."""
    y, ys, gates = _columns(x), [], []
    for w, b in zip(kernel, bias[..., None], strict=True):
        y, parts = block.forward(y, w, b, relu_share)
        ys.append(y)
        gates.extend(parts[1:2])
    outputs = [
        ops.stack(ys) if return_sequence else y,
        *([ops.stack(gates)] if return_gate else []),
    ]
    return tuple(_columns(v) for v in outputs)
