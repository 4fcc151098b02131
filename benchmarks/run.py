"""Measure the peers of a case, which take turns, and print how they compare."""

import dataclasses
import importlib
import json
import pathlib
import statistics
from importlib import metadata

from benchmarks import report
from benchmarks.cases import CASES, Case
from benchmarks.turns import Worker, take_turns

COLUMNS = ("case", "peer", "ms_a_step", "low", "high", "ours_over_peer", "ratio_low")
COLUMNS += ("ratio_high", "cpu_ms_a_step", "share_of_machine", "first_step_s", "peak_mb", "n")
# The peers that measure the machine, not a network.
MACHINE = ("machine", "machine_bfloat16")


def select(names=None, peers=None):
    """Return the cases with these names; all cases if none are given.

    Args:
        names: Names of cases, or of their networks.
        peers: Names of peers that some of these cases must have.

    Raises:
        ValueError: If there is no such case or peer.
    """
    cases = list(CASES.values())
    models = [case.model for case in cases]
    _check("case", names, dict.fromkeys([*models, *CASES]))
    cases = [c for c in cases if not names or c.name in names or c.model in names]
    _check("peer", peers, dict.fromkeys(peer for case in cases for peer in case.peers))
    return cases


def _check(name, values, known):
    for value in values or ():
        if value not in known:
            raise ValueError(f"`{name}` must be one of {', '.join(known)}. Received: {value}.")


def measure(case, turns, peers=None, before=None, say=report.say):
    """Return how the peers of a case compare, a dictionary for each with the keys `COLUMNS`.

    Args:
        case: A `Case`.
        turns: Turns of each peer after the first, which compiles; a positive integer.
        peers: Names to restrict the peers to; ours always runs.
        before: Folder of another build of this library, which becomes the peer `before`.
        say: Function called with lines of progress.

    Raises:
        ValueError: If `before` holds no `highway_keras`.
        RuntimeError: If ours does not run: then there is nothing to compare.
    """
    if before and not (pathlib.Path(before) / "highway_keras" / "__init__.py").is_file():
        raise ValueError(
            "`before` must be a folder with the package highway_keras, such as `pip install "
            f"--target` fills. Received: before={before}."
        )
    names = [name for name in case.peers if name == "ours" or not peers or name in peers]
    workers = [_worker(name, name, case) for name in names]
    if before:
        workers.insert(1, _worker("before", "ours", case, library=pathlib.Path(before).resolve()))
    present = take_turns(workers, turns, lambda line: say(f"{case.name}: {line}"))
    if workers[0] not in present:
        raise RuntimeError(f"{case.name}: ours does not run. {workers[0].absent}")
    rates = {
        w.name: statistics.median(t["rate"] for t in w.turns[1:])
        for w in present
        if w.name in MACHINE
    }
    networks = [worker for worker in present if worker.name not in MACHINE]
    return [_row(case, worker, workers[0], rates) for worker in networks]


def work(turns, peer, case):
    """Take the turns of a peer; see `turns.Worker`."""
    module = importlib.import_module(f"benchmarks.peers.{peer}")
    module.run(Case(**json.loads(case)), turns)


def _worker(name, peer, case, **options):
    text = json.dumps(dataclasses.asdict(case))
    environment = {"KERAS_BACKEND": "tensorflow"}
    return Worker(name, "benchmarks.run", peer, text, environment=environment, **options)


def _row(case, peer, ours, rates):
    times = _milliseconds(case, peer)
    ratios = report.ratios(_milliseconds(case, ours), times)
    step = statistics.median(times)
    return {
        "case": case.name,
        "peer": peer.name,
        "ms_a_step": step,
        "low": min(times),
        "high": max(times),
        "ours_over_peer": statistics.median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
        "cpu_ms_a_step": statistics.median(1000 * t["cpu"] / case.steps for t in peer.turns[1:]),
        "share_of_machine": _share(case, step, rates, "bfloat16" in peer.name),
        "first_step_s": peer.turns[0]["seconds"] - (case.steps - 1) * step / 1000,
        "peak_mb": peer.turns[-1]["megabytes"],
        "n": len(times),
        "versions": _versions(),
    }


def _share(case, step, rates, bfloat16):
    """Return the share of the machine's own rate that the products of a step reach."""
    rate = rates.get(MACHINE[bfloat16])
    return case.operations / (step / 1000) / rate if rate else ""


def _milliseconds(case, peer):
    return [1000 * turn["seconds"] / case.steps for turn in peer.turns[1:]]


def _versions():
    names = ("keras", "tensorflow", "tensorflow-cpu", "jax", "torch")
    found = [n for n in names if any(metadata.distributions(name=n))]
    return " ".join(f"{name} {metadata.version(name)}" for name in found)


def print_rows(rows):
    """Print what `measure` returned as a table of ratios."""
    print(
        f"{'case':<34}{'peer':<18}{'ms a step':>10}{'(low-high)':>18}{'ours / peer':>13}"
        f"{'(low-high)':>14}{'CPU ms':>9}{'of machine':>12}{'first step s':>14}{'peak MB':>9}"
    )
    for r in rows:
        print(
            f"{r['case']:<34}{r['peer']:<18}{r['ms_a_step']:>10.2f}"
            f"{r['low']:>10.2f}-{r['high']:<7.2f}{r['ours_over_peer']:>13.2f}"
            f"{r['ratio_low']:>8.2f}-{r['ratio_high']:<5.2f}{r['cpu_ms_a_step']:>9.2f}"
            f"{r['share_of_machine'] or 0:>12.1%}{r['first_step_s']:>14.2f}"
            f"{r['peak_mb']:>9.0f}"
        )
