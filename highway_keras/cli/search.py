"""`search`: the random searches of section 3.1."""

from highway_keras.cli.backend import import_backend
from highway_keras.cli.shared import add_command, add_dataset, add_limit, add_seed


def add_commands(commands):
    summary = "Search for hyperparameters of thin networks, as the paper did."
    command = add_command(commands, "search", _search, summary)
    add_searches(command)
    command.add_argument("--trials", type=int, default=100, help="for each (default: 100)")
    command.add_argument("--epochs", type=int, default=10, help="of a trial (default: 10)")
    add_dataset(command, "mnist")
    add_limit(command)
    add_seed(command)
    command.add_argument("--out", default="runs/search", help="folder (default: runs/search)")
    command.add_argument("--resume", action="store_true", help="continue searches in that folder")


def add_searches(command):
    command.add_argument(
        "--depth", dest="depths", metavar="DEPTH", type=int, nargs="+", default=[10, 20, 50, 100]
    )
    command.add_argument(
        "--kind",
        dest="kinds",
        nargs="+",
        default=["highway", "plain"],
        choices=["highway", "plain", "residual"],
        help="(default: highway plain)",
    )
    command.add_argument(
        "--population", type=int, help="trials to train at once (default: what memory allows)"
    )


def _search(options):
    import_backend()
    from highway_keras import tuning

    folders = tuning.run_searches(
        options.depths,
        options.kinds,
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
