"""Serving side by side: every export format next to Keras `predict`, on real test images.

    python -m benchmarks.serving run/best.keras

A saved network is exported to all installed formats; each runs in its own process. Each runtime
uses all cores and, except for OpenVINO's float32, its default options.
"""

import pathlib
import statistics
import tempfile
import timeit

from benchmarks import measurements
from benchmarks.turns import Worker, take_turns

BATCHES = {1: 50, 256: 5}  # images per call: calls per turn


def main(arguments=None):
    parser = measurements.parser("benchmarks.serving", __doc__, turns=9, data=True)
    parser.add_argument("file", metavar="FILE", help="a .keras file that `fit` saved")
    options = parser.parse_args(arguments)
    import numpy as np

    from highway_keras import data, models

    trained = models.load(options.file)
    dataset = data.load(trained.dataset, data_dir=options.data_dir)
    with tempfile.TemporaryDirectory() as folder:
        images = pathlib.Path(folder, "images.npy")
        x = dataset.x_test[: max(BATCHES)]  # repeated where there are fewer
        np.save(images, np.resize(x, (max(BATCHES), *x.shape[1:])))
        paths = {"keras predict": pathlib.Path(options.file).resolve()}
        for (format, quantize), path, _ in exported(trained, folder, dataset):
            if (format, quantize) != ("keras", None):
                paths[" ".join(filter(None, (format, quantize)))] = path
        workers = [
            Worker(name, "benchmarks.serving:work", name, path, images)
            for name, path in paths.items()
        ]
        present = take_turns(workers, options.turns)
    with_keras, rows = workers[0], []
    for worker in present:
        row = {"file": _name(options.file), "format": worker.name, "n": options.turns}
        for size in BATCHES:
            theirs, ours = with_keras.values(f"ms_{size}"), worker.values(f"ms_{size}")
            row |= measurements.middle(f"ms_{size}", ours)
            row |= measurements.middle(f"times_faster_{size}", measurements.ratios(theirs, ours))
        rows.append(row)
    command = ("benchmarks.serving", options.file)
    measurements.record(rows, ("file", "format"), options.out, *command, turns=options.turns)


def _name(file):
    """Return what rows call a network: the name of a file of the zoo, the path of any other."""
    file = pathlib.Path(file)
    return file.name if file.parent.name == "weights" else str(file)


def exported(trained, folder, images):
    """Export a trained network in every way whose package is installed, to files in a folder.

    Yields:
        ((format, quantization), path, what `export` returns).
    """
    from highway_keras.export import FORMATS, export

    for format, description in FORMATS.items():
        for quantize in (None, *description.quantizations):
            path = pathlib.Path(folder, f"{format}-{quantize}{description.suffix}")
            options = {"format": format, "quantize": quantize, "class_names": trained.class_names}
            measurements.say(f"exporting {path.stem}")
            try:
                yield (format, quantize), path, export(trained.complete, path, images, **options)
            except (ImportError, RuntimeError, ValueError) as error:  # the others can be measured
                measurements.say(f"without it: {error}")


def work(name, path, images):
    """Take turns that report the milliseconds of a call by size of the batch."""
    import numpy as np

    from highway_keras import models
    from highway_keras.export.formats import FORMATS

    if name.startswith("keras"):  # its runtime predicts in batches of 32
        model = models.load(path).complete

        def call(images):
            return model.predict(images, batch_size=len(images), verbose=0)

    else:
        call = FORMATS[name.split()[0]].run(path)
    images = np.load(images)
    yield
    while True:
        yield {f"ms_{size}": _time(call, images[:size], BATCHES[size]) for size in BATCHES}


def _time(call, images, calls):
    return 1000 * statistics.median(timeit.repeat(lambda: call(images), number=1, repeat=calls))


if __name__ == "__main__":
    main()
