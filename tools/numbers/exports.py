"""Exports: what they weigh and get right; and how converted layers agree with their sources."""

from tools.numbers.rows import NONE, columns, rows, table

FORMATS = {
    "saved_model": "SavedModel",
    "onnx": "ONNX",
    "litert": "LiteRT",
    "openvino": "OpenVINO",
    "keras": "Keras",
}
SOURCES = {
    "keras-1.0.8.h5": ("Keras 1.0.8", "itself, on Theano 1.0.5", "one by one"),
    "keras-1.1.2.h5": ("Keras 1.1.2", "itself, on TensorFlow 1.15.5", "one by one"),
    "keras-1.2.2.h5": ("Keras 1.2.2", "itself, on TensorFlow 1.15.5", "one by one"),
    "keras-2.2.4.h5": ("Keras 2.2.4", "itself, on TensorFlow 1.15.5", "one by one"),
    "allennlp-2.10.1.npz": ("allennlp 2.10.1", "its `Highway` on PyTorch 1.4.0", "chain"),
    "bilm-tf.hdf5": ("bilm-tf", "its graph, rebuilt in TensorFlow 1.15.5", "chain"),
    "tacotron-tensorflow.npz": (
        "keithito/tacotron",
        "its graph, rebuilt in TensorFlow 1.15.5",
        "chain",
    ),
    "tacotron-pytorch.npz": (
        "r9y9/tacotron_pytorch",
        "its module, rebuilt in PyTorch 1.4.0",
        "chain",
    ),
}


def exports():
    """Return the table of all exports: bytes, and accuracy beside that of the Keras network."""
    header = ("network", "format", "bytes", "of float", "accuracy %, Keras", "exported", "images")
    lines, floats = [], {}
    for r in rows("export"):
        what = f"{FORMATS[r['format']]} {r['quantize']}".strip()
        size, key = int(r["bytes"]), (r["model"], r["format"])
        share = f"{size / floats[key]:.2f}" if r["quantize"] else ""
        floats.setdefault(key, size)
        accuracies = (f"{100 * float(r[k]):.2f}" for k in ("keras_accuracy", "accuracy"))
        network = f"`{r['model']}`"
        lines.append((network, what, f"{size:,}", share, *accuracies, f"{int(r['images']):,}"))
    return table(columns(header, left=2), lines) if lines else NONE


def conversions():
    """Return the table of the differences from what other libraries computed."""
    header = ("source", "run by", "layers", "largest difference")
    lines = []
    for r in rows("convert"):
        name, by, how = SOURCES[r["file"]]
        layers = f"chain of {r['layers']}" if how == "chain" else f"{r['layers']}, {how}"
        lines.append((name, by, layers, f"{float(r['largest_difference']):.1e}"))
    return table(columns(header, left=3), lines) if lines else NONE


NUMBERS = {"exports": exports, "conversions": conversions}
