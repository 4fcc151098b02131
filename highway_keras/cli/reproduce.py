"""`reproduce`: the experiments of the paper."""

import functools

from highway_keras import models, results
from highway_keras.cli import shared as cli
from highway_keras.cli.backend import library
from highway_keras.cli.search import DEPTH, KIND, rungs
from highway_keras.results.provenance import command_line
from highway_keras.training.recipes import variants
from highway_keras.util import checks

SECTION_4 = {
    "figure2": "Gates and block outputs of the best of 100 tanh networks of 50 layers.",
    "figure3": "How gates differ by class, in the network of figure2.",
    "figure4": "The error with one layer's gates closed, in the network of figure2.",
}


@cli.command(
    "reproduce figure1",
    "MNIST: plain and highway networks of 10 to 100 layers, a search for each.",
    cli.option(
        "--preset",
        choices=["laptop", "paper"],
        help="laptop: under 45 minutes on 2 cores; paper: 400 epochs of all images, in rungs "
        "(default: laptop)",
    ),
    cli.option(
        "--search",
        dest="searches",
        metavar="FOLDER",
        help="draw the searches that `highway-keras search` left in FOLDER, or an earlier call in "
        "OUT/searches",
    ),
    cli.several("--depth", **DEPTH, help="numbers of hidden layers (default: 10 20 50 100)"),
    cli.several("--kind", **KIND, help="kinds of networks (default: highway plain)"),
    cli.POPULATION,
    cli.option("--trials", type=int, help="for each depth and kind (default: 100)"),
    cli.option("--epochs", type=int, help="of a trial (default: the preset's)"),
    rungs("the preset's"),
    cli.option("--limit", type=int, help="training images (default: the preset's)"),
    cli.option("--seed", type=int, help="of the searches (default: 0)"),
    cli.DATA_DIR,
    cli.out("runs/figure1"),
    continues=True,
)
def figure1(preset, searches, out, data_dir, depths, kinds, **sizes):
    which, sizes = checks.given(depths=depths, kinds=kinds), checks.given(**sizes)
    to_run = checks.given(preset=preset, data_dir=data_dir) | sizes
    if searches is not None and to_run:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in to_run)
        raise ValueError(
            f"Only searches that are still to run take {names}. "
            f"Received: --search {searches}. Leave one of them out."
        )
    paper, preset = library("paper"), preset or "laptop"
    asked = {"preset": None if searches else preset, "search": searches}
    asked |= {"depth": depths, "kind": kinds, **sizes}
    asked.pop("population", None)  # does not change the results
    if "rungs" in asked:
        asked["rungs"] = [f"{epoch}:{count}" for epoch, count in asked["rungs"]]
    command = command_line("highway-keras", "reproduce", "figure1", **asked)
    sizes |= {"out": out, "data_dir": data_dir}
    searches = searches or paper.run_preset(preset, **which, **sizes)
    lines = [("kind", "depth", "trials", "failed", "best loss", "mean of the top 10")]
    for row in paper.draw_figure1(searches, out, command, **which):
        counts = [str(row[key]) for key in ("kind", "depth", "trials", "failed")]
        mean = row["top10_mean"]
        lines.append((*counts, f"{row['best']:.3g}", "-" if mean == "" else f"{mean:.3g}"))
    cli.print_table(lines, right=range(1, 6))
    cli.print_saved(out)


def section4(figure, dataset, **arguments):
    """Search, and look into the best network."""
    paper = library("paper")
    found = paper.reproduce_section4(dataset, **checks.given(**arguments))
    cli.print_saved(found.page.with_name(f"{figure}.png"))
    cli.print_saved(found.page)


for figure, summary in SECTION_4.items():
    cli.command(
        f"reproduce {figure}",
        summary,
        cli.option("--dataset", default="mnist", choices=["mnist", "cifar100"]),
        cli.option("--trials", type=int, default=100, help="of the search"),
        cli.option("--epochs", type=int, default=400, help="of the trials that are never stopped"),
        rungs("10:20 40:5"),
        cli.option("--limit", type=int, help="training images of the search (default: all)"),
        cli.POPULATION,
        cli.DATA_DIR,
        cli.option("--out", help="folder (default: runs/section4-DATASET)"),
        continues=True,
    )(functools.partial(section4, figure))


def table(name, out, **arguments):
    """Train the networks of a table, and print it."""
    paper, failed = library("paper"), None
    try:
        paper.reproduce_table(name, out=out, **arguments)
    except RuntimeError as error:  # runs diverged: the table of the others comes first
        failed = error
    done = paper.read_table(name, out)
    lines = [("model", "recipe", "epochs", "images", "runs", "arithmetic", "ours %", "paper %")]
    for row in results.summarize(done):
        setting = [str(row[key]) for key in ("epochs", "images", "n", "dtype_policy")]
        claimed = models.get(row["model"]).paper
        lines.append((row["model"], row["recipe"], *setting, results.text(row), claimed))
    if done:
        cli.print_table(lines, right=(2, 3, 4))
        cli.print_saved(out)
    if failed:
        raise failed


for name, title in results.TABLES.items():
    cards = [card for card in map(models.get, models.list_models()) if card.table == title]
    cli.command(
        f"reproduce {name}",
        f"{title}: {', '.join(card.name for card in cards)}.",
        cli.option(
            "--recipe",
            default="authors",
            choices=list(dict.fromkeys(v for card in cards for v in variants(card))),
            help="the authors' solver, or others with a fraction of its epochs",
        ),
        cli.option("--runs", type=int, default=5, help="of each network"),
        cli.several(
            "--model",
            dest="models",
            metavar="NAME",
            choices=[card.name for card in cards],
            help="only these networks",
        ),
        cli.option("--epochs", type=int, help="of a run (default: the recipe's)"),
        cli.DTYPE_POLICY,
        cli.limit(),
        cli.SEED,
        cli.DATA_DIR,
        cli.DISTRIBUTE,
        cli.out(f"runs/{name}"),
        continues=True,
    )(functools.partial(table, name))


# For each `paper.reproduce_NAME` that writes one file: a summary, columns to print, and options

MEASUREMENTS = {
    "gradients": (
        "MNIST: the gradient by layer before the first step, for networks of any depth.",
        ("kind", "depth", "scale", "activation", "first", "last"),
        cli.several("--kind", default=["highway", "plain", "residual"], **KIND),
        cli.several("--depth", default=[10, 20, 50, 100], **DEPTH, help="numbers of hidden layers"),
        cli.option("--seeds", type=int, default=5, help="number of seeds, from 0 on"),
        cli.limit(500),
    ),
    "starts": (
        "MNIST: deep networks from several zero-mean starts (section 2.2).",
        ("kind", "activation", "start", "scale", "transform_bias", "learning_rate", "loss"),
        cli.several("--kind", default=["highway", "plain"], **KIND),
        cli.option("--depth", type=int, default=50, help="hidden layers"),
        cli.option("--epochs", type=int, default=5, help="of a training"),
        cli.SEED,
        cli.limit(5000),
    ),
    "first-losses": (
        "The loss before the first step, next to those of the authors' logs.",
        ("model", "kernel_initializer", "input_scale", "mean", "std", "authors"),
        cli.option("--seeds", type=int, default=10, help="number of seeds, from 0 on"),
        cli.option("--limit", type=int, default=1000, help="held-out images"),
    ),
}


def measurement(name, columns, out, **arguments):
    """Measure, and print the columns that say the most."""
    measure = getattr(library("paper"), f"reproduce_{name.replace('-', '_')}")
    rows = measure(out=out, **arguments)
    cli.print_table([columns, *([str(row[key]) for key in columns] for row in rows)])
    cli.print_saved(out)


for name, (summary, columns, *options) in MEASUREMENTS.items():
    shared = (cli.DATA_DIR, cli.out(f"runs/{name}"))
    cli.command(f"reproduce {name}", summary, *options, *shared)(
        functools.partial(measurement, name, columns)
    )


@cli.command(
    "reproduce authors-log",
    "The authors' logs: our training next to theirs, epoch by epoch.",
    cli.option(
        "--model",
        default="mnist-highway-32",
        choices=results.authors_logs(),
        help="a network that they published a log of",
    ),
    cli.option("--epochs", type=int, default=5, help="of a run"),
    cli.several("--seed", dest="seeds", metavar="SEED", type=int, default=[0], help="of each run"),
    cli.DTYPE_POLICY,
    cli.DATA_DIR,
    cli.option("--out", help="folder (default: runs/authors-log/MODEL)"),
    continues=True,
)
def authors_log(model, out, **arguments):
    paper = library("paper")
    out = out or f"runs/authors-log/{model}"
    lines = [("seed", "epoch", "authors %", "ours %", "authors' loss", "our loss")]
    for row in paper.compare_with_authors(model, out=out, **arguments):
        percent = [f"{100 * row[f'{who}_accuracy']:.2f}" for who in ("authors", "ours")]
        losses = [f"{row[f'{who}_loss']:.4f}" for who in ("authors", "ours")]
        lines.append((str(row["seed"]), str(row["epoch"]), *percent, *losses))
    cli.print_table(lines, right=range(6))
    cli.print_saved(out)
