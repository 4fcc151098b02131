"""`reproduce`: the experiments of the paper."""

from highway_keras import results
from highway_keras.cli.backend import import_backend
from highway_keras.cli.search import add_population, add_searches
from highway_keras.cli.shared import (
    add_command,
    add_data_dir,
    add_distribute,
    add_dtype_policy,
    add_jobs,
    add_limit,
    add_seed,
    print_table,
)


def add_commands(commands):
    summary = "Repeat an experiment of the paper, and draw its figure."
    command = commands.add_parser("reproduce", help=summary, description=summary)
    experiments = command.add_subparsers(title="experiments", metavar="EXPERIMENT", required=True)
    _add_figure1(experiments)
    for name, summary in SECTION_4.items():
        _add_section4(experiments, name, summary)
    for name, title in results.TABLES.items():
        _add_table(experiments, name, title)
    _add_gradients(experiments)
    _add_starts(experiments)
    _add_authors_log(experiments)


SECTION_4 = {
    "figure2": "Gates and block outputs of the best of 100 tanh networks of 50 layers.",
    "figure3": "How gates differ by class, in the network of figure2.",
    "figure4": "The error with one layer's gates closed, in the network of figure2.",
}


def _add_figure1(experiments):
    summary = "MNIST: plain and highway networks of 10 to 100 layers, a search for each."
    command = add_command(experiments, "figure1", _figure1, summary)
    command.add_argument(
        "--preset",
        default="laptop",
        choices=["laptop", "paper", "finals"],
        help="under 45 minutes on 2 cores; the full size; or the best trials of --search trained "
        "for 400 epochs (default: laptop)",
    )
    command.add_argument(
        "--search",
        dest="searches",
        metavar="FOLDER",
        help="take the searches that `highway-keras search` or an earlier call left there",
    )
    add_searches(command)
    add_data_dir(command)
    command.add_argument("--out", default="runs/figure1", help="folder (default: runs/figure1)")
    # An interrupted one continues; depths and kinds: the paper's, or those that --search holds.
    command.set_defaults(resume=True, depths=None, kinds=None)


def _figure1(options):
    import_backend()
    from highway_keras import paper

    given = {"depths": options.depths, "kinds": options.kinds}
    given = {name: values for name, values in given.items() if values is not None}
    if options.preset == "finals":
        return _finals(options, paper, given)
    searches = options.searches or paper.run_preset(
        options.preset,
        **given,
        out=options.out,
        population=options.population,
        data_dir=options.data_dir,
    )
    rows = [("kind", "depth", "trials", "failed", "best loss", "mean of the top 10")]
    for row in paper.draw_figure1(searches, options.out, **given):
        counts = [str(row[key]) for key in ("kind", "depth", "trials", "failed")]
        mean = row["top10_mean"]
        rows.append((*counts, f"{row['best']:.3g}", "-" if mean == "" else f"{mean:.3g}"))
    print_table(rows, right=range(1, 6))
    print(f"saved {options.out}")


def _finals(options, paper, given):
    if options.searches is None:
        raise ValueError(
            "--preset finals needs --search FOLDER, the searches whose best it trains."
        )
    last = {}
    where = {"out": options.out, "data_dir": options.data_dir}
    for row in paper.run_finals(options.searches, **where, **given):
        last[row["kind"], row["depth"]] = row
    rows = [("kind", "depth", "trial", "epochs", "training loss")]
    for (kind, depth), row in last.items():
        rows.append((kind, str(depth), row["trial"], str(row["epoch"]), f"{row['loss']:.3g}"))
    print_table(rows, right=(1, 3, 4))
    print(f"saved {options.out}")


def _add_section4(experiments, name, summary):
    command = add_command(experiments, name, _section4, summary)
    command.add_argument(
        "--dataset", default="mnist", choices=["mnist", "cifar100"], help="(default: mnist)"
    )
    command.add_argument("--trials", type=int, default=100, help="of the search (default: 100)")
    command.add_argument("--epochs", type=int, default=100, help="of its best (default: 100)")
    add_population(command)
    add_data_dir(command)
    command.add_argument("--out", help="folder (default: runs/section4-DATASET)")
    command.set_defaults(resume=True, figure=name)  # an interrupted one continues


def _section4(options):
    import_backend()
    from highway_keras import paper

    found = paper.reproduce_section4(
        options.dataset,
        options.trials,
        epochs=options.epochs,
        out=options.out,
        population=options.population,
        data_dir=options.data_dir,
    )
    print(f"saved {found.page.with_name(options.figure)}.png and {found.page}")


def _add_gradients(experiments):
    summary = "MNIST: the gradient by layer before the first step, for networks of any depth."
    command = add_command(experiments, "gradients", _gradients, summary)
    _add_measurement(command, "gradients")
    command.set_defaults(limit=500)


def _gradients(options):
    import_backend()
    from highway_keras import paper

    rows = paper.reproduce_gradients(
        limit=options.limit, out=options.out, data_dir=options.data_dir
    )
    _print_columns(rows, ("kind", "depth", "scale", "activation", "first", "last"))
    print(f"saved {options.out}")


def _add_starts(experiments):
    summary = "MNIST: deep networks from several zero-mean starts (section 2.2)."
    command = add_command(experiments, "starts", _starts, summary)
    command.add_argument("--depth", type=int, default=50, help="hidden layers (default: 50)")
    command.add_argument("--epochs", type=int, default=5, help="of a training (default: 5)")
    add_seed(command)
    _add_measurement(command, "starts")
    command.set_defaults(limit=5000)


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
    print(f"saved {options.out}")


def _print_columns(rows, keys):
    print_table([keys, *([str(row[key]) for key in keys] for row in rows)])


def _add_measurement(command, name):
    add_limit(command)
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
    add_jobs(command)
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
            jobs=options.jobs,
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
    rows = [("model", "recipe", "epochs", "images", "runs", "ours %", "paper %")]
    for row in results.summarize(done):
        counts = [row[key] for key in ("epochs", "images", "n")]
        claimed = models.get(row["model"]).paper
        rows.append((row["model"], row["recipe"], *map(str, counts), results.text(row), claimed))
    print_table(rows, right=(2, 3, 4))
    print(f"saved {options.out}")


def _add_authors_log(experiments):
    summary = "The authors' logs: our training beside theirs, epoch by epoch."
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
    print(f"saved {out}")
