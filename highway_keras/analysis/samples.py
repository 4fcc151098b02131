"""Samples and labels as a model takes them, and a model run over them in bounded memory."""

import keras
import numpy as np

from highway_keras.data import PictureArray, images_at_once
from highway_keras.ops import agree
from highway_keras.util import checks
from highway_keras.util.messages import shows_progress


def as_arrays(x, model_inputs, name="x"):
    """Return the arrays of `x`, one for each input of the model, all of the same length."""
    # A dictionary is not flattened, as its order may not be that of the inputs: it does not fit.
    arrays = keras.tree.flatten(x) if isinstance(x, list | tuple) else [x]
    arrays = [a if isinstance(a, PictureArray) else np.asarray(a) for a in arrays]
    wanted = [tuple(tensor.shape) for tensor in model_inputs]
    fit = len(arrays) == len(wanted) and all(
        agree(array.shape, (None, *shape[1:])) for array, shape in zip(arrays, wanted, strict=True)
    )
    if not fit or len({len(array) for array in arrays}) != 1 or not len(arrays[0]):
        raise ValueError(
            f"`{name}` must hold an array of samples for each of the model's inputs, of shape "
            f"{', '.join(map(str, wanted))}, all of the same length. Received: arrays of shape "
            f"{checks.short_repr([array.shape for array in arrays])}. A list of samples: "
            f"`numpy.stack({name})`. One sample: `{name}[:1]`. A dictionary: "
            f"`[{name}[tensor.name] for tensor in model.inputs]`."
        )
    return arrays


def as_labels(y, count, output=(None, None)):
    """Return the labels as integers `(count, ...)`, one for each class distribution of `output`.

    `output` is the shape of the model's output, `(batch_size, ..., classes)`.
    """
    labels, shape = np.asarray(y), (count, *output[1:-1])
    if labels.ndim == len(output) and labels.shape[-1] == 1:
        labels = labels[..., 0]
    if not np.issubdtype(labels.dtype, np.integer) or not agree(labels.shape, shape):
        raise ValueError(
            f"`y` must be class numbers, integers from 0, of shape {shape}. Received: an array of "
            f"{labels.dtype} of shape {labels.shape}. One-hot labels: `y.argmax(-1)`."
        )
    classes = output[-1]  # `None` where that side is open
    most = labels.max() if classes is None else classes - 1
    if labels.min() < 0 or labels.max() > most:
        raise ValueError(
            f"`y` must be class numbers from 0{'' if classes is None else f' to {most}'}. "
            f"Received: {labels.min()} to {labels.max()}."
        )
    return labels.astype("int32")


def by_batch(model, arrays, batch_size, verbose, multiple_of=1):
    """Yield `(slice, outputs)` over the batches of `arrays`, the outputs as NumPy arrays.

    The last batch is padded, so the model is compiled for one size, and its outputs are cut
    again. The size of all batches is a multiple of `multiple_of`. Without `batch_size` it is 500,
    less for large samples.
    """
    if batch_size is None:
        batch_size = min(images_at_once(array.shape[1:]) for array in arrays)
    batch_size = checks.positive_integer("batch_size", batch_size)
    count = len(arrays[0])
    batch_size = -(-min(batch_size, count) // multiple_of) * multiple_of
    bar = int(shows_progress(verbose))
    progress = keras.utils.Progbar(count, verbose=bar, unit_name="sample")
    for start in range(0, count, batch_size):
        part = slice(start, min(start + batch_size, count))
        batch = [np.resize(array[part], (batch_size, *array.shape[1:])) for array in arrays]
        outputs = model.predict_on_batch(batch if len(batch) > 1 else batch[0])
        yield part, [output[: part.stop - start] for output in keras.tree.flatten(outputs)]
        progress.update(part.stop)
