"""How well converted layers agree with their sources: `python -m tools.conversions`.

The largest difference from the outputs that the libraries computed themselves, for the files in
`tests/old_weights`. The rows go into `results/convert.csv`.
"""

import numpy as np

from highway_keras import convert
from highway_keras.results import provenance, update_rows
from tools.render import ROOT

FILE = ROOT / "results" / "convert.csv"
OLD = ROOT / "tests" / "old_weights"
KERAS = {"1.0.8": "1.0", "1.1.2": "1.0", "1.2.2": "1.2", "2.2.4": "2.0"}
LAYERS = {"highway_1": "tanh", "highway_2": "linear", "highway_3": "relu"}
STATES = {
    "allennlp-2.10.1": (convert.from_allennlp, "tanh", {}),
    "tacotron-tensorflow": (
        convert.from_tacotron,
        "relu",
        {"prefix": "model/inference/encoder_cbhg/"},
    ),
    "tacotron-pytorch": (convert.from_tacotron, "relu", {"prefix": "encoder.cbhg."}),
}


def differences():
    """Yield (file, number of layers, largest difference)."""
    for version, layout in KERAS.items():
        outputs, file = np.load(OLD / f"keras-{version}.npz"), OLD / f"keras-{version}.h5"
        x, found = outputs["dense_1"], []
        for name, activation in LAYERS.items():
            layer = convert.from_keras1(file, activation, layout, layer=name)
            found.append(_difference([layer], x, outputs[name]))
            x = outputs[name]
        yield file.name, len(LAYERS), max(found)
    for name, (function, activation, options) in STATES.items():
        stored = np.load(OLD / f"{name}.npz")
        state = {key.replace("|", "/"): array for key, array in stored.items()}
        x, y = state.pop("x"), state.pop("y")
        layers = function(state, activation, **options)
        yield f"{name}.npz", len(layers), _difference(layers, x, y)
    outputs = np.load(OLD / "bilm-tf.npz")
    layers = convert.from_elmo(OLD / "bilm-tf.hdf5", "relu")
    yield "bilm-tf.hdf5", len(layers), _difference(layers, outputs["x"], outputs["y"])


def _difference(layers, x, expected):
    for layer in layers:
        x = layer(x)
    return float(np.abs(np.asarray(x) - expected).max())


def main():
    made = provenance.of_command("python -m tools.conversions")
    rows = [
        {"file": file, "layers": layers, "largest_difference": found, "n": 1, "seed": "", **made}
        for file, layers, found in differences()
    ]
    update_rows(FILE, rows, ("file",))
    for row in rows:
        print(row["file"], row["layers"], f"{row['largest_difference']:.1e}")


if __name__ == "__main__":
    main()
