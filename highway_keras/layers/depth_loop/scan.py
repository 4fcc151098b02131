"""`scan`: check arguments and shapes, bring them into the form that the chain takes."""

import keras
from keras import ops

from highway_keras.layers.depth_loop.block import Block, relu_or_tanh
from highway_keras.layers.depth_loop.chain import chain
from highway_keras.layers.depth_loop.shares import split_over_cores
from highway_keras.util import checks


def scan(
    x,
    kernel,
    bias,
    activation="relu",
    transform_activation="sigmoid",
    kind="highway",
    carry="coupled",
    return_sequence=False,
    return_gate=False,
    rematerialize=False,
):
    """Apply a chain of identical fully connected blocks, one after the other, as one loop.

    ```
    [H | T | C] = x[l] @ kernel[l] + bias[l], each through its activation
    x[l+1] = x[l] + T * (H - x[l])           # kind="highway", carry="coupled" (Eq. 3)
    x[l+1] = H * T + x[l] * C                # kind="highway", carry="learned" (Eq. 2)
    x[l+1] = H                               # kind="plain"
    x[l+1] = x[l] + H                        # kind="residual"
    ```

    The gradient is hand-written (Eq. 9 with the derivatives of H and T) and also
    a loop. On TensorFlow and JAX, XLA compiles both even inside a program that is not compiled.
    On TensorFlow the result is differentiable once. On PyTorch, and in `tf.vectorized_map`, where
    `rematerialize` has no effect, the chain is a plain loop.

    With a trial axis K in front, K networks of one shape run at once, each on its own input.

    Args:
        x: Input, `(..., d)`; with trials `(K, ..., d)`.
        kernel: Stacked kernels, `(L, d, m * d)`; with trials `(L, K, d, m * d)`. `m` is 2
            (halves [H | T]), 3 for `carry="learned"` ([H | T | C]), 1 for other kinds ([H]).
        bias: Stacked biases, `(L, m * d)`; with trials `(L, K, m * d)`.
        activation: Activation of the block state H: a name or a function, as in Keras. Or, with
            trials, a tensor `(K, 1, 1)` that is 1 for each network with relu and 0 for tanh.
        transform_activation: Activation of the transform gate T and a learned carry gate C.
        kind: `"highway"`, `"plain"` or `"residual"`.
        carry: `"coupled"` (C = 1 - T) or `"learned"`.
        return_sequence: Whether to return the outputs of all blocks, `(L, ..., d)`, instead of
            the last one's.
        return_gate: Whether to return `(outputs, gates)`, the transform gates being
            `(L, ..., d)`.
        rematerialize: Whether to keep only the input of each block for the backward pass and
            recompute H and T: less memory, more time. Activations other than relu, tanh, sigmoid
            and linear are always recomputed on TensorFlow and JAX.

    Returns:
        The outputs, of the shape and dtype of `x`; see `return_sequence` and `return_gate`.

    Raises:
        ValueError: If an option is unknown, the depth is 0, or the shapes do not fit.
        TypeError: If `x` is not floating point, or an activation is not hashable: the compiled
            loops are cached by activation.

    Examples:
        >>> import numpy as np
        >>> from highway_keras.layers.depth_loop import scan
        >>> kernel, bias = np.zeros((100, 8, 16)), np.full((100, 16), -30.0)
        >>> x = np.ones((4, 8))
        >>> bool(np.allclose(scan(x, kernel, bias), x))  # closed gates carry the input through
        True

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), Eq. 2, 3 and 9.
    """
    kinds = ("highway",) if return_gate else ("highway", "plain", "residual")
    checks.one_of("kind", kind, kinds)
    checks.one_of("carry", carry, ("coupled", "learned"))
    x = ops.convert_to_tensor(x, sparse=False)
    dtype = keras.backend.standardize_dtype(x.dtype)
    if not keras.backend.is_float_dtype(dtype):
        raise TypeError(f"`x` must be floating point. Received: x.dtype={dtype}.")
    # The loop runs in the dtype of `x`: it carries block outputs from one block to the next.
    kernel, bias = (ops.cast(ops.convert_to_tensor(w), x.dtype) for w in (kernel, bias))
    branches = 1 if kind != "highway" else 3 if carry == "learned" else 2
    relu_mask = ops.zeros((), x.dtype)  # the tensor that `relu_or_tanh` reads
    if activation is None or isinstance(activation, str | dict) or callable(activation):
        activation = keras.activations.get(activation)
    else:
        relu_mask, activation = ops.cast(ops.convert_to_tensor(activation), x.dtype), relu_or_tanh
    gates = [keras.activations.get(transform_activation)] * (branches - 1)
    block = Block(kind, (activation, *gates), bool(rematerialize))
    _check_shapes(x, kernel, bias, relu_mask, branches)

    trials = len(kernel.shape) - 3
    results = bool(return_sequence), bool(return_gate)
    outputs = split_over_cores(
        lambda rows: chain(block, rows, kernel, bias, relu_mask, *results),
        ops.reshape(x, (*ops.shape(x)[:trials], -1, x.shape[-1])),
        kernel,
    )
    by_block = (*kernel.shape[:1], *ops.shape(x))
    shapes = [by_block if return_sequence else ops.shape(x), by_block]
    outputs = [ops.reshape(y, shape) for y, shape in zip(outputs, shapes, strict=False)]
    return tuple(outputs) if return_gate else outputs[0]


def _check_shapes(x, kernel, bias, relu_mask, m):
    depth, *trials = tuple(kernel.shape)[:-2] or (0,)
    width = x.shape[-1]
    fits = (
        depth > 0
        and len(trials) < 2
        and list(x.shape[:-1])[: len(trials)] == trials
        and tuple(kernel.shape) == (depth, *trials, width, m * width)
        and tuple(bias.shape) == (depth, *trials, m * width)
        and tuple(relu_mask.shape) in ((), (*trials, 1, 1))
    )
    if not fits:
        tensors = {"x": x, "kernel": kernel, "bias": bias, "activation": relu_mask}
        received = ", ".join(f"{name}.shape={tuple(z.shape)}" for name, z in tensors.items())
        raise ValueError(
            f"`x`, `kernel` and `bias` must have the shapes (..., d), (L, d, {m} * d) and "
            f"(L, {m} * d), or with trials (K, ..., d), (L, K, d, {m} * d) and (L, K, {m} * d), "
            f"and `activation`, if it is a tensor, (K, 1, 1). Received: {received}."
        )
