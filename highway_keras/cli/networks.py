"""`list`, `predict`, `evaluate`, `analyze`, `compact`, `export`: what to do with a network."""

import csv
import pathlib
import sys

import numpy as np

from highway_keras import models, results
from highway_keras.cli import shared
from highway_keras.export.formats import FORMATS
from highway_keras.util import checks
from highway_keras.util.cores import on_every_core
from highway_keras.util.extras import extra
from highway_keras.util.files import folder_lock, write_rows
from highway_keras.util.messages import printable, spreadsheet_text


def add_list(add):
    parser = add("list", list_networks, "Show the networks of the zoo.")
    parser.add_argument("--json", action="store_true", help="print JSON")


def list_networks(options):
    """Print a row for each network: its size, the paper's accuracy and ours, and its weights."""
    accuracies = results.accuracies()
    rows = [
        {
            "name": card.name,
            "dataset": card.dataset,
            "layers": card.layers,
            "parameters": card.parameters,
            "multiplications": card.multiplications,
            "paper": card.paper,
            "ours": accuracies.get(card.name, ""),
            "weights": list(card.weights),
        }
        for card in map(models.get, models.list_models())
    ]
    if options.json:
        shared.print_json(rows)
        return
    lines = [[f"{name} %" if name in ("paper", "ours") else name for name in rows[0]]]
    for row in rows:
        counts = [f"{row[name]:,}" for name in ("layers", "parameters", "multiplications")]
        texts = [row["paper"], row["ours"], ", ".join(row["weights"])]
        lines.append([row["name"], row["dataset"], *counts, *texts])
    shared.print_table(lines, right=(2, 3, 4))


def add_commands(add):
    parser = add("predict", predict, "Classify pictures with a network.")
    shared.add_network(parser)
    parser.add_argument(
        "images", metavar="IMAGE", nargs="+", help="PNG or JPEG files, or folders of them"
    )
    parser.add_argument(
        "--top", metavar="K", type=int, default=1, help="classes to name for each (default: 1)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV, a row for each class")

    parser = add("evaluate", evaluate, "Measure a network on test images.")
    shared.add_network(parser)
    shared.add_data(parser, "the data set that the network was trained on")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--wrong", metavar="FOLDER", help="save wrongly classified pictures there")

    parser = add("analyze", analyze, "Show what the layers of a network do.")
    shared.add_network(parser)
    shared.add_data(parser, "the data set that the network was trained on")
    shared.add_limit(parser)
    parser.add_argument(
        "--threshold",
        type=float,
        default=0.001,
        help="a layer matters if closing it raises the error by more than this share of the "
        "images (default: 0.001, 0.1 points)",
    )
    out_help = "folder of the page (default: analysis, in a run's folder)"
    parser.add_argument("--out", metavar="FOLDER", help=out_help)

    parser = add("compact", compact, "Leave out the gated layers that a network can do without.")
    shared.add_network(parser)
    shared.add_data(parser, "the data set that the network was trained on")
    shared.add_limit(parser)
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument(
        "--budget",
        type=float,
        default=0.2,
        help="percentage points by which the training error may rise (default: 0.2)",
    )
    goal.add_argument("--layers", type=int, help="gated layers to keep, whatever that costs")
    parser.add_argument("--out", metavar="FOLDER", required=True, help="for the smaller network")

    parser = add("export", export, "Write a network for another runtime, and verify it.")
    shared.add_network(parser)
    shared.add_data(parser, "the data set that the network was trained on")
    parser.add_argument("--format", choices=[*FORMATS], help="(default: by the suffix of --out)")
    parser.add_argument(
        "--quantize", choices=["float16", "int8"], help="for the formats that can be quantized"
    )
    parser.add_argument(
        "--out", metavar="PATH", required=True, help="folder of a SavedModel, or file"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier export")
    parser.add_argument(
        "--class-names", metavar="NAME", nargs="+", help="names of the classes, in their order"
    )
    parser.add_argument(
        "--no-verify", action="store_true", help="do not verify; needs no test images"
    )


def predict(options):
    """Print the most probable classes of each picture; return 1 if one cannot be read."""
    trained = shared.load_network(options)
    checks.integer("--top", options.top, least=1, most=len(trained.class_names))
    data = shared.library("data")
    paths = data.find_pictures(options.images)
    batch_size = data.inference_batch_size(trained.model.input_shape[1:])
    rows = []
    with extra("train"):
        from tqdm import tqdm
    for start in tqdm(range(0, len(paths), batch_size), delay=1, leave=False, disable=None):
        rows += _classify(trained, paths[start : start + batch_size], options.top)
    errors = [row["error"] for row in rows if "error" in row]
    for error in errors:
        print(f"highway-keras: {printable(error)}", file=sys.stderr)
    if errors and len(rows) > 1:
        message = f"{len(errors)} of {len(rows)} pictures could not be read."
        print(f"highway-keras: {message}", file=sys.stderr)
    lines = [
        (row["image"], one["class"], one["probability"])
        for row in rows
        for one in row.get("classes", ())
    ]
    columns = ("image", "class", "probability")
    if options.json:
        shared.print_json(rows)
    elif options.csv:
        texts = [(spreadsheet_text(i), spreadsheet_text(c), p) for i, c, p in lines]
        csv.writer(sys.stdout, lineterminator="\n").writerows([columns, *texts])
    elif lines:
        shared.print_table([columns, *((i, c, f"{p:.4f}") for i, c, p in lines)], right=(2,))
    return 1 if errors else 0


def _classify(trained, paths, top):
    """Return a dictionary for each picture: its path, and its `top` classes or an error."""
    data = shared.library("data")

    def read(path):
        try:
            return data.read_image(path, trained.model.input_shape[1:])
        except (OSError, data.DataError) as error:
            return error

    images = on_every_core(read, paths)
    readable = [image for image in images if not isinstance(image, Exception)]
    probabilities = shared.library("training").probabilities
    shares = iter(probabilities(trained.model, np.stack(readable)) if readable else ())
    rows = []
    for path, image in zip(paths, images, strict=True):
        if isinstance(image, Exception):
            rows.append({"image": str(path), "error": str(image)})
            continue
        share = next(shares)
        best = np.argsort(-share, kind="stable")[:top]
        classes = [{"class": trained.class_names[i], "probability": float(share[i])} for i in best]
        rows.append({"image": str(path), "classes": classes})
    return rows


def evaluate(options):
    trained = shared.load_network(options)
    images = shared.load_images(trained, options, test_only=True)
    if options.wrong:
        pathlib.Path(options.wrong).mkdir(parents=True)
    training = shared.library("training")
    measured = training.evaluate(trained.model, images, 0 if options.json else "auto")
    count = len(images.x_test)
    by_class = dict(zip(trained.class_names, measured.class_accuracy, strict=True))
    if options.wrong:
        _save_wrong(pathlib.Path(options.wrong), trained.class_names, images, measured.predicted)
    if options.json:
        content = {"network": str(trained.path), "dataset": images.name, "images": count}
        content |= {"accuracy": measured.accuracy, "loss": measured.loss}
        content |= {"class_accuracy": by_class, "confusion": measured.confusion.tolist()}
        shared.print_json(content)
        return
    accuracy = f"test accuracy {100 * measured.accuracy:.2f} %"
    print(f"{accuracy}  test loss {measured.loss:.4f}  ({count} images)")
    lowest = min((share, name) for name, share in by_class.items() if share is not None)
    print(f"lowest of a class {100 * lowest[0]:.2f} %  ({printable(lowest[1])})")


def _save_wrong(folder, class_names, images, predicted):
    """Write the test images that are classified wrongly, named by number, class and answer."""
    import keras

    names = [name.replace("/", "_") for name in class_names]
    for index in np.flatnonzero(predicted != images.y_test):
        name = f"{index:05} {names[images.y_test[index]]} as {names[predicted[index]]}.png"
        keras.utils.save_img(folder / name, images.x_test[index], scale=False)


def analyze(options):
    """Write a page of gates, routing and lesions, and the page in which one draws."""
    checks.number("--threshold", options.threshold, least=0, below=1)
    trained = shared.load_network(options)
    images = shared.load_images(trained, options, limit=options.limit)
    is_run = options.weights is None and pathlib.Path(options.network).is_dir()
    beside = trained.path.parent if is_run else pathlib.Path()
    out = pathlib.Path(options.out or beside / "analysis")
    names, title = trained.class_names, f"{trained.network.name} on {images.name}"
    report = shared.library("analysis").analyze(
        trained.model,
        images.x_train,
        images.y_train,
        out=out,
        threshold=options.threshold,
        class_names=names,
        title=title,
    )
    print(report.needed)
    live, x, y = shared.library("live"), images.x_test, images.y_test
    try:
        live.live_page(trained.model, x, y, out / "live.html", class_names=names, title=title)
        shared.print_saved(out / "live.html")
    except ValueError as error:  # a network that the page cannot compute
        print(f"highway-keras: no live page. {printable(error)}", file=sys.stderr)
    shared.print_saved(report.page)


def compact(options):
    """Write the smaller network as a file, with a table of the steps."""
    budget = checks.number("--budget", options.budget, least=0, below=100) / 100
    trained = shared.load_network(options)
    images = shared.load_images(trained, options, limit=options.limit)
    out = pathlib.Path(options.out).expanduser()
    training, analysis = shared.library("training"), shared.library("analysis")
    with folder_lock(out):
        if (out / "best.keras").exists():
            raise ValueError(f"`--out` already holds a network. Name another folder than {out}.")
        goal = {"budget": budget, "layers": options.layers}
        smaller = analysis.compact(trained.model, images.x_train, images.y_train, **goal)
        before = training.evaluate(trained.model, images)
        after = training.evaluate(smaller.model, images)
        about = {**trained.settings, "class_names": list(trained.class_names)}
        models.save(out / "best.keras", smaller.model, **about)
        write_rows(out / "compact.csv", smaller.curve)
    first, last = smaller.curve[0], smaller.curve[-1]
    parameters = f"{last['parameters']:,} of {first['parameters']:,} parameters"
    print(f"{last['layers']} of {first['layers']} gated layers, {parameters}")
    if last["layers"] == first["layers"]:
        print("Nothing was left out: closing any layer costs more than --budget.")
    print(
        f"test accuracy {100 * after.accuracy:.2f} %  test loss {after.loss:.4f}  (before: "
        f"{100 * before.accuracy:.2f} %, {len(images.x_test)} images)"
    )
    shared.print_saved(out / "best.keras")


def export(options):
    trained = shared.load_network(options)
    images = None
    if not options.no_verify or options.quantize == "int8":  # LiteRT's is calibrated on images
        images = shared.load_images(trained, options, test_only=options.quantize != "int8")
    exported = shared.library("export").export(
        trained.model,
        options.out,
        images,
        format=options.format,
        quantize=options.quantize,
        class_names=options.class_names or trained.class_names,
        verify=not options.no_verify,
        overwrite=options.overwrite,
    )
    print(exported)
