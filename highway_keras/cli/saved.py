"""`evaluate`, `analyze` and `export`: what to do with a trained network."""

import pathlib
import sys

from highway_keras.cli.backend import import_backend, silent_libraries
from highway_keras.cli.shared import (
    add_command,
    add_dataset,
    add_json,
    add_limit,
    add_network,
    network_file,
    print_json,
    print_saved,
)
from highway_keras.messages import printable


def add_commands(commands):
    command = add_command(commands, "evaluate", _evaluate, "Measure a network on test images.")
    add_network(command)
    add_dataset(command, "that of its training")
    add_json(command)

    command = add_command(commands, "analyze", _analyze, "Show what the layers of a network do.")
    add_network(command)
    add_dataset(command, "that of its training")
    add_limit(command)
    command.add_argument(
        "--out",
        help="folder of the page (default: analysis next to the file, or here with --weights)",
    )

    summary = "Write a network for another runtime, and verify it."
    command = add_command(commands, "export", _export, summary)
    add_network(command)
    command.add_argument(
        "--format",
        help="saved_model, keras, onnx, litert or openvino (default: by the suffix of --out)",
    )
    command.add_argument("--quantize", help="float16 (litert, openvino) or int8 (keras, litert)")
    command.add_argument(
        "--out", dest="path", required=True, help="folder of a SavedModel, else a file"
    )
    command.add_argument("--overwrite", action="store_true", help="replace an earlier export")
    command.add_argument(
        "--class-names", metavar="NAME", nargs="+", help="names of the classes, in their order"
    )
    command.add_argument(
        "--no-verify", dest="verify", action="store_false", help="write it without test images"
    )
    add_dataset(command, "that of its training")


def _evaluate(options):
    file = network_file(options)
    import_backend()
    from highway_keras import training

    saved = training.SavedNetwork(file)
    images = saved.load(options.dataset, options.data_dir, validation=0)
    found = saved.evaluate(images)
    loss, accuracy = found
    by_class = dict(zip(images.class_names, found.class_accuracy, strict=True))
    if options.json:
        measured = {"accuracy": accuracy, "loss": loss, "images": len(images.x_test)}
        measured |= {"class_accuracy": by_class, "confusion": found.confusion.tolist()}
        print_json({"network": str(file), "dataset": images.name, **measured})
        return
    print(
        f"test accuracy {100 * accuracy:.2f} %  test loss {loss:.4f}  ({len(images.x_test)} images)"
    )
    lowest = min((share, name) for name, share in by_class.items() if share is not None)
    print(f"lowest of a class {100 * lowest[0]:.2f} %  ({printable(lowest[1])})")
    if options.weights == images.name:
        print(f"its model card says {100 * saved.settings['accuracy']:.2f} %")


def _analyze(options):
    file = network_file(options)
    import_backend()
    from highway_keras import analysis, training

    saved = training.SavedNetwork(file)
    images = saved.load(options.dataset, options.data_dir, validation=0, limit=options.limit)
    beside = pathlib.Path() if options.weights else file.parent
    found = analysis.analyze(
        saved.model,
        images.x_train,
        images.y_train,
        out=options.out or beside / "analysis",
        class_names=images.class_names,
        title=f"{saved.model.name} on {images.name}",
        examples=(images.x_test, images.y_test),
    )
    print(found.needed)
    if found.live is None:
        print(f"highway-keras: no live page. {printable(found.no_live)}", file=sys.stderr)
    else:
        print_saved(found.live)
    print_saved(found.page)


def _export(options):
    file = network_file(options)
    import_backend()
    from highway_keras.export import export

    with silent_libraries():  # the converters' progress
        done = export(
            file,
            options.path,
            options.format,
            quantize=options.quantize,
            dataset=options.dataset,
            data_dir=options.data_dir,
            class_names=options.class_names,
            verify=options.verify,
            overwrite=options.overwrite,
        )
    if options.verify:
        print(
            f"test accuracy {100 * done.accuracy:.2f} %  (Keras {100 * done.keras_accuracy:.2f} %, "
            f"largest difference {done.difference:.1e}, {done.images} images)"
        )
    print(f"saved {printable(done.path)}  ({done.size:,} bytes)")
