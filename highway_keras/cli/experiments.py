"""`reproduce`: the experiments of the paper."""

from highway_keras import results
from highway_keras.cli import figures
from highway_keras.cli.backend import import_backend
from highway_keras.cli.shared import (
    add_command,
    add_data_dir,
    add_distribute,
    add_dtype_policy,
    add_limit,
    add_seed,
    print_saved,
    print_table,
)


def add_commands(commands):
    summary = "Repeat an experiment of the paper, and draw its figure."
    command = commands.add_parser("reproduce", help=summary, description=summary)
    experiments = command.add_subparsers(title="experiments", metavar="EXPERIMENT", required=True)
    figures.add_figures(experiments)
    for name, title in results.TABLES.items():
        _add_table(experiments, name, title)
    _add_gradients(experiments)
    _add_starts(experiments)
    _add_first_losses(experiments)
    _add_authors_log(experiments)


def _add_gradients(experiments):
    summary = "MNIST: the gradient by layer before the first step, for networks of any depth."
    command = add_command(experiments, "gradients", _gradients, summary)
    _add_measurement(command, "gradients", limit=500)


def _gradients(options):
    import_backend()
    from highway_keras import paper

    rows = paper.reproduce_gradients(
        limit=options.limit, out=options.out, data_dir=options.data_dir
    )
    _print_columns(rows, ("kind", "depth", "scale", "activation", "first", "last"))
    print_saved(options.out)


def _add_starts(experiments):
    summary = "MNIST: deep networks from several zero-mean starts (section 2.2)."
    command = add_command(experiments, "starts", _starts, summary)
    command.add_argument("--depth", type=int, default=50, help="hidden layers (default: 50)")
    command.add_argument("--epochs", type=int, default=5, help="of a training (default: 5)")
    add_seed(command)
    _add_measurement(command, "starts", limit=5000)


def _starts(options):
    import_backend()
    from highway_keras import paper

    rows = paper.reproduce_starts(
        depth=options.depth,
        epochs=options.epochs,
        limit=options.limit,
        seed=options.seed,
        out=options.out,
        data_dir=options.data_dir,
    )
    keys = ("kind", "activation", "start", "scale", "transform_bias", "learning_rate", "loss")
    _print_columns(rows, keys)
    print_saved(options.out)


def _add_first_losses(experiments):
    summary = "The loss before the first step, next to those of the authors' logs."
    command = add_command(experiments, "first-losses", _first_losses, summary)
    command.add_argument("--seeds", type=int, default=10, help="of each, from 0 on (default: 10)")
    command.add_argument("--limit", type=int, default=1000, help="held-out images (default: 1000)")
    add_data_dir(command)
    command.add_argument("--out", default="runs/first-losses", help="folder (default: %(default)s)")


def _first_losses(options):
    import_backend()
    from highway_keras import paper

    rows = paper.reproduce_first_losses(options.seeds, options.limit, options.out, options.data_dir)
    _print_columns(rows, ("model", "kernel_initializer", "input_scale", "mean", "std", "authors"))
    print_saved(options.out)


def _print_columns(rows, keys):
    print_table([keys, *([str(row[key]) for key in keys] for row in rows)])


def _add_measurement(command, name, limit):
    add_limit(command, limit)
    add_data_dir(command)
    command.add_argument("--out", default=f"runs/{name}", help=f"folder (default: runs/{name})")


def _add_table(experiments, name, title):
    from highway_keras import models

    cards = [card for card in map(models.get, models.list_models()) if card.table == title]
    names = [card.name for card in cards]
    command = add_command(experiments, name, _table, f"{title}: {', '.join(names)}.")
    command.add_argument(
        "--recipe",
        default="authors",
        choices=["authors", "modern"],
        help="the authors' solver, or a fraction of its epochs (default: authors)",
    )
    command.add_argument("--runs", type=int, default=5, help="of each network (default: 5)")
    command.add_argument(
        "--model",
        dest="models",
        nargs="+",
        metavar="NAME",
        choices=names,
        help="only these networks",
    )
    command.add_argument("--epochs", type=int, help="of a run (default: the recipe's)")
    add_dtype_policy(command)
    add_limit(command)
    add_seed(command)
    add_data_dir(command)
    add_distribute(command)
    command.add_argument("--out", default=f"runs/{name}", help=f"folder (default: runs/{name})")
    command.set_defaults(resume=True, table=name)  # an interrupted one continues


def _table(options):
    import_backend()
    from highway_keras import paper

    try:
        paper.reproduce_table(
            options.table,
            options.recipe,
            options.runs,
            models=options.models,
            epochs=options.epochs,
            dtype_policy=options.dtype_policy,
            limit=options.limit,
            seed=options.seed,
            out=options.out,
            data_dir=options.data_dir,
            distribute=options.distribute,
        )
    except RuntimeError:
        _print_table(options)  # of the other runs, ahead of the error
        raise
    _print_table(options)


def _print_table(options):
    from highway_keras import models, paper

    done = paper.read_table(options.table, options.out)
    if not done:
        return
    rows = [("model", "recipe", "epochs", "images", "runs", "arithmetic", "ours %", "paper %")]
    for row in results.summarize(done):
        setting = [str(row[key]) for key in ("epochs", "images", "n", "dtype_policy")]
        claimed = models.get(row["model"]).paper
        rows.append((row["model"], row["recipe"], *setting, results.text(row), claimed))
    print_table(rows, right=(2, 3, 4))
    print_saved(options.out)


def _add_authors_log(experiments):
    summary = "The authors' logs: our training next to theirs, epoch by epoch."
    command = add_command(experiments, "authors-log", _authors_log, summary)
    command.add_argument(
        "--model",
        default="mnist-highway-32",
        choices=results.authors_logs(),
        help="a network that they published a log of (default: mnist-highway-32)",
    )
    command.add_argument("--epochs", type=int, default=5, help="of a run (default: 5)")
    command.add_argument(
        "--seed",
        dest="seeds",
        metavar="SEED",
        type=int,
        nargs="+",
        default=[0],
        help="of each run (default: 0)",
    )
    add_data_dir(command)
    command.add_argument("--out", help="folder (default: runs/authors-log/MODEL)")
    command.set_defaults(resume=True)  # an interrupted one continues


def _authors_log(options):
    import_backend()
    from highway_keras import paper

    out = options.out or f"runs/authors-log/{options.model}"
    rows = [("seed", "epoch", "authors %", "ours %", "authors' loss", "our loss")]
    for row in paper.compare_with_authors(
        options.model, options.epochs, options.seeds, out=out, data_dir=options.data_dir
    ):
        percent = [f"{100 * row[f'{who}_accuracy']:.2f}" for who in ("authors", "ours")]
        losses = [f"{row[f'{who}_loss']:.4f}" for who in ("authors", "ours")]
        rows.append((str(row["seed"]), str(row["epoch"]), *percent, *losses))
    print_table(rows, right=range(6))
    print_saved(out)
