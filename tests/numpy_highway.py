"""The highway layers once more, in NumPy and float64, written from the paper's equations alone."""

import numpy as np

ACTIVATIONS = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "elu": lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "hard_sigmoid": lambda z: np.clip(z / 6 + 0.5, 0, 1),
}


def highway(x, weights, arguments):
    """Return `(y, t)` of a layer with these weights, a dictionary from name to array."""
    if "depth" in arguments:
        return stack(x, weights, arguments)
    h = transform("", x, weights, arguments)
    t = transform("transform_", x, weights, arguments)
    c = transform("carry_", x, weights, arguments) if "carry_kernel" in weights else 1 - t
    return h * t + x * c, t


def stack(x, weights, arguments):
    """A chain of layers: the last one's y, and t of all of them."""
    arguments = {name: value for name, value in arguments.items() if name != "depth"}
    gates = []
    for index in range(len(weights["kernel"])):
        layer = {name: weight[index] for name, weight in weights.items()}
        x, t = highway(x, layer, arguments)
        gates.append(t)
    return x, np.stack(gates)


def transform(prefix, x, weights, arguments):
    """H (prefix `""`), T or C: an affine map over the last axis or a convolution, then bent."""
    kernel, bias = weights[f"{prefix}kernel"], weights.get(f"{prefix}bias", 0.0)
    first = arguments.get("data_format") == "channels_first"
    x = np.moveaxis(x, 1, -1) if first else x
    if kernel.ndim == 2:
        z = np.einsum("...c,cf->...f", x, kernel)
    else:
        names = {"padding", "dilation_rate", "groups"} & set(arguments)
        z = convolve(x, kernel, **{name: arguments[name] for name in names})
    option, default = ("transform_activation", "sigmoid") if prefix else ("activation", "relu")
    y = ACTIVATIONS[arguments.get(option, default)](z + bias)
    return np.moveaxis(y, -1, 1) if first else y


def convolve(x, kernel, padding="same", dilation_rate=1, groups=1):
    """y[n, p, f] = sum over k and c of x[n, p + dilation * k - before, c] * kernel[k, c, f]."""
    *sizes, depth, filters = kernel.shape
    steps = np.broadcast_to(dilation_rate, len(sizes))
    reach = [int(step * (size - 1)) for step, size in zip(steps, sizes, strict=True)]
    before = [r if padding == "causal" else r // 2 for r in reach]
    pads = [(b, r - b) for b, r in zip(before, reach, strict=True)]
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    y = np.zeros((*x.shape[:-1], filters))
    for offset in np.ndindex(*sizes):
        starts = [int(o * step) for o, step in zip(offset, steps, strict=True)]
        places = [slice(s, s + n) for s, n in zip(starts, x.shape[1:-1], strict=True)]
        window = padded[(slice(None), *places)]
        for group in range(groups):
            read = slice(group * depth, (group + 1) * depth)
            written = slice(group * filters // groups, (group + 1) * filters // groups)
            y[..., written] += np.einsum(
                "...c,cf->...f", window[..., read], kernel[offset][:, written]
            )
    return y
