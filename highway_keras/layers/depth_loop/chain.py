"""The chain of blocks: two loops over depth, tied together as one differentiable operation."""

import functools

import keras
from keras import ops, tree

from highway_keras.layers.backends import shim
from highway_keras.layers.depth_loop.block import Block, relu_or_tanh
from highway_keras.layers.depth_loop.shares import split_over_cores


def apply_blocks(
    x,
    kernel,
    bias,
    activation="relu",
    transform_activation="sigmoid",
    kind="highway",
    return_gate=False,
    rematerialize=False,
    relu_mask=None,
):
    """Apply a chain of identical fully connected blocks, one after the other, as one loop.

    ```
    [H | T | C] = x[l] @ kernel[l] + bias[l], each through its activation
    x[l+1] = x[l] + T * (H - x[l])           # [H | T] (Eq. 3)
    x[l+1] = H * T + x[l] * C                # [H | T | C] (Eq. 2)
    x[l+1] = H                               # kind="plain"
    x[l+1] = x[l] + H                        # kind="residual"
    ```

    The gradient is hand-written (Eq. 9 with the derivatives of H and T) and also a loop. XLA
    compiles both, even inside a program that is not compiled. On PyTorch, and where TensorFlow
    cannot compile a loop, the chain is a plain loop.

    Args:
        x: Input, `(..., d)`. With a trial axis K, K networks run at once: `(K, ..., d)`.
        kernel: Kernels, `(L, d, m * d)` or `(L, K, d, m * d)`, for m parts of H, T and C.
        bias: Biases, `(L, m * d)` or `(L, K, m * d)`.
        activation: Activation of H.
        transform_activation: Activation of T and C.
        kind: `"highway"`, `"plain"` or `"residual"`.
        return_gate: Whether to return `(outputs, gates)`; the gates are T, `(L, ..., d)`.
        rematerialize: Whether the backward pass recomputes H and T from the input of each block.
            It recomputes them in any case for activations other than relu, tanh, sigmoid and
            linear, on TensorFlow and JAX.
        relu_mask: With trials, in place of `activation`: a tensor `(K, 1, 1)` that is 1 for each
            network with relu and 0 for tanh.

    Returns:
        The outputs, of the shape and dtype of `x`.
    """
    x = ops.convert_to_tensor(x, sparse=False)
    # The loop runs in the dtype of `x`: it carries block outputs from one block to the next.
    kernel, bias = (ops.cast(ops.convert_to_tensor(w), x.dtype) for w in (kernel, bias))
    activation = keras.activations.get(activation) if relu_mask is None else relu_or_tanh
    relu_mask = ops.convert_to_tensor(0 if relu_mask is None else relu_mask, x.dtype)
    gates = kernel.shape[-1] // kernel.shape[-2] - 1
    gate_activations = [keras.activations.get(transform_activation)] * gates
    block = Block(kind, (activation, *gate_activations), rematerialize)

    trials = len(kernel.shape) - 3
    outputs = split_over_cores(
        lambda rows: _chain(block, rows, kernel, bias, relu_mask, return_gate),
        ops.reshape(x, (*ops.shape(x)[:trials], -1, x.shape[-1])),
        kernel,
    )
    y = ops.reshape(outputs[0], ops.shape(x))
    if not return_gate:
        return y
    return y, ops.reshape(outputs[1], (*kernel.shape[:1], *ops.shape(x)))


def _chain(block, x, kernel, bias, relu_mask, return_gate):
    """Run `block` over all layers of `kernel`, on `x` of shape `(n, d)` or `(K, n, d)`.

    Return the outputs of the last block, then the transform gates if requested, in a tuple.
    """
    has_loops = shim.has_loops()
    forward, backward = _loops(block, return_gate, has_loops)
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

    return run(x, kernel, bias, relu_mask)


@functools.lru_cache(maxsize=64)
def _loops(block, return_gate, has_loops):
    """Return the loops of a block, made once: a new function would be compiled again."""

    def forward(x, kernel, bias, relu_mask):
        def step(x, weights):
            y, parts = block.forward(x, *weights, relu_mask)
            residuals = parts if has_loops and not block.recomputes else []
            return y, (x if has_loops else [], residuals, [parts[1]] if return_gate else [])

        # TensorFlow's `remat` is a custom gradient.
        if block.rematerialize and keras.backend.backend() == "torch":
            step = keras.remat(step)
        loop = shim.scan if has_loops else _python_scan
        y, (xs, residuals, gates) = loop(step, _transposed(x), (kernel, bias[..., None]))
        return tuple(_transposed(v) for v in (y, *gates)), (xs, residuals)

    def backward(d_outputs, kernel, bias, relu_mask, xs, parts):
        dy, *d_gates = [_transposed(d) for d in d_outputs]

        def step(dy, layer):
            x, parts, w, b, d_gate = layer
            dx, dz = block.backward(dy, sum(d_gate), x, parts, w, b, relu_mask)
            return dx, (ops.matmul(x, _transposed(dz)), ops.sum(dz, axis=-1))

        layers = (xs, parts, kernel, bias[..., None], d_gates)
        dx, d_weights = shim.scan(step, dy, layers, reverse=True)
        return _transposed(dx), *d_weights

    return [shim.compiled(f) if has_loops else f for f in (forward, backward)]


def _python_scan(step, carry, xs):
    """Loop as `shim.scan` does, in Python.

    Not `keras.ops.scan`: on PyTorch the gradient of its indexing is as large as all of `xs`, once a
    block.
    """
    emitted = []
    for rows in zip(*map(ops.unstack, tree.flatten(xs)), strict=True):
        carry, outputs = step(carry, tree.pack_sequence_as(xs, rows))
        emitted.append(outputs)
    return carry, tree.map_structure(lambda *rows: ops.stack(rows), *emitted)


def _transposed(x):
    """Rows to columns, and back."""
    return ops.swapaxes(x, -1, -2)
