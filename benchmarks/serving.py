"""Serving side by side: every export format next to Keras `predict`, on real test images.

    python -m benchmarks.serving run/best.keras

A saved network is exported to all installed formats; each runs in its own process. Each runtime
uses all cores and, except for OpenVINO's float32, its default options.
"""

import pathlib
import statistics
import tempfile
import timeit

import numpy as np

from benchmarks import measurements
from benchmarks.turns import take_turns, values
from highway_keras import data, models
from highway_keras.export import FORMATS, export

BATCHES = {1: 50, 256: 5}  # images per call: calls per turn


def main(arguments=None):
    parser = measurements.parser("benchmarks.serving", __doc__, turns=9)
    parser.add_argument("file", metavar="FILE", help="a .keras file that `fit` saved")
    options = parser.parse_args(arguments)
    file = pathlib.Path(options.file).resolve()
    trained = models.load(file)
    dataset = data.load(trained.dataset)
    with tempfile.TemporaryDirectory() as folder:
        images = pathlib.Path(folder, "images.npy")
        x = dataset.x_test[: max(BATCHES)]  # repeated where there are fewer
        np.save(images, np.resize(x, (max(BATCHES), *x.shape[1:])))
        paths = {"keras predict": file}
        for format, quantize, path, _ in exported(trained, folder, dataset):
            if (format, quantize) != ("keras", ""):
                paths[f"{format} {quantize}".strip()] = path
        work_of = {
            name: ("benchmarks.serving:work", name, path, images) for name, path in paths.items()
        }
        turns = take_turns(work_of, options.turns)
    rows = []
    for name, of_format in turns.items():
        row = {"file": file.name, "format": name, "n": options.turns}
        for size in BATCHES:
            row |= measurements.middle(f"ms_{size}", values(of_format, f"ms_{size}"))
        rows.append(row)
    command = ("benchmarks.serving", options.file)
    measurements.record(rows, ("file", "format"), options.out, *command, turns=options.turns)


def exported(trained, folder, images):
    """Export a trained network in every way whose package is installed, to files in a folder.

    Yields:
        (format, quantization or "", path, what `export` returns).
    """
    for format, description in FORMATS.items():
        for quantize in (None, *description.quantizations):
            path = pathlib.Path(folder, f"{format}-{quantize}{description.suffix}")
            options = {"format": format, "quantize": quantize, "class_names": trained.class_names}
            print(f"exporting {path.stem}", flush=True)
            try:
                verified = export(trained.model, path, images, **options)
            except (ImportError, RuntimeError, ValueError) as error:  # the others can be measured
                print(f"without it: {error}", flush=True)
            else:
                yield format, quantize or "", path, verified


def work(name, path, images):
    """Take turns that report the milliseconds of a call by size of the batch."""
    if name.startswith("keras"):  # its runtime predicts in batches of 32
        model = models.load(path).model

        def call(images):
            return model.predict(images, batch_size=len(images), verbose=0)

    else:
        call = FORMATS[name.split()[0]].run(path)
    images = np.load(images)
    yield
    while True:
        figures = {}
        for size, calls in BATCHES.items():
            x = images[:size]
            seconds = timeit.repeat(lambda x=x: call(x), number=1, repeat=calls)
            figures[f"ms_{size}"] = 1000 * statistics.median(seconds)
        yield figures


if __name__ == "__main__":
    main()
