"""What the gates of a network do: biases, gates and block outputs, by sample and on average."""

import dataclasses

import keras
import numpy as np
from keras import ops

from highway_keras.analysis import blocks


def gate_model(model, with_outputs=False):
    """Return a model from the inputs of `model` to the transform gates T of all its blocks.

    It shares the weights of `model`, so it follows the training of `model`. It can be saved, loaded
    and exported like any Keras model.

    Args:
        model: A built functional or Sequential Keras model with gated layers, itself or in
            functional and Sequential models inside it. Gated layers inside other layers, such as
            `TimeDistributed`, are left out.
        with_outputs: Whether to return the outputs of `model`, too, as `{"outputs": ..., "gates":
            [...]}`, for example to serve both.

    Returns:
        A `keras.Model` whose outputs are a list, one for each block and of its output's shape. As
        in Keras, a model of one output returns that alone if it is called or asked to `predict`.

    Raises:
        ValueError: If `model` has no gated layers.

    Examples:
        >>> from highway_keras import analysis, models
        >>> network = models.thin_mlp(depth=4, units=7, input_shape=(8,))
        >>> [gate.shape for gate in analysis.gate_model(network).outputs]
        [(None, 7), (None, 7), (None, 7)]
    """
    return blocks.observe(model, with_outputs=with_outputs)[0]


def transform_biases(model):
    """Return the biases of the transform gates (Figure 2, first column).

    Args:
        model: As for `gate_model`.

    Returns:
        A dictionary from the name of each block to an array `(units,)`. The name of a block is its
        layer's; blocks of a `HighwayStack` are numbered, such as `highway_0`, and repeated names
        are counted, such as `highway (2)`. The array is `[nan]` for a gate without a bias.

    Examples:
        >>> from highway_keras import analysis, models
        >>> biases = analysis.transform_biases(models.thin_mlp(depth=4, transform_bias=-3.0))
        >>> float(biases["highway_1"].mean())
        -3.0
    """
    return {block.name: bias_of(block) for block in blocks.observe(model)[1]}


def bias_of(block):
    """Return the biases of a block's transform gate, an array `(units,)`."""
    bias = block.layer.gate_bias
    if bias is None:
        return np.full(1, np.nan, "float32")
    bias = ops.convert_to_numpy(bias).astype("float32")
    return bias if block.index is None else bias[block.index]


def gates(model, x, per_position=False, batch_size=None, verbose=0):
    """Return the transform gates of each sample (Figure 2, third column).

    Args:
        model: As for `gate_model`.
        x: Samples as `model` takes them: an array, or a list or dictionary of them.
        per_position: Whether to keep the positions of a convolutional or recurrent layer instead
            of averaging over them.
        batch_size: Samples per batch. Default: 500, fewer if they are large.
        verbose: 1 shows a progress bar, 0 none, `"auto"` one on a terminal.

    Returns:
        A dictionary from the name of each block to an array `(samples, units)`, with `per_position`
        `(samples, ..., units)`. Channels are the last axis whatever the layer's `data_format`.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import analysis, models
        >>> network = models.mnist_highway(16)
        >>> images = np.zeros((2, 28, 28, 1))
        >>> analysis.gates(network, images)["stage1_highway1"].shape
        (2, 16)
        >>> analysis.gates(network, images, per_position=True)["stage1_highway1"].shape
        (2, 24, 24, 16)
    """
    return _by_sample(model, "gates", x, per_position, batch_size, verbose)


def block_outputs(model, x, per_position=False, batch_size=None, verbose=0):
    """Return the outputs of all gated blocks for each sample (Figure 2, fourth column).

    Arguments and result are those of `gates`.
    """
    return _by_sample(model, "outputs", x, per_position, batch_size, verbose)


def _by_sample(model, what, x, per_position, batch_size, verbose):
    observed, gated_blocks = blocks.observe(model, what)
    batches = _observations(observed, gated_blocks, x, per_position, batch_size, verbose)
    by_block = zip(*(arrays for _, arrays in batches), strict=True)
    pairs = zip(gated_blocks, by_block, strict=True)
    return {block.name: np.concatenate(arrays) for block, arrays in pairs}


def _observations(observed, gated_blocks, x, per_position, batch_size, verbose):
    """Yield `(slice, arrays)` over batches, with a float32 array for each block, channels last."""
    for part, batch in blocks.in_batches(x, batch_size, verbose):
        arrays = keras.tree.flatten(observed.predict_on_batch(batch))
        pairs = zip(gated_blocks, arrays, strict=True)
        arrays = [_channels_last(array, block.layer) for block, array in pairs]
        if not per_position:
            arrays = [array.mean(axis=tuple(range(1, array.ndim - 1))) for array in arrays]
        yield part, arrays


def _channels_last(array, layer):
    channels_first = getattr(layer.transform, "data_format", None) == "channels_first"
    return np.moveaxis(array, 1 if channels_first else -1, -1).astype("float32")


@dataclasses.dataclass(frozen=True, eq=False)
class MeanGates:
    """Mean transform gates of a data set.

    Attributes:
        overall: The mean over all samples, a dictionary from the name of each block to an array
            `(units,)` (Figure 2, second column).
        by_class: A dictionary from each class number to such a dictionary of the mean over the
            samples of that class minus the mean over all (Figure 3). `None` without labels.
    """

    overall: dict
    by_class: dict | None


def mean_gates(model, x, y=None, batch_size=None, verbose="auto"):
    """Return the mean transform gates over a data set, and how much those of each class differ.

    This takes one pass over the data and the memory of one batch. Gates of layers with positions,
    such as convolutions, are averaged over these as well; masked positions count like all others.

    Args:
        model, x, batch_size, verbose: As for `gates`.
        y: Class numbers, integers `(samples,)`, or `None` for no class means.

    Returns:
        A `MeanGates`.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import analysis, models
        >>> network = models.thin_mlp(depth=4, input_shape=(8,))
        >>> x, y = np.zeros((6, 8)), np.array([0, 0, 1, 1, 2, 2])
        >>> mean = analysis.mean_gates(network, x, y)
        >>> mean.by_class[2]["highway_1"].shape
        (50,)
    """
    observed, gated_blocks = blocks.observe(model)
    names = [block.name for block in gated_blocks]
    count = len(keras.tree.flatten(x)[0])
    labels = np.zeros(count, int) if y is None else np.reshape(y, count)
    classes, members, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    sums = [0.0] * len(names)  # over the samples of a class, `(classes, units)` for each block
    for part, arrays in _observations(observed, gated_blocks, x, False, batch_size, verbose):
        is_member = (members[part] == np.arange(len(classes))[:, None]).astype("float64")
        sums = [total + is_member @ array for total, array in zip(sums, arrays, strict=True)]
    means = [total.sum(axis=0) / count for total in sums]
    overall = dict(zip(names, means, strict=True))
    if y is None:
        return MeanGates(overall, None)
    by_class = {}
    for i, number in enumerate(classes.tolist()):
        differences = [s[i] / sizes[i] - mean for s, mean in zip(sums, means, strict=True)]
        by_class[number] = dict(zip(names, differences, strict=True))
    return MeanGates(overall, by_class)
