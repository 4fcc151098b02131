"""Run a model over arrays batch by batch, in bounded memory."""

import sys

import keras
import numpy as np

from highway_keras import checks


def as_arrays(x, model_inputs):
    """Return the arrays of `x`, one for each input of the model, all of the same length."""
    if isinstance(x, dict):  # whose order need not be that of the inputs
        raise ValueError(
            "`x` must be a list of arrays, in the order of `model.inputs`, for a model of several "
            f"inputs. Received: a dictionary of {', '.join(map(repr, x))}."
        )
    arrays = [np.asarray(a) for a in keras.tree.flatten(x)] if _is_structure(x) else [np.asarray(x)]
    if len(arrays) != len(model_inputs):
        raise ValueError(
            f"`x` must hold an array for each of the model's {len(model_inputs)} inputs. "
            f"Received: {len(arrays)}."
        )
    for array, expected in zip(arrays, model_inputs, strict=True):
        if not _fits(array.shape, expected.shape):
            raise ValueError(
                f"`x` must be an array of samples, {expected.shape}. Received: "
                f"x.shape={array.shape}. One sample still needs its batch axis: `x[:1]`."
            )
    if len({len(a) for a in arrays}) != 1 or not len(arrays[0]):
        raise ValueError(
            "`x` must hold one or more samples, the same number in all arrays. "
            f"Received: shapes {[a.shape for a in arrays]}."
        )
    return arrays


def as_labels(y, count):
    """Return the labels as integers `(count, ...)`."""
    labels = np.asarray(y)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    if not np.issubdtype(labels.dtype, np.integer) or labels.ndim < 1 or len(labels) != count:
        raise ValueError(
            f"`y` must be {count} class numbers, integers from 0. Received: an array of "
            f"{labels.dtype} of shape {labels.shape}. One-hot labels: `y.argmax(-1)`."
        )
    return labels


def run(model, arrays, batch_size, verbose, parts=1):
    """Yield `(slice, outputs)` over the batches of `arrays`, the outputs as NumPy arrays.

    The last batch is padded, so the model is compiled for one size, and its outputs are cut
    again. The size of all batches is a multiple of `parts`.
    """
    batch_size = checks.positive_integer("batch_size", batch_size)
    count = len(arrays[0])
    batch_size = -(-min(batch_size, count) // parts) * parts
    shown = sys.stdout.isatty() if verbose == "auto" else bool(verbose)
    progress = keras.utils.Progbar(count, verbose=int(shown), unit_name="sample")
    for start in range(0, count, batch_size):
        part = slice(start, min(start + batch_size, count))
        batch = [_filled(array[part], batch_size) for array in arrays]
        outputs = model.predict_on_batch(batch if len(batch) > 1 else batch[0])
        outputs = keras.tree.flatten(outputs)
        yield part, [output[: part.stop - part.start] for output in outputs]
        progress.update(part.stop)


def _filled(array, length):
    missing = length - len(array)
    return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if missing else array


def _is_structure(x):
    return isinstance(x, list | tuple)


def _fits(shape, expected):
    return len(shape) == len(expected) and all(
        n in (None, m) for m, n in zip(shape[1:], expected[1:], strict=True)
    )
