"""What the layers of the networks of section 4 do, as rows: `python -m tools.gates FOLDER`.

`docs/analysis.md` puts them next to what the paper says about its own networks. They go into
`results/analysis.csv`, a row per layer; layer 0 is the intact network.
"""

import argparse
import pathlib

import numpy as np

from highway_keras import analysis, data, training
from highway_keras.analysis.blocks import block_starts
from highway_keras.analysis.graph import Graph
from highway_keras.paper.finals import best_final
from highway_keras.results import provenance, update_rows
from tools.render import ROOT

FILE = ROOT / "results" / "analysis.csv"
SAMPLES = 2000  # of which single gates and block outputs are kept
CLASSES = (0, 1, 7)  # those of the paper's Figure 3, of MNIST 0 and 7, of CIFAR-100 0 and 1
COLUMNS = ("start", "mean_bias", "moved", "below_start", "mean_gate", "gate_moved", "open")
COLUMNS += ("ever_open", "change", *(f"routing_{number}" for number in CLASSES))
COLUMNS += ("lesion_loss", "lesion_error", "matters")


def layer_rows(model, x, y):
    """Return a row per layer, dictionaries; for layer 0, only what holds for the whole network."""
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
            "moved": np.abs(biases[index] - starts[index]).mean(),
            "below_start": (biases[index] < starts[index]).mean(),
            "mean_gate": mean.overall.values[index].mean(),
            # If weights have mean zero, gates start at the sigmoid of their biases.
            "gate_moved": np.abs(mean.overall.values[index] - closed(starts[index])).mean(),
            "open": (gates[:, index] > 0.5).mean(),
            "ever_open": (gates[:, index] > 0.5).any(axis=0).mean(),
            "change": changes[index - 1] if index else "",  # from the block output before
            **{f"routing_{number}": routing[number, index] for number in CLASSES},
            "lesion_loss": lesions.loss[index],
            "lesion_error": lesions.error[index],
            "matters": int(name in needed),
        }
        rows.append({"layer": index + 1, **measured})
    return rows


def closed(bias):
    """Return the gate of a unit whose inputs sum to nothing."""
    return 1 / (1 + np.exp(-bias))


def command(folder):
    """Return the command that left its work in `folder`."""
    (path,) = (folder / "searches").glob("thin-*")
    search = training.RunFolder(path).read_json()
    size = f"--search-epochs {search['epochs']} --limit {search['limit']}"
    return f"highway-keras reproduce figure2 --dataset {search['dataset']} {size}"


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.gates", description=__doc__)
    parser.add_argument("folder", help="where `highway-keras reproduce figure2` left its work")
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    options = parser.parse_args()
    (network,) = pathlib.Path(options.folder, "finals").glob("thin-*")
    folder = best_final(network)
    settings, model = folder.read_json(), training.SavedNetwork(folder.best).model
    images = data.load(settings["dataset"], data_dir=options.data_dir, validation=0)
    made = {key: settings[key] for key in ("dataset", "seed")} | {"n": 1}
    made["trial"] = folder.path.name.removeprefix("final-")
    made |= {"epochs": settings["recipe"]["epochs"], "samples": len(images.x_train)}
    made["test_accuracy"] = settings["results"]["test_accuracy"]
    made |= provenance.of_run(folder, command(pathlib.Path(options.folder)))
    rows = [{**row, **made} for row in layer_rows(model, images.x_train, images.y_train)]
    update_rows(FILE, rows, ("dataset", "layer"))
    print(f"{len(rows)} rows of {settings['model']} on {settings['dataset']}")


if __name__ == "__main__":
    main()
