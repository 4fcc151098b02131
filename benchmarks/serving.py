"""Serving side by side: every export format next to Keras `predict`, on real test images.

    python -m benchmarks.serving run/best.keras

A saved network is exported to all installed formats; each runs in its own process. Each runtime
uses all cores and, except for OpenVINO's float32, its default options.
"""

import pathlib
import statistics
import tempfile
import timeit

from benchmarks import rows
from benchmarks.turns import Worker, take_turns

BATCHES = {1: 50, 256: 5}  # images per call: calls per turn


def main(arguments=None):
    parser = rows.parser("benchmarks.serving", __doc__, turns=9, data=True)
    parser.add_argument("file", metavar="FILE", help="a .keras file that `fit` saved")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        workers = [
            Worker(name, "benchmarks.serving:work", name, path.resolve(), folder / "images.npy")
            for name, path in _export_all(options.file, folder, options.data_dir).items()
        ]
        present = take_turns(workers, options.turns)
    keras, found = workers[0], []
    for worker in present:
        row = {"file": pathlib.Path(options.file).name, "format": worker.name, "n": options.turns}
        for size in BATCHES:
            theirs, ours = keras.values(f"ms_{size}"), worker.values(f"ms_{size}")
            row |= rows.middle(f"ms_{size}", ours)
            row |= rows.middle(f"times_faster_{size}", rows.ratios(theirs, ours))
        found.append(row)
    command = ("benchmarks.serving", options.file)
    rows.record(found, ("file", "format"), options.out, *command, turns=options.turns)


def _export_all(file, folder, data_dir):
    """Export a network to all formats, write images to classify; return the paths by format."""
    import numpy as np

    from highway_keras import data, training
    from highway_keras.export import FORMATS, export

    dataset = data.load(training.SavedNetwork(file).dataset, data_dir=data_dir)
    np.save(folder / "images.npy", dataset.x_test[: max(BATCHES)])
    paths = {"keras predict": pathlib.Path(file)}
    choices = [(f, q) for f, known in FORMATS.items() for q in (None, *known.quantizations)]
    choices.remove(("keras", None))  # the peer itself
    for format, quantize in choices:
        name = f"{format} {quantize or ''}".strip()
        path = folder / (name.replace(" ", "_") + FORMATS[format].suffix)
        rows.say(f"exporting {name}")
        try:
            export(file, path, format, quantize, dataset)
            paths[name] = path
        except ImportError as error:
            rows.say(f"without {name}: {error}")
    return paths


def work(name, path, images):
    """Take turns that report the milliseconds of a call by size of the batch."""
    import numpy as np

    from highway_keras import training
    from highway_keras.export.runtimes import RUNTIMES

    if name == "keras predict":
        model = training.SavedNetwork(path).model

        def call(images):
            return model.predict(images, batch_size=len(images), verbose=0)

    else:
        call = RUNTIMES[name.split()[0]](path)[0]
    images = np.load(images)
    yield
    while True:
        yield {f"ms_{size}": _time(call, images[:size], BATCHES[size]) for size in BATCHES}


def _time(call, images, calls):
    return 1000 * statistics.median(timeit.repeat(lambda: call(images), number=1, repeat=calls))


if __name__ == "__main__":
    main()
