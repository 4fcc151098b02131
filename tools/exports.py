"""Sizes and accuracies of exports of the zoo's weights: `python -m tools.exports NAME...`.

Each installed format is verified as `export` does it: on 1000 test images, or on all of them if it
is quantized. The rows go into `results/export.csv`. Speeds are measured by `benchmarks.serving`.
"""

import argparse
import pathlib
import tempfile

from benchmarks.rows import say
from highway_keras import data, models, training
from highway_keras.export import FORMATS, export
from highway_keras.results import provenance, update_rows
from tools.render import ROOT

FILE = ROOT / "results" / "export.csv"
WEIGHTS = "mnist"


def export_rows(name, weights, folder, images):
    """Export the weights of a network to every installed format; return a row for each."""
    file, rows = models.get(name).weights_file(weights), []
    for format, known in FORMATS.items():
        for quantize in (None, *known.quantizations):
            path = pathlib.Path(folder) / f"{format}-{quantize}{known.suffix}"
            try:
                done = export(file, path, format, quantize, images)
            except ImportError as error:
                say(f"without {' '.join(filter(None, (format, quantize)))}: {error}")
                continue
            measured = {
                "bytes": done.size,
                "keras_accuracy": done.keras_accuracy,
                "accuracy": done.accuracy,
                "difference": done.difference,
                "images": done.images,
            }
            what = {"model": name, "weights": weights, "format": format, "quantize": quantize or ""}
            rows.append({**what, **measured, "n": 1})
    return rows


def _command(name, weights):
    chosen = "" if weights == WEIGHTS else f" --weights {weights}"
    return f"python -m tools.exports {name}{chosen}"


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.exports", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--weights", default=WEIGHTS, help="default: %(default)s")
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    options = parser.parse_args()
    for name in options.names:
        saved = training.SavedNetwork(models.get(name).weights_file(options.weights))
        images = data.load(saved.dataset, data_dir=options.data_dir)
        with tempfile.TemporaryDirectory() as folder:
            rows = export_rows(name, options.weights, folder, images)
        made = provenance.of_command(_command(name, options.weights))
        rows = [{**row, "seed": saved.settings["seeds"][0], **made} for row in rows]
        update_rows(FILE, rows, ("model", "weights", "format", "quantize"))
        print(f"{len(rows)} rows of {name}")


if __name__ == "__main__":
    main()
