"""Runs the peers of a case in turn and prints how they compare."""

import csv
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import threading

from benchmarks.cases import CASES

COLUMNS = ("case", "peer", "ms_a_step", "low", "high", "ours_over_peer", "ratio_low")
COLUMNS += ("ratio_high", "first_step_s", "peak_mb", "turns", "machine", "versions")


class Peer:
    """A worker process, seen from here."""

    def __init__(self, name, case, limit):
        self.name, self.case, self.turns, self.absent = name, case, [], None
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", name, case.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
        )
        self.alarm = threading.Timer(limit, self.process.kill)
        self.alarm.start()
        first = self._answer()
        self.first = first.get("seconds")
        self.absent = first.get("absent")

    def turn(self):
        if self.absent:
            return
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        answer = self._answer()
        self.absent = answer.get("absent")
        if not self.absent:
            self.turns.append(1000 * answer["seconds"] / self.case.steps)
            self.peak = answer["megabytes"]

    def close(self):
        self.alarm.cancel()
        self.process.stdin.close()
        self.process.wait()

    def _answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"absent": "stopped or ran out of time"}


def measure(case, turns, peers=None, limit=600, say=print):
    """Times the peers of a case, in turn.

    Args:
        case: A `Case`.
        turns: Turns of each peer behind the first, which compiles.
        peers: Names to restrict the peers to; ours always runs.
        limit: Seconds after which a peer is given up.
        say: Called with a line of progress.

    Returns:
        A dictionary a peer, with the names in `COLUMNS`.
    """
    names = [name for name in case.peers if name == "ours" or not peers or name in peers]
    workers = []
    for name in names:
        say(f"{case.name}: preparing {name}")
        workers.append(Peer(name, case, limit))
    for _ in range(turns):
        for worker in workers:
            worker.turn()
    for worker in workers:
        worker.close()
    for worker in workers:
        if worker.absent:
            say(f"{case.name}: without {worker.name} ({worker.absent})")
    return [_row(worker, workers[0]) for worker in workers if not worker.absent]


def _row(peer, ours):
    ratios = [a / b for a, b in zip(ours.turns, peer.turns, strict=True)]
    step = statistics.median(peer.turns)
    return {
        "case": peer.case.name,
        "peer": peer.name,
        "ms_a_step": step,
        "low": min(peer.turns),
        "high": max(peer.turns),
        "ours_over_peer": statistics.median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
        "first_step_s": peer.first - (peer.case.steps - 1) * step / 1000,
        "peak_mb": peer.peak,
        "turns": len(peer.turns),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": _versions(),
    }


def _versions():
    from importlib import metadata

    names = ("keras", "tensorflow", "tensorflow-cpu", "jax", "torch")
    found = [n for n in names if any(metadata.distributions(name=n))]
    return " ".join(f"{name} {metadata.version(name)}" for name in found)


def report(rows, say=print):
    """Prints the rows as a table of ratios."""
    say(
        f"{'case':<26}{'peer':<18}{'ms a step':>10}{'(low-high)':>18}{'ours / peer':>13}"
        f"{'(low-high)':>14}{'first step s':>14}{'peak MB':>9}"
    )
    for r in rows:
        say(
            f"{r['case']:<26}{r['peer']:<18}{r['ms_a_step']:>10.2f}"
            f"{r['low']:>10.2f}-{r['high']:<7.2f}{r['ours_over_peer']:>13.2f}"
            f"{r['ratio_low']:>8.2f}-{r['ratio_high']:<5.2f}{r['first_step_s']:>14.2f}"
            f"{r['peak_mb']:>9.0f}"
        )


def save(rows, path):
    """Writes the rows as CSV."""
    with pathlib.Path(path).open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def select(names):
    """The cases whose name contains one of `names`; all cases without any."""
    chosen = [c for c in CASES.values() if not names or any(name in c.name for name in names)]
    if not chosen:
        raise ValueError(f"`case` must be part of one of {', '.join(CASES)}. Received: {names}.")
    return chosen
