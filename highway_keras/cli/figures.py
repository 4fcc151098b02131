"""`reproduce figure1` to `figure4`."""

import shlex

from highway_keras.cli.backend import import_backend
from highway_keras.cli.search import add_population, add_searches
from highway_keras.cli.shared import add_command, add_data_dir, print_saved, print_table
from highway_keras.results import DIVERGED

SECTION_4 = {
    "figure2": "Gates and block outputs of the best of 100 tanh networks of 50 layers.",
    "figure3": "How gates differ by class, in the network of figure2.",
    "figure4": "The error with one layer's gates closed, in the network of figure2.",
}


def add_figures(experiments):
    """Add a command for each figure of the paper."""
    _add_figure1(experiments)
    for name, summary in SECTION_4.items():
        _add_section4(experiments, name, summary)


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
    command.add_argument("--trials", type=int, help="for each depth and kind (default: 100)")
    command.add_argument("--epochs", type=int, help="of a trial or final (default: the preset's)")
    command.add_argument("--limit", type=int, help="training images (default: the preset's)")
    command.add_argument("--seed", type=int, help="of the searches (default: 0)")
    add_data_dir(command)
    command.add_argument("--out", default="runs/figure1", help="folder (default: runs/figure1)")
    # An interrupted one continues; depths and kinds: the defaults, or those that --search holds.
    command.set_defaults(resume=True, depths=None, kinds=None)


def _figure1(options):
    import_backend()
    from highway_keras import paper

    which = _named(options, "depths", "kinds")
    sizes = _named(options, "trials", "epochs", "limit", "seed", "population")
    where = {"out": options.out, "data_dir": options.data_dir}
    finals = options.preset == "finals"
    if finals and options.searches is None:
        raise ValueError(
            "--preset finals needs --search FOLDER, the searches whose best it trains."
        )
    unused = [f"--{name}" for name in sizes if not finals or name not in ("epochs", "limit")]
    if options.searches is not None and unused:
        raise ValueError(
            f"{', '.join(unused)} is for searches that are still to run. Received: --search "
            f"{options.searches}. Leave one of them out."
        )
    if finals:
        ends = {}
        for row in paper.run_finals(options.searches, **where, **which, **sizes):
            ends[row["kind"], row["depth"], row["trial"]] = row
        rows = [("kind", "depth", "trial", "epochs", "training loss")]
        for (kind, depth, trial), row in ends.items():
            loss = row["loss"] if row["loss"] == DIVERGED else f"{float(row['loss']):.3g}"
            rows.append((kind, str(depth), trial, str(row["epoch"]), loss))
        print_table(rows, right=(1, 3, 4))
    else:
        words = ["highway-keras", "reproduce", "figure1", "--preset", options.preset]
        words += ["--search", options.searches] if options.searches else []
        for name, value in {**which, **sizes}.items():
            if name != "population":  # which does not change the results
                value = value if isinstance(value, list) else [value]
                words += [
                    f"--{name.removesuffix('s') if name in which else name}",
                    *map(str, value),
                ]
        searches = options.searches or paper.run_preset(options.preset, **where, **which, **sizes)
        rows = [("kind", "depth", "trials", "failed", "best loss", "mean of the top 10")]
        for row in paper.draw_figure1(searches, options.out, shlex.join(words), **which):
            counts = [str(row[key]) for key in ("kind", "depth", "trials", "failed")]
            mean = row["top10_mean"]
            rows.append((*counts, f"{row['best']:.3g}", "-" if mean == "" else f"{mean:.3g}"))
        print_table(rows, right=range(1, 6))
    print_saved(options.out)


def _named(options, *names):
    """Return those of the options that are named, as arguments of the library."""
    found = {name: getattr(options, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _add_section4(experiments, name, summary):
    command = add_command(experiments, name, _section4, summary)
    command.add_argument(
        "--dataset", default="mnist", choices=["mnist", "cifar100"], help="(default: mnist)"
    )
    command.add_argument("--trials", type=int, default=100, help="of the search (default: 100)")
    command.add_argument("--search-epochs", type=int, default=10, help="of a trial (default: 10)")
    command.add_argument(
        "--limit", type=int, default=10_000, help="training images of the search (default: 10000)"
    )
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
        options.search_epochs,
        options.limit,
        epochs=options.epochs,
        out=options.out,
        population=options.population,
        data_dir=options.data_dir,
    )
    print_saved(found.page.with_name(f"{options.figure}.png"))
    print_saved(found.page)
