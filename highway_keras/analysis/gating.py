"""What the gates of a network do: biases, gates and block outputs, by sample and on average."""

import dataclasses

import keras
import numpy as np
from keras import ops

from highway_keras.analysis.graph import Graph, of_gated
from highway_keras.analysis.named_array import NamedArray, by_layer
from highway_keras.analysis.samples import as_arrays, as_labels, by_batch
from highway_keras.layers import HighwayStack, stacked


def gate_model(model):
    """Return a model from the inputs of `model` to the transform gates T of all its gated blocks.

    It shares the weights of `model`, nested models included, so it follows the training of `model`.

    Args:
        model: A built functional or Sequential Keras model with gated layers.

    Returns:
        A `keras.Model` whose outputs are a list, one `(batch_size, ..., units)` for each block in
        order; channels are the last axis whatever the layer's `data_format`. Called or asked to
        `predict`, a model of one output returns that alone, as in Keras.

    Raises:
        TypeError: If `model` is not a built functional or Sequential model.
        ValueError: If `model` has no gated layers.

    Examples:
        >>> from highway_keras import analysis, models
        >>> network = models.thin_mlp(depth=4, units=7, input_shape=(8,))
        >>> [gate.shape for gate in analysis.gate_model(network).outputs]
        [(None, 7), (None, 7), (None, 7)]
    """
    return observer(Graph(model), "gates", per_position=True)


def transform_biases(model):
    """Return the biases of the transform gates (Figure 2, first column).

    Args:
        model: As for `gate_model`.

    Returns:
        A `NamedArray` with the axes `layer` and `unit`.

    Examples:
        >>> from highway_keras import analysis, models
        >>> analysis.transform_biases(models.thin_mlp(depth=4, transform_bias=-3.0)).values.mean()
        np.float64(-3.0)
    """
    graph = Graph(model)
    return by_layer(block_biases(graph), graph.blocks)


def block_biases(graph):
    """Return the biases of the transform gates, an array `(units,)` for each block of a `Graph`."""
    biases = []
    for call in graph.gated:
        bias = call.layer.transform_bias
        # A gate of the user's own may have none.
        bias = [np.nan] if bias is None else ops.convert_to_numpy(bias).astype("float32")
        biases.extend(np.reshape(bias, (len(call.blocks), -1)))
    return biases


def block_starts(graph):
    """Return the initial transform bias of each block, an array `(blocks,)`.

    It is computed from the layer's initializer; NaN where that is unknown or not constant.
    """
    starts = np.full(len(graph.blocks), np.nan)
    for call in graph.gated:
        layer = call.layer
        if isinstance(layer, HighwayStack):
            initializer = stacked.Start(layer.transform_bias_initializer)
        else:
            initializer = getattr(layer.transform, "bias_initializer", None)
        if layer.transform_bias is None or initializer is None:  # a gate of the user's own
            continue
        bias = layer.transform_bias
        start = ops.cast(initializer(bias.shape, dtype=bias.dtype), "float32")  # rounded as it is
        start = ops.convert_to_numpy(start).reshape(len(call.blocks), -1)
        starts[call.blocks] = np.where(np.ptp(start, axis=1) == 0, start[:, 0], np.nan)
    return starts


def gates(model, x, per_position=False, batch_size=None, verbose=0):
    """Return the transform gates of each sample (Figure 2, third column).

    Args:
        model: As for `gate_model`.
        x: Samples as `model` takes them: an array, or a list of them.
        per_position: Whether to keep the positions of a convolutional or recurrent layer instead
            of averaging over them.
        batch_size: Samples per batch. Default: 500, fewer if they are large.
        verbose: 1 shows a progress bar, 0 none, `"auto"` one on a terminal.

    Returns:
        A `NamedArray` with the axes `sample`, `layer`, `unit`. With `per_position` a dictionary
        from the name of each block to an array `(samples, ..., units)`.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import analysis, models
        >>> network = models.mnist_highway(16)
        >>> images = np.zeros((2, 28, 28, 1))
        >>> analysis.gates(network, images)
        NamedArray(sample: 2, layer: 8, unit: 16)
        >>> analysis.gates(network, images, per_position=True)["stage1_highway1"].shape
        (2, 24, 24, 16)
    """
    return _of_samples(model, "gates", x, per_position, batch_size, verbose)


def block_outputs(model, x, per_position=False, batch_size=None, verbose=0):
    """Return the outputs of all gated blocks for each sample (Figure 2, fourth column).

    Arguments and result are those of `gates`.
    """
    return _of_samples(model, "outputs", x, per_position, batch_size, verbose)


@dataclasses.dataclass(frozen=True, eq=False)
class MeanGates:
    """Mean transform gates of a data set.

    Attributes:
        overall: The mean over all samples, axes `layer` and `unit` (Figure 2, second column).
        by_class: The mean over the samples of a class minus the mean over all, axes `class`,
            `layer` and `unit` (Figure 3). `None` without labels.
    """

    overall: NamedArray
    by_class: NamedArray | None


def mean_gates(model, x, y=None, batch_size=None, verbose="auto"):
    """Return the mean transform gates over a data set, and how much those of each class differ.

    This takes one pass over the data and the memory of one batch. Gates of layers with positions,
    such as convolutions, are averaged over these as well; masked positions count like all others.

    Args:
        model: As for `gate_model`.
        x: Samples as `model` takes them: an array, or a list of them.
        y: Class numbers, integers `(samples,)`, or `None` for no class means.
        batch_size: Samples per batch. Default: 500, fewer if they are large.
        verbose: 1 shows a progress bar, 0 none, `"auto"` one on a terminal.

    Returns:
        A `MeanGates`.

    Raises:
        ValueError: If `x` does not fit the model, or `y` does not fit `x`.

    Examples:
        >>> import numpy as np
        >>> from highway_keras import analysis, models
        >>> network = models.thin_mlp(depth=4, input_shape=(8,))
        >>> x, y = np.zeros((6, 8)), np.array([0, 0, 1, 1, 2, 2])
        >>> analysis.mean_gates(network, x, y).by_class
        NamedArray(class: 3, layer: 3, unit: 50)
    """
    graph = Graph(model)
    arrays = as_arrays(x, graph.inputs)
    count = len(arrays[0])
    labels = np.zeros(count, int) if y is None else as_labels(y, count)
    classes, numbers, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    sums = []  # over the samples of a class, `(classes, units)` for each block
    for part, gates in by_batch(observer(graph, "gates"), arrays, batch_size, verbose):
        members = (numbers[part] == np.arange(len(classes))[:, None]).astype("float64")
        batch = [members @ gate for gate in gates]
        sums = [s + b for s, b in zip(sums, batch, strict=True)] if sums else batch
    overall = by_layer([s.sum(0) / count for s in sums], graph.blocks)
    if y is None:
        return MeanGates(overall, None)
    means = [s / sizes[:, None] - s.sum(0) / count for s in sums]
    by_class = by_layer(means, graph.blocks, **{"class": tuple(classes.tolist())})
    return MeanGates(overall, by_class)


def observer(graph, what, per_position=False):
    """Return a model from the inputs of a `Graph` to the `"gates"` or `"outputs"` of its blocks."""
    observed = []

    def visit(call, *args, **kwargs):
        if not call.blocks:
            return call.run(*args, **kwargs)
        x, passed = of_gated(args, kwargs)
        outputs, gates, *blocks = Observed(call.layer, what, per_position)(x, **passed)
        observed.extend(blocks)
        return (outputs, gates) if kwargs.get("return_gate") else outputs

    graph.repeat(visit)
    inputs = graph.inputs if len(graph.inputs) > 1 else graph.inputs[0]  # as the analyzed model
    return keras.Model(inputs, observed)


class Observed(keras.Layer):
    """A gated layer that returns its output, its gate, and what was requested for each block."""

    def __init__(self, layer, what, per_position):
        super().__init__(dtype=layer.compute_dtype)  # not its policy, which may quantize
        self.layer, self.what, self.per_position = layer, what, per_position
        self.supports_masking = True
        first = getattr(layer.transform, "data_format", None) == "channels_first"
        self.channel_axis = 1 if first else -1

    def call(self, inputs, **passed):
        layer = self.layer
        outputs, gate = layer(inputs, return_gate=True, **passed)
        blocks = [gate if self.what == "gates" else outputs]
        if isinstance(layer, HighwayStack):
            if self.what == "outputs":
                blocks = [layer.scan(inputs, return_sequence=True)]
            blocks = ops.unstack(blocks[0])
        blocks = [ops.cast(ops.moveaxis(z, self.channel_axis, -1), "float32") for z in blocks]
        positions = tuple(range(1, len(inputs.shape) - 1))
        if positions and not self.per_position:
            blocks = [ops.mean(z, axis=positions) for z in blocks]
        return outputs, gate, *blocks

    def compute_output_spec(self, inputs, **passed):
        y, gate = self.layer.compute_output_spec(inputs, return_gate=True)
        shape = list(y.shape)
        shape.append(shape.pop(self.channel_axis))
        shape = shape if self.per_position else (shape[0], shape[-1])
        depth = getattr(self.layer, "depth", 1)
        return y, gate, *[keras.KerasTensor(tuple(shape), "float32") for _ in range(depth)]


def _of_samples(model, what, x, per_position, batch_size, verbose):
    graph = Graph(model)
    arrays = as_arrays(x, graph.inputs)
    batches = by_batch(observer(graph, what, per_position), arrays, batch_size, verbose)
    blocks = [np.concatenate(parts) for parts in zip(*(parts for _, parts in batches), strict=True)]
    if per_position:
        return dict(zip(graph.blocks, blocks, strict=True))
    return by_layer(blocks, graph.blocks, sample=range(len(arrays[0])))
