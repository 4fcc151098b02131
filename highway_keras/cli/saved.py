"""`predict`, `evaluate`, `analyze`, `compact` and `export`: what to do with a trained network."""

import csv as csv_files
import pathlib
import sys

from highway_keras.cli import shared as cli
from highway_keras.cli.backend import library, silent_libraries
from highway_keras.util import checks, files
from highway_keras.util.extras import extra
from highway_keras.util.messages import cell, printable

COLUMNS = ("image", "class", "probability")
# Settings of a run that `compact` keeps
KEPT = ("dataset", "images", "test_images", "image_shape", "data_classes", "skip_broken")
KEPT += ("edge_brightness", "freeze", "recipe", "dropout_in_file")
SECONDS = 1.0  # before progress is shown
ITS_DATA = (cli.dataset("that of its training"), cli.DATA_DIR)


@cli.command(
    "predict",
    "Classify pictures with a network.",
    *cli.NETWORK,
    cli.option(
        "images",
        metavar="IMAGE",
        nargs="+",
        help="PNG or JPEG files, folders of them, or patterns such as 'scans/*.png'; "
        "transparent parts become white",
        complete=cli.FILES,
    ),
    cli.option("--top", metavar="K", type=int, default=1, help="classes to name for each"),
    [cli.JSON, cli.flag("--csv", "print CSV, a row for each class")],
)
def predict(network, weights, images, top, json, csv):
    """Print the most probable classes of each picture; return 1 if one cannot be read."""
    checks.positive_integer("top", top)
    file = cli.network_file(network, weights)
    data, training = library("data"), library("training")
    with extra("train"):
        from tqdm import tqdm

    paths = data.find_pictures(images)
    found = training.SavedNetwork(file).classify(paths, top)
    # On stderr, if that is a terminal to which nothing else is written
    quiet = (csv and sys.stdout.isatty()) or None
    bar = {"unit": " pictures", "disable": quiet, "delay": SECONDS, "leave": False}
    found = tqdm(found, total=len(paths), **bar)
    if csv:
        found = _print_csv(found)
    found = list(found)
    rows = [(one.path, name, f"{p:.4f}") for one in found for name, p in one.classes]
    if json:
        cli.print_json([_as_json(one) for one in found])
    elif rows and not csv:
        cli.print_table([COLUMNS, *rows], right=(2,))
    failed = [one for one in found if one.error]
    for one in failed:
        print(f"highway-keras: {printable(one.error)}", file=sys.stderr)
    if failed and len(found) > 1:
        counted = f"{len(failed)} of {len(found)} pictures could not be read."
        print(f"highway-keras: {counted}", file=sys.stderr)
    return 1 if failed else 0


def _print_csv(found):
    """Yield what was found after its rows are written, so that an interruption keeps them."""
    writer = csv_files.writer(sys.stdout, lineterminator="\n")
    rows = [COLUMNS]  # with the first picture, after which nothing is refused
    for one in found:
        writer.writerows([*rows, *([cell(one.path), cell(name), p] for name, p in one.classes)])
        rows = []
        yield one


def _as_json(one):
    if one.error:
        return {"image": one.path, "error": one.error}
    return {
        "image": one.path,
        "classes": [{"class": name, "probability": p} for name, p in one.classes],
    }


@cli.command("evaluate", "Measure a network on test images.", *cli.NETWORK, *ITS_DATA, cli.JSON)
def evaluate(network, weights, dataset, data_dir, json):
    file = cli.network_file(network, weights)
    cli.check_paths(dataset)
    training = library("training")
    saved = training.SavedNetwork(file)
    images = saved.load(dataset, data_dir, validation=0, test_only=True)
    found = saved.evaluate(images, 0 if json else "auto")
    (loss, accuracy), count = found, len(images.x_test)
    by_class = dict(zip(saved.names_for(images), found.class_accuracy, strict=True))
    if json:
        measured = {"accuracy": accuracy, "loss": loss, "images": count}
        measured |= {"class_accuracy": by_class, "confusion": found.confusion.tolist()}
        cli.print_json({"network": str(file), "dataset": images.name, **measured})
        return
    print(f"test accuracy {100 * accuracy:.2f} %  test loss {loss:.4f}  ({count} images)")
    lowest = min((share, name) for name, share in by_class.items() if share is not None)
    print(f"lowest of a class {100 * lowest[0]:.2f} %  ({printable(lowest[1])})")
    if weights and dataset in (None, weights):
        print(f"its model card says {100 * saved.settings['accuracy']:.2f} %")


@cli.command(
    "analyze",
    "Show what the layers of a network do.",
    *cli.NETWORK,
    *ITS_DATA,
    cli.limit(),
    cli.option(
        "--threshold",
        type=float,
        default=0.001,
        help="share of the images by which the error must rise for a layer to matter; 0.001 is "
        "0.1 points",
    ),
    cli.option(
        "--out",
        help="folder of the page (default: analysis next to best.keras; for another FILE, "
        "analysis-FILE next to it, or here with --weights)",
    ),
)
def analyze(network, weights, dataset, data_dir, limit, threshold, out):
    """Write a page of gates, routing and lesions."""
    file = cli.network_file(network, weights)
    name = "analysis" if file.name == "best.keras" else f"analysis-{file.stem}"
    out = out or (pathlib.Path() if weights else file.parent) / name
    cli.check_paths(dataset, out)
    checks.number("threshold", threshold, least=0, below=1)
    analysis, training = library("analysis"), library("training")
    saved = training.SavedNetwork(file)
    library("data").check_outside(dataset or saved.dataset, out)
    images = saved.load(dataset, data_dir, validation=0, limit=limit)
    found = analysis.analyze(
        saved.model,
        images.x_train,
        images.y_train,
        out=out,
        class_names=saved.names_for(images),
        title=f"{saved.model.name} on {images.name}",
        threshold=threshold,
        examples=(images.x_test, images.y_test),
    )
    print(found.needed)
    if found.live is None:
        print(f"highway-keras: no live page. {printable(found.no_live)}", file=sys.stderr)
    else:
        cli.print_saved(found.live)
    cli.print_saved(found.page)


@cli.command(
    "compact",
    "Leave out the gated layers that a network can do without.",
    *cli.NETWORK,
    [
        cli.option(
            "--budget",
            type=float,
            default=0.2,
            help="percentage points by which the error on training images may rise",
        ),
        cli.option("--layers", type=int, help="gated layers to leave, whatever that costs"),
    ],
    cli.option("--out", required=True, help="folder of the smaller network"),
    cli.limit(),
    *ITS_DATA,
)
def compact(network, weights, dataset, data_dir, limit, budget, layers, out):
    """Write the smaller network as a run's folder, with a table and a picture of the steps."""
    file = cli.network_file(network, weights)
    cli.check_paths(dataset, out, resume=None)
    checks.number("budget", budget, least=0, below=100)
    analysis, training = library("analysis"), library("training")
    saved = training.SavedNetwork(file)
    library("data").check_outside(dataset or saved.dataset, out)
    images = saved.load(dataset, data_dir, validation=0, limit=limit)
    before = saved.evaluate(images)
    done = analysis.compact(saved.model, images.x_train, images.y_train, budget / 100, layers)
    folder = training.RunFolder(out)
    with folder.locked():
        cli.check_paths(out=out, resume=None)  # another process may have written there meanwhile
        loss, accuracy = training.evaluate(done.model, images)
        # Keep the settings that also hold for the smaller network.
        settings = {"model": saved.model.name, "class_names": saved.names_for(images)}
        settings |= {key: saved.settings[key] for key in KEPT if key in saved.settings}
        if dataset:  # which may have moved, or be another one
            settings["dataset"] = dataset
            for fingerprint in ("images", "test_images"):
                settings.pop(fingerprint, None)
        chosen = {"network": str(network), "weights": weights, "dataset": dataset, "limit": limit}
        chosen |= {"budget": budget} if layers is None else {"layers": layers}
        chosen |= {"closed": done.closed}
        files.write_rows(folder.path / "compact.csv", done.curve)
        numbers = [row["layers"] for row in done.curve]
        errors = [100 * row["error"] for row in done.curve]
        axes = {"xlabel": "gated layers left", "yscale": "linear"}
        axes["ylabel"] = f"error on {len(images.x_train):,} training images (%)"
        library("analysis.pictures").write_picture(
            folder.path / "compact.png",
            lambda plots: plots.plot_lines(
                [plots.Line(errors, x=numbers)], saved.model.name, **axes
            ),
        )
        with files.replacing(folder.best) as temporary:
            done.model.save(temporary)
            folder.write_json({**settings, "compacted": chosen})  # a full disk is found before
            library("runs.folder").mark(temporary, folder.identity())
    first, last = done.curve[0], done.curve[-1]
    print(
        f"{last['layers']} of {first['layers']} gated layers, {last['parameters']:,} of "
        f"{first['parameters']:,} parameters, {last['multiplications']:,} of "
        f"{first['multiplications']:,} multiplications"
    )
    print(
        f"test accuracy {100 * accuracy:.2f} %  test loss {loss:.4f}  (before: "
        f"{100 * before[1]:.2f} %, {len(images.x_test)} images)"
    )
    cli.print_saved(folder.best)


@cli.command(
    "export",
    "Write a network for another runtime, and verify it.",
    *cli.NETWORK,
    cli.option(
        "--format",
        help="saved_model, keras, onnx, litert or openvino (default: by the suffix of --out)",
    ),
    cli.option("--quantize", help="float16 (litert, openvino) or int8 (keras, litert)"),
    cli.option("--out", dest="path", required=True, help="folder of a SavedModel, else a file"),
    cli.flag("--overwrite", "replace an earlier export"),
    cli.several("--class-names", metavar="NAME", help="names of the classes, in their order"),
    cli.option(
        "--no-verify",
        dest="verify",
        action="store_false",
        help="do not verify; needs no test images",
    ),
    *ITS_DATA,
)
def export(network, weights, path, verify, **arguments):
    file = cli.network_file(network, weights)
    cli.check_paths(arguments["dataset"])
    exporting = library("export")
    with silent_libraries():  # the converters' progress
        done = exporting.export(file, path, verify=verify, verbose="auto", **arguments)
    if verify:
        print(
            f"test accuracy {100 * done.accuracy:.2f} %  (Keras {100 * done.keras_accuracy:.2f} %, "
            f"largest difference {done.difference:.1e}, {done.images} images)"
        )
    print(f"saved {printable(done.path)}  ({done.size:,} bytes)")
