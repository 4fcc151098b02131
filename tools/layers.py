"""What the layers of a network do, with its weights of the zoo: `python -m tools.layers NAME`.

It looks into the network as `highway-keras analyze` does, with training images. The rows go into
`results/layers.csv`, a row per layer, where layer 0 is the intact network; Figure 4 becomes
`docs/figure4-NAME.png`.
"""

import argparse
import pathlib
import shutil
import tempfile

from highway_keras import models, training
from highway_keras.analysis import report
from highway_keras.analysis.blocks import block_starts
from highway_keras.analysis.graph import Graph
from highway_keras.models import shipped
from highway_keras.results import provenance, update_rows
from tools.render import ROOT

FILE = ROOT / "results" / "layers.csv"
COLUMNS = ("name", "start", "mean_bias", "mean_gate", "lesion_loss", "lesion_error")


def layer_rows(found, starts):
    """Return a row per layer, dictionaries, of what `analyze` found; `starts` are its biases."""
    lesions = found.lesions
    whole = {"lesion_loss": lesions.intact_loss, "lesion_error": lesions.intact_error}
    rows = [{"layer": 0, **dict.fromkeys(COLUMNS, ""), **whole}]
    for measured, start in zip(report.layer_rows(found), starts, strict=True):
        known = {**measured, "name": measured["layer"], "start": start}
        rows.append({"layer": len(rows), **{column: known[column] for column in COLUMNS}})
    return rows


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.layers", description=__doc__)
    parser.add_argument("name", help="a network with weights for its own data set")
    parser.add_argument("--limit", type=int, default=10_000, help="images (default: 10000)")
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    options = parser.parse_args()
    card = models.get(options.name)
    saved = training.SavedNetwork(card.weights_file(card.dataset))
    images = saved.load(card.dataset, options.data_dir, validation=0, limit=options.limit)
    with tempfile.TemporaryDirectory() as folder:
        found = report.analyze(saved.model, images.x_train, images.y_train, folder)
        picture = ROOT / "docs" / f"figure4-{card.name}.png"
        shutil.copyfile(pathlib.Path(folder, "figure4.png"), picture)
    seed = shipped.find_entry(card.name, card.dataset)["seeds"][0]
    made = {"model": card.name, "dataset": card.dataset, "seed": seed, "n": 1}
    made |= {"samples": len(images.x_train)}
    made |= provenance.of_command(f"python -m tools.layers {card.name} --limit {options.limit}")
    rows = [{**row, **made} for row in layer_rows(found, block_starts(Graph(saved.model)))]
    update_rows(FILE, rows, ("model", "dataset", "layer"))
    print(found.needed)


if __name__ == "__main__":
    main()
