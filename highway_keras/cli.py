"""The command `highway-keras`: arguments in, calls of the library, a table or a line out.

Keras takes seconds to import, so each command imports what it needs when it runs.
"""

import argparse
import ast
import contextlib
import os
import shlex
import sys
import warnings

USER_ERRORS = (ValueError, TypeError, OSError, ImportError)
FAILED, MISUSED, INTERRUPTED = 1, 2, 130


def main(arguments=None):
    """Runs the command; returns its exit code: 0, 1 failed, 2 misused, 130 interrupted."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except KeyboardInterrupt:
        return _end(INTERRUPTED, _how_to_resume(options, arguments))
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except USER_ERRORS as error:
        return _end(MISUSED, str(error) or type(error).__name__)
    except RuntimeError as error:
        return _end(FAILED, str(error))


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the arguments in one line, without the usage in front of it."""

    def error(self, message):
        self.exit(MISUSED, f"{self.prog}: {message}. See {self.prog} --help.\n")


def _end(code, message):
    print(f"highway-keras: {' '.join(message.split())}", file=sys.stderr)
    return code


def _how_to_resume(options, arguments):
    if not hasattr(options, "resume"):
        return "Interrupted."
    again = shlex.join(["highway-keras", *arguments, *([] if options.resume else ["--resume"])])
    return f"Interrupted. Nothing finished is lost; continue with: {again}"


def _import_backend():
    """Imports Keras without the lines that TensorFlow's libraries print while they load."""
    warnings.simplefilter("ignore")  # meant for who writes Python
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _silent_libraries():
        import highway_keras

        highway_keras._register_with_keras()  # a saved network loads what is registered


@contextlib.contextmanager
def _silent_libraries():
    """Drops what native libraries write to the descriptor of stderr."""
    stderr = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


def _parser():
    parser = _Parser(
        prog="highway-keras",
        description="Highway networks in Keras: train, evaluate and use the networks of "
        '"Training Very Deep Networks" (Srivastava et al., 2015).',
        epilog="First steps without a network: highway-keras fit thin-highway-10 --dataset digits",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (
        _add_list,
        _add_fit,
        _add_evaluate,
        _add_predict,
        _add_analyze,
        _add_export,
        _add_benchmark,
        _add_search,
        _add_reproduce,
    ):
        add(commands)
    return parser


def _command(commands, name, run, summary):
    command = commands.add_parser(name, help=summary, description=summary)
    command.set_defaults(run=run)
    return command


def _add_data(command, default):
    command.add_argument("--dataset", help=f"{_DATASETS} (default: {default})")
    command.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")


_DATASETS = "mnist, fashion_mnist, cifar10, cifar100, digits (embedded), or an .npz file"


def _add_list(commands):
    _command(commands, "list", _list, "Show the networks of the zoo.")


def _list(options):
    from highway_keras import models, results

    measured = results.accuracies()
    rows = [("name", "dataset", "layers", "parameters", "paper %", "ours %")]
    for card in map(models.get, models.list_models()):
        size = f"{card.parameters:,}"
        ours = measured.get(card.name, "")
        rows.append((card.name, card.dataset, str(card.layers), size, card.paper, ours))
    _print_table(rows, right=(2, 3))


def _print_table(rows, right=()):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        line = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(cells)]
        print("  ".join(line).rstrip())


def _add_fit(commands):
    command = _command(commands, "fit", _fit, "Train a network and save it.")
    command.add_argument("model", metavar="MODEL", help="a name that `highway-keras list` shows")
    _add_data(command, "the network's own")
    command.add_argument("--recipe", help="thin, digits, mnist, cifar or quick (default: its own)")
    command.add_argument("--epochs", type=int)
    command.add_argument("--batch-size", type=int)
    command.add_argument("--learning-rate", type=float)
    command.add_argument(
        "--set",
        nargs="+",
        type=_pair,
        default=[],
        metavar="KEY=VALUE",
        help="other values of the recipe, such as momentum=0.95 l2=0.0001",
    )
    command.add_argument(
        "--model-set",
        nargs="+",
        type=_pair,
        default=[],
        metavar="KEY=VALUE",
        help="arguments of the network's factory, such as activation=tanh transform_bias=-4.0",
    )
    command.add_argument("--limit", type=int, help="use so many training images only")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--runs", type=int, default=1, help="train so often, each its own seed")
    command.add_argument("--out", help="folder of the run (default: runs/MODEL-DATASET)")
    command.add_argument("--resume", action="store_true", help="continue a run that was stopped")


def _pair(text):
    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, received {text!r}")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value


def _fit(options):
    _import_backend()
    from highway_keras import training

    recipe = training.choose_recipe(options.recipe, options.model, options.dataset)
    named = ("epochs", "batch_size", "learning_rate")
    overrides = {key: getattr(options, key) for key in named if getattr(options, key) is not None}
    runs = training.fit_runs(
        options.model,
        options.runs,
        dataset=options.dataset,
        recipe=recipe.override(**{**dict(options.set), **overrides}),
        out=options.out,
        resume=options.resume,
        seed=options.seed,
        data_dir=options.data_dir,
        limit=options.limit,
        model_options=dict(options.model_set),
    )
    for result in runs:
        print(f"test accuracy {100 * result.test_accuracy:.2f} %  (epoch {result.best_epoch})")
        print(f"saved {result.folder.best}")
    if len(runs) > 1:
        accuracies = training.summary([result.test_accuracy for result in runs])
        print(f"{len(runs)} runs, best (mean ± std): {accuracies} %")


def _add_evaluate(commands):
    command = _command(commands, "evaluate", _evaluate, "Measure a saved network on test images.")
    command.add_argument("file", metavar="FILE", help="a .keras file that `fit` saved")
    _add_data(command, "that of its training")


def _evaluate(options):
    _import_backend()
    from highway_keras import data, training

    saved = training.SavedNetwork(options.file)
    images = data.load(options.dataset or saved.dataset, data_dir=options.data_dir)
    loss, accuracy = saved.evaluate(images)
    print(
        f"test accuracy {100 * accuracy:.2f} %  test loss {loss:.4f}  ({len(images.x_test)} images)"
    )


def _add_predict(commands):
    command = _command(commands, "predict", _predict, "Classify pictures with a saved network.")
    command.add_argument("file", metavar="FILE", help="a .keras file that `fit` saved")
    command.add_argument("images", metavar="IMAGE", nargs="+", help="PNG or JPEG files")


def _predict(options):
    _import_backend()
    from highway_keras import training

    saved = training.SavedNetwork(options.file)
    rows = [("image", "class", "probability")]
    for path, label, probability in saved.classify(options.images):
        rows.append((path, label, f"{probability:.4f}"))
    _print_table(rows, right=(2,))


def _add_analyze(commands):
    command = _command(commands, "analyze", _analyze, "Show what the layers of a saved network do.")
    command.add_argument("file", metavar="FILE", help="a .keras file that `fit` saved")
    _add_data(command, "that of its training")
    command.add_argument("--limit", type=int, help="use so many training images only")
    command.add_argument("--out", help="folder of the page (default: analysis, beside FILE)")


def _analyze(options):
    _import_backend()
    from highway_keras import analysis, data, training

    saved = training.SavedNetwork(options.file)
    images = data.load(
        options.dataset or saved.dataset,
        data_dir=options.data_dir,
        validation=0,
        limit=options.limit,
    )
    found = analysis.analyze(
        saved.model,
        images.x_train,
        images.y_train,
        out=options.out or saved.path.parent / "analysis",
        class_names=images.class_names,
        title=f"{saved.model.name} on {images.name}",
    )
    print(found.needed)
    print(f"saved {found.page}")


def _add_export(commands):
    command = _command(
        commands, "export", _export, "Write a saved network for another runtime, and verify it."
    )
    command.add_argument("file", metavar="FILE", help="a .keras file that `fit` saved")
    command.add_argument(
        "--format", default="saved_model", help="saved_model (default), onnx, litert or openvino"
    )
    command.add_argument("--quantize", help="float16 (litert, openvino) or int8 (litert)")
    command.add_argument("--out", required=True, help="folder of a SavedModel, else a file")
    _add_data(command, "that of its training")


def _export(options):
    _import_backend()
    from highway_keras.export import export

    with _silent_libraries():  # the converters' progress
        done = export(
            options.file,
            options.out,
            options.format,
            quantize=options.quantize,
            dataset=options.dataset,
            data_dir=options.data_dir,
        )
    print(
        f"test accuracy {100 * done.accuracy:.2f} %  (Keras {100 * done.keras_accuracy:.2f} %, "
        f"largest difference {done.difference:.1e}, {done.images} images)"
    )
    print(f"saved {done.path}  ({done.size:,} bytes)")


def _add_benchmark(commands):
    command = _command(commands, "benchmark", _benchmark, "Time the networks beside their peers.")
    command.add_argument("--case", nargs="+", help="cases whose names contain this (default: all)")
    command.add_argument("--peer", nargs="+", help="peers to compare with (default: all installed)")
    command.add_argument("--turns", type=int, default=9, help="turns of each peer (default: 9)")
    command.add_argument("--out", help="also write the table to this CSV file")


def _benchmark(options):
    from highway_keras.benchmarks import run

    rows = []
    for case in run.select(options.case):
        rows += run.measure(case, options.turns, options.peer, say=_say)
        if options.out:
            run.save(rows, options.out)
    run.report(rows)


def _say(line):
    print(line, file=sys.stderr, flush=True)


def _add_search(commands):
    command = _command(
        commands,
        "search",
        _search,
        "Search for hyperparameters of thin networks, as the paper did.",
    )
    _add_searches(command)
    command.add_argument("--trials", type=int, default=100, help="for each (default: 100)")
    command.add_argument("--epochs", type=int, default=10, help="of a trial (default: 10)")
    _add_data(command, "mnist")
    command.add_argument("--limit", type=int, help="use so many training images only")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--out", default="runs/search", help="folder (default: runs/search)")
    command.add_argument("--resume", action="store_true", help="continue searches in that folder")


def _add_searches(command):
    command.add_argument("--depth", type=int, nargs="+", default=[10, 20, 50, 100])
    command.add_argument(
        "--kind", nargs="+", default=["highway", "plain"], help="highway, plain, residual"
    )
    command.add_argument("--population", type=int, help="train so many trials at once")


def _search(options):
    _import_backend()
    from highway_keras import tuning

    folders = tuning.run_searches(
        options.depth,
        options.kind,
        trials=options.trials,
        epochs=options.epochs,
        dataset=options.dataset or "mnist",
        out=options.out,
        population=options.population,
        resume=options.resume,
        limit=options.limit,
        seed=options.seed,
        data_dir=options.data_dir,
    )
    for folder in folders:
        print(f"saved {folder}")


def _add_reproduce(commands):
    command = _command(
        commands, "reproduce", _reproduce, "Repeat an experiment of the paper, and draw its figure."
    )
    command.add_argument("figure", choices=["figure1"])
    command.add_argument(
        "--preset",
        default="laptop",
        choices=["laptop", "paper"],
        help="under 45 minutes on 2 cores, or the full size (default: laptop)",
    )
    command.add_argument("--search", help="only draw, from the searches in this folder")
    _add_searches(command)
    command.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    command.add_argument("--out", default="runs/figure1", help="folder (default: runs/figure1)")
    command.set_defaults(resume=True)  # an interrupted one continues


def _reproduce(options):
    _import_backend()
    from highway_keras import tuning

    searches = options.search or tuning.run_preset(
        options.preset,
        options.depth,
        options.kind,
        out=options.out,
        population=options.population,
        data_dir=options.data_dir,
    )
    rows = [("kind", "depth", "trials", "failed", "best loss", "mean of the top 10")]
    for row in tuning.draw_figure1(searches, options.out):
        counts = [str(row[key]) for key in ("kind", "depth", "trials", "failed")]
        rows.append((*counts, f"{row['best']:.3g}", f"{row['top10_mean']:.3g}"))
    _print_table(rows, right=range(1, 6))
    print(f"saved {options.out}")


if __name__ == "__main__":
    sys.exit(main())
