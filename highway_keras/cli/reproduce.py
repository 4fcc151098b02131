"""`reproduce`: the experiments of the paper."""

import functools

from highway_keras import models, results
from highway_keras.cli import shared
from highway_keras.cli.search import add_networks, add_rungs
from highway_keras.models.thin import UNITS
from highway_keras.results.provenance import command_line
from highway_keras.training.recipes import variants
from highway_keras.util import checks

SUMMARY = "Repeat an experiment of the paper, or compare with its authors' logs."
SECTION_4 = {
    "figure2": "Gates and block outputs of the best of 100 tanh networks of 50 layers.",
    "figure3": "How gates differ by class, in the network of figure2.",
    "figure4": "The error with one layer's gates closed, in the network of figure2.",
}


def add_experiments(add, commands):
    family = commands.add_parser("reproduce", help=SUMMARY, description=SUMMARY)
    family = family.add_subparsers(title="experiments", metavar="EXPERIMENT", required=True)
    add = functools.partial(add, family=family)
    _add_figure1(add)
    for figure, summary in SECTION_4.items():
        _add_section4(add, figure, summary)
    for table, title in results.TABLES.items():
        _add_table(add, table, title)
    _add_gradients(add)
    _add_starts(add)
    _add_first_losses(add)
    _add_authors_log(add)


def _add_out(parser, default):
    parser.add_argument("--out", metavar="FOLDER", help=f"folder (default: {default})")
    shared.add_data_dir(parser)


# Figure 1


def _add_figure1(add):
    summary = "MNIST: plain and highway networks of 10 to 100 layers, a search for each."
    parser = add("figure1", figure1, summary)
    parser.add_argument(
        "--preset",
        default="laptop",
        help="laptop: under 45 minutes on 2 cores; paper: 400 epochs of all images, in rungs "
        "(default: laptop)",
    )
    parser.add_argument(
        "--search",
        metavar="FOLDER",
        help="draw the searches that `highway-keras search` left in FOLDER; nothing is searched",
    )
    add_networks(parser)
    parser.set_defaults(depths=None, kinds=None)  # all that are in --search
    parser.add_argument("--trials", type=int, help="trials of each search (default: 100)")
    parser.add_argument("--epochs", type=int, help="epochs of a trial (default: the preset's)")
    add_rungs(parser, "the preset's")
    parser.add_argument("--limit", type=int, help="training images (default: the preset's)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    shared.add_population(parser)
    _add_out(parser, "runs/figure1")


def figure1(options):
    paper, out = shared.library("paper"), options.out or "runs/figure1"
    if options.search:
        which = {"depth": options.depths, "kind": options.kinds}
        searches = _chosen(shared.library("tuning").read_searches(options.search), which)
        command = ("highway-keras", "reproduce", "figure1")
        rows = paper.draw_figure1(
            searches, out, command_line(*command, search=options.search, **which)
        )
    else:
        names = ("depths", "kinds", "trials", "epochs", "rungs", "limit", "seed", "population")
        arguments = shared.given(options, *names, "data_dir")
        rows = paper.reproduce_figure1(options.preset, **arguments, out=out)
    lines = [("kind", "depth", "trials", "failed", "best loss", "mean of the top 10")]
    for row in rows:
        counts = [str(row[key]) for key in ("kind", "depth", "trials", "failed")]
        numbers = [row["best"], row["top10_mean"]]
        lines.append((*counts, *("-" if n == "" else f"{n:.3g}" for n in numbers)))
    shared.print_table(lines, right=range(1, 6))
    shared.print_saved(out)


def _chosen(searches, which):
    """Return the searches with one of the values asked for, by attribute; `None` is for all."""
    for name, wanted in which.items():
        present = {getattr(search, name) for search in searches}
        for value in wanted or ():
            checks.one_of(f"--{name}", value, sorted(present))
        searches = [one for one in searches if wanted is None or getattr(one, name) in wanted]
    return searches


# Section 4


def _add_section4(add, figure, summary):
    parser = add(figure, functools.partial(section4, figure), summary)
    dataset_help = "data set of the paper's network (default: mnist)"
    datasets = ["mnist", "cifar100"]
    parser.add_argument("--dataset", default="mnist", choices=datasets, help=dataset_help)
    parser.add_argument("--trials", type=int, help="trials of the search (default: 100)")
    parser.add_argument("--epochs", type=int, help="epochs of a whole trial (default: 400)")
    add_rungs(parser, "10:20 40:5")
    _add_out(parser, "runs/section4-DATASET")


def section4(figure, options):
    """Search, and look into the best network."""
    arguments = shared.given(options, "trials", "epochs", "rungs", "out", "data_dir")
    report = shared.library("paper").reproduce_section4(options.dataset, **arguments)
    shared.print_saved(report.page.with_name(f"{figure}.png"))
    shared.print_saved(report.page)


# Tables 1 to 3


def _add_table(add, table, title):
    cards = [card for card in map(models.get, models.list_models()) if card.table == title]
    names = [card.name for card in cards]
    recipes = list(dict.fromkeys(name for card in cards for name in variants(card)))
    parser = add(table, functools.partial(reproduce_table, table), f"{title}: {', '.join(names)}.")
    parser.add_argument(
        "--recipe",
        default="authors",
        choices=recipes,
        help="the authors' solver, or others with a fraction of its epochs (default: authors)",
    )
    parser.add_argument("--runs", type=int, default=5, help="of each network (default: 5)")
    parser.add_argument(
        "--model", dest="models", nargs="+", choices=names, help="only these networks"
    )
    parser.add_argument("--epochs", type=int, help="of a run (default: the recipe's)")
    shared.add_dtype_policy(parser)
    shared.add_limit(parser)
    parser.add_argument("--seed", type=int, default=0, help="of the first run (default: 0)")
    _add_out(parser, f"runs/{table}")


def reproduce_table(table, options):
    """Train the networks of a table, and print it."""
    paper, out = shared.library("paper"), options.out or f"runs/{table}"
    arguments = shared.given(options, "models", "epochs", "dtype_policy", "limit", "data_dir")
    arguments["seeds"] = range(options.seed, options.seed + options.runs)
    lines = [("model", "recipe", "epochs", "images", "runs", "arithmetic", "ours %", "paper %")]
    try:
        paper.reproduce_table(table, options.recipe, out=out, **arguments)
    finally:  # also the table of the others, where runs have diverged
        for row in results.summarize(paper.read_table(table, out)):
            setting = [str(row[key]) for key in ("epochs", "images", "n", "dtype_policy")]
            claim = models.get(row["model"]).paper
            lines.append((row["model"], row["recipe"], *setting, results.text(row), claim))
        if len(lines) > 1:
            shared.print_table(lines, right=(2, 3, 4))
    shared.print_saved(out)


# Experiments of which each writes rows to one file


def _add_measurement(add, name, summary, function, columns, out):
    """Add a command that prints `columns` of the rows which a function of `paper` returns."""
    parser = add(name, functools.partial(_measure, function, columns, out), summary)
    _add_out(parser, out.format(model="MODEL"))
    return parser


def _measure(function, columns, out, options):
    arguments = shared.given(options, *vars(options).keys() - {"function", "debug"})
    out = arguments["out"] = options.out or out.format(**arguments)
    lines = [columns]
    for row in getattr(shared.library("paper"), function)(**arguments):
        cells = (row[key] for key in columns)
        lines.append([f"{c:.4g}" if isinstance(c, float) else str(c) for c in cells])
    shared.print_table(lines)
    shared.print_saved(out)


def _add_gradients(add):
    summary = "MNIST: the gradient by layer before the first step, for networks of any depth."
    columns = ("kind", "depth", "scale", "activation", "first", "last")
    out = "runs/gradients"
    parser = _add_measurement(add, "gradients", summary, "reproduce_gradients", columns, out)
    add_networks(parser, UNITS)
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds (default: 5)")
    shared.add_limit(parser, 500)


def _add_starts(add):
    summary = "MNIST: deep networks from several zero-mean starts (section 2.2)."
    columns = ("kind", "activation", "start", "scale", "transform_bias", "learning_rate", "loss")
    parser = _add_measurement(add, "starts", summary, "reproduce_starts", columns, "runs/starts")
    kinds = [*UNITS]
    kinds_help = f"kinds of networks (default: {' '.join(kinds[:2])})"
    parser.add_argument(
        "--kind", dest="kinds", choices=kinds, nargs="+", default=kinds[:2], help=kinds_help
    )
    parser.add_argument("--depth", type=int, default=50, help="hidden layers (default: 50)")
    parser.add_argument("--epochs", type=int, default=5, help="epochs of a training (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    shared.add_limit(parser, 5000)


def _add_first_losses(add):
    summary = "The loss before the first step, next to those of the authors' logs."
    columns = ("model", "kernel_initializer", "input_scale", "mean", "std", "authors")
    out = "runs/first-losses"
    parser = _add_measurement(add, "first-losses", summary, "reproduce_first_losses", columns, out)
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds (default: 10)")
    parser.add_argument("--limit", type=int, default=1000, help="held-out images (default: 1000)")


def _add_authors_log(add):
    summary = "The authors' logs: our training next to theirs, epoch by epoch."
    columns = ("seed", "epoch", "authors_accuracy", "ours_accuracy", "authors_loss", "ours_loss")
    out = "runs/authors-log/{model}"
    parser = _add_measurement(add, "authors-log", summary, "compare_with_authors", columns, out)
    parser.add_argument(
        "--model",
        default="mnist-highway-32",
        choices=[*results.authors_logs()],
        help="a network whose log the authors published (default: mnist-highway-32)",
    )
    parser.add_argument("--epochs", type=int, default=5, help="epochs of each run (default: 5)")
    seeds = {"dest": "seeds", "metavar": "SEED", "nargs": "+", "default": [0]}
    parser.add_argument("--seed", type=int, help="one for each run (default: 0)", **seeds)
    shared.add_dtype_policy(parser)
