"""What the layers of a trained network do, as rows: `python -m tools.gates RUN_FOLDER`.

`docs/analysis.md` states them beside what the paper says of its own network. They go into
`results/analysis.csv`, a row a layer; layer 0 is the network as it is.
"""

import argparse

import numpy as np

from highway_keras import analysis, data, training
from highway_keras.analysis.blocks import block_starts
from highway_keras.analysis.graph import Graph
from highway_keras.paper import provenance
from tools.curves import command
from tools.render import ROOT

FILE = ROOT / "results" / "analysis.csv"
SAMPLES = 2000  # of which single gates and block outputs are kept
DIGITS = (0, 7)  # those of the paper's Figure 3
COLUMNS = ("start", "mean_bias", "below_start", "mean_gate", "open", "change")
COLUMNS += (*(f"routing_{digit}" for digit in DIGITS), "lesion_loss", "lesion_error", "matters")


def layer_rows(model, x, y):
    """Return a row a layer, dictionaries; of layer 0 only what holds for the whole network."""
    biases, starts = analysis.transform_biases(model).values, block_starts(Graph(model))
    mean = analysis.mean_gates(model, x, y)
    gates = analysis.gates(model, x[:SAMPLES]).values
    outputs = analysis.block_outputs(model, x[:SAMPLES]).values
    changes = np.abs(np.diff(outputs, axis=1)).mean(axis=(0, 2))
    routing = np.abs(mean.by_class.values).mean(axis=-1)
    lesions = analysis.lesions(model, x, y)
    needed = analysis.needed_layers(lesions).layers
    whole = {"lesion_loss": lesions.intact_loss, "lesion_error": lesions.intact_error}
    rows = [{"layer": 0, **dict.fromkeys(COLUMNS, ""), **whole}]
    for index, name in enumerate(lesions.layers):
        measured = {
            "start": starts[index],
            "mean_bias": biases[index].mean(),
            "below_start": (biases[index] < starts[index]).mean(),
            "mean_gate": mean.overall.values[index].mean(),
            "open": (gates[:, index] > 0.5).mean(),
            "change": changes[index - 1] if index else "",  # from the block output before
            **{f"routing_{digit}": routing[digit, index] for digit in DIGITS},
            "lesion_loss": lesions.loss[index],
            "lesion_error": lesions.error[index],
            "matters": int(name in needed),
        }
        rows.append({"layer": index + 1, **measured})
    return rows


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.gates", description=__doc__)
    parser.add_argument("folder", metavar="RUN_FOLDER")
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    options = parser.parse_args()
    folder = training.RunFolder(options.folder)
    settings, model = folder.read_json(), training.SavedNetwork(folder.best).model
    images = data.load(settings["dataset"], data_dir=options.data_dir, validation=0)
    made = {"network": command(settings), "samples": len(images.x_train), "n": 1}
    made |= {"seed": settings["seed"]}
    made |= provenance.provenance("python -m tools.gates RUN_FOLDER")
    rows = [{**row, **made} for row in layer_rows(model, images.x_train, images.y_train)]
    provenance.update_rows(FILE, rows, ("network", "layer"))
    print(f"{len(rows)} rows of {settings['model']}")


if __name__ == "__main__":
    main()
