"""`python -m benchmarks`: a training or prediction step next to what others write.

Each case of `cases.py` is measured, printed and written before the next begins.
"""

import statistics
import sys

from benchmarks import measurements
from benchmarks.cases import CASES
from benchmarks.turns import Worker, take_turns

# The framework of each peer that is not written in Keras
FRAMEWORKS = {"torch_eager": "torch", "torch_compile": "torch", "jax_scan": "jax"}
FRAMEWORKS |= {"products": "jax"}


def main(arguments=None):
    """Measure the cases asked for; exit with 1 if one of them could not be measured."""
    parser = measurements.parser("benchmarks", "Time the networks beside their peers.", turns=9)
    models = dict.fromkeys(case.model for case in CASES.values())
    peers = dict.fromkeys(peer for case in CASES.values() for peer in case.peers)
    peers = [peer for peer in peers if not peer.startswith("machine")]  # always measured
    text = 'networks, or cases such as "highway-b train" (default: all)'
    parser.add_argument("--case", nargs="+", choices=[*models, *CASES], metavar="CASE", help=text)
    text = "peers to compare with (default: all installed)"
    parser.add_argument("--peer", nargs="+", choices=peers, help=text)
    options = parser.parse_args(arguments)
    asked, failed = options.case or CASES, []
    for case in CASES.values():
        if case.name in asked or case.model in asked:
            case_rows = measure(case, options.turns, options.peer)
            if case_rows:
                command = {"case": case.name, "peer": options.peer, "turns": options.turns}
                measurements.record(
                    case_rows, ("case", "peer"), options.out, "benchmarks", **command
                )
            else:
                failed.append(case.name)
    if failed:
        sys.exit(f"Not measured, since ours does not run: {', '.join(failed)}.")


def measure(case, turns, peers=None):
    """Return how the peers of a case compare, a dictionary for each; none if ours does not run."""
    workers = []
    for name in case.peers:
        if name == "ours" or name.startswith("machine") or not peers or name in peers:
            place = f"benchmarks.peers.with_{FRAMEWORKS.get(name, 'keras')}:{name}"
            workers.append(Worker(name, place, case, backend="tensorflow"))
    ours = workers[0]
    present = take_turns(workers, turns, lambda line: measurements.say(f"{case.name}: {line}"))
    if ours not in present:
        return []
    # How many operations a second the machine reaches in one large product, by type.
    machines = [worker for worker in present if worker.name.startswith("machine")]
    rates = {m.name.endswith("bfloat16"): statistics.median(m.values("rate")) for m in machines}
    case_rows, versions = [], measurements.versions()
    for worker in present:
        if worker not in machines:
            milliseconds = [1000 * second / case.steps for second in worker.values("seconds")]
            row = {
                "case": case.name,
                "peer": worker.name,
                **measurements.middle("ms_a_step", milliseconds),
            }
            row |= measurements.middle(
                "ours_over_peer",
                measurements.ratios(ours.values("seconds"), worker.values("seconds")),
            )
            row["cpu_ms_a_step"] = 1000 * statistics.median(worker.values("cpu")) / case.steps
            step = row["ms_a_step"] / 1000
            rate = rates.get(worker.name.endswith("bfloat16"))
            row["share_of_machine"] = case.operations / step / rate if rate else ""
            row["first_step_s"] = worker.turns[0]["seconds"] - (case.steps - 1) * step
            row["peak_mb"] = worker.turns[-1]["megabytes"]
            case_rows.append({**row, "n": turns, "versions": versions})
    return case_rows


if __name__ == "__main__":
    main()
