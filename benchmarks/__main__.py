"""`python -m benchmarks`: a training or prediction step next to what others write.

Each case of `cases.py` is measured, printed and written before the next begins.
"""

import argparse
import pathlib
import statistics
import sys
from importlib import metadata

from benchmarks import rows
from benchmarks.cases import CASES
from benchmarks.turns import Worker, take_turns

# Where the peers are: a function each. The two of the machine measure it, not a network.
PEERS = {
    "benchmarks.peers.with_keras": (
        *("ours", "ours_bfloat16", "dense_chain", "dense_chain_xla", "plain"),
        *("two_convolutions", "maxout", "machine", "machine_bfloat16"),
    ),
    "benchmarks.peers.with_torch": ("torch_eager", "torch_compile"),
    "benchmarks.peers.with_jax": ("jax_scan", "products"),
}
MODULES = {peer: module for module, peers in PEERS.items() for peer in peers}
LIBRARIES = ("keras", "tensorflow", "tensorflow-cpu", "jax", "torch")


def main(arguments=None):
    """Measure the cases asked for; exit with 1 if one of them could not be measured."""
    parser = rows.parser("benchmarks", "Time the networks beside their peers.", turns=9)
    models = dict.fromkeys(case.model for case in CASES.values())
    parser.add_argument(
        "--case",
        nargs="+",
        choices=[*models, *CASES],
        metavar="CASE",
        help='networks, or cases such as "highway-b train" (default: all)',
    )
    parser.add_argument(
        "--peer", nargs="+", choices=MODULES, help="peers to compare with (default: all installed)"
    )
    parser.add_argument(
        "--before",
        metavar="FOLDER",
        type=_library,
        help="also compare with the build of this library that `pip install --target` put there",
    )
    options = parser.parse_args(arguments)
    asked, failed = options.case or CASES, []
    for case in CASES.values():
        if case.name in asked or case.model in asked:
            found = measure(case, options.turns, options.peer, options.before)
            if found:
                sizes = {"peer": options.peer, "before": options.before, "turns": options.turns}
                command = {"case": case.name, **sizes}
                rows.record(found, ("case", "peer"), options.out, "benchmarks", **command)
            else:
                failed.append(case.name)
    if failed:
        sys.exit(f"Not measured, since ours does not run: {', '.join(failed)}.")


def measure(case, turns, peers=None, before=None, say=rows.say):
    """Return how the peers of a case compare, a dictionary for each; none if ours does not run.

    Args:
        case: A `Case`.
        turns: Turns of each peer after the first, which compiles; a positive integer.
        peers: Names to restrict the peers to; ours always runs.
        before: Folder of another build of this library, which becomes the peer `before`.
        say: Function called with lines of progress.
    """
    names = [name for name in case.peers if name == "ours" or not peers or name in peers]
    workers = [_worker(name, name, case) for name in names]
    if before:
        workers.insert(1, _worker("before", "ours", case, library=pathlib.Path(before).resolve()))
    ours = workers[0]
    present = take_turns(workers, turns, lambda line: say(f"{case.name}: {line}"))
    if ours not in present:
        return []
    # How many operations a second the machine reaches in one large product, by type.
    rates = {
        worker.name.endswith("bfloat16"): statistics.median(t["rate"] for t in worker.turns[1:])
        for worker in present
        if worker.name.startswith("machine")
    }
    installed = [name for name in LIBRARIES if any(metadata.distributions(name=name))]
    versions = " ".join(f"{name} {metadata.version(name)}" for name in installed)
    found = []
    for worker in present:
        if not worker.name.startswith("machine"):
            milliseconds = [1000 * second / case.steps for second in rows.seconds(worker)]
            ratios = rows.ratios(rows.seconds(ours), rows.seconds(worker))
            cpu = [1000 * turn["cpu"] / case.steps for turn in worker.turns[1:]]
            row = {"case": case.name, "peer": worker.name, **rows.middle("ms_a_step", milliseconds)}
            row |= rows.middle("ours_over_peer", ratios)
            row["cpu_ms_a_step"] = statistics.median(cpu)
            step = row["ms_a_step"] / 1000
            rate = rates.get(worker.name.endswith("bfloat16"))
            row["share_of_machine"] = case.operations / step / rate if rate else ""
            row["first_step_s"] = worker.turns[0]["seconds"] - (case.steps - 1) * step
            row["peak_mb"] = worker.turns[-1]["megabytes"]
            found.append({**row, "n": len(milliseconds), "versions": versions})
    return found


def _worker(name, peer, case, **options):
    return Worker(name, f"{MODULES[peer]}:{peer}", case, backend="tensorflow", **options)


def _library(folder):
    if not pathlib.Path(folder, "highway_keras", "__init__.py").is_file():
        raise argparse.ArgumentTypeError(f"must hold the package highway_keras. Received: {folder}")
    return folder


if __name__ == "__main__":
    main()
