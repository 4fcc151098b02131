"""`python -m benchmarks`: a training or prediction step next to what others write.

Each case of `cases.py` is measured, printed and written before the next begins.
"""

import statistics

from benchmarks import measurements
from benchmarks.cases import CASES
from benchmarks.turns import Worker, take_turns


def main(arguments=None):
    """Measure the cases asked for."""
    parser = measurements.parser("benchmarks", "Time the networks beside their peers.", turns=9)
    models = dict.fromkeys(case.model for case in CASES.values())
    text = 'networks, or cases such as "highway-b train" (default: all)'
    parser.add_argument("--case", nargs="+", choices=[*models, *CASES], metavar="CASE", help=text)
    parser.add_argument("--peer", nargs="+", help="peers to compare with (default: all installed)")
    options = parser.parse_args(arguments)
    asked = options.case or CASES
    for case in CASES.values():
        if case.name in asked or case.model in asked:
            rows = measure(case, options.turns, options.peer)
            if rows:
                command = {"case": case.name, "peer": options.peer, "turns": options.turns}
                measurements.record(rows, ("case", "peer"), options.out, "benchmarks", **command)


def measure(case, turns, peers=None):
    """Return how the peers of a case compare, a dictionary for each; none if ours does not run."""
    print(case.name, flush=True)
    workers = []
    for name in case.peers:
        if name == "ours" or name.startswith("machine") or not peers or name in peers:
            framework = name.partition("_")[0]
            module = f"with_{framework if framework in ('jax', 'torch') else 'keras'}"
            workers.append(Worker(name, f"benchmarks.peers.{module}:{name}", case))
    ours = workers[0]
    present = take_turns(workers, turns)
    if ours.absent:
        return []
    # How many operations a second the machine reaches in one large product, by type.
    machines = [worker for worker in present if worker.name.startswith("machine")]
    rates = {m.name.endswith("bfloat16"): statistics.median(m.values("rate")) for m in machines}
    rows = []
    for worker in present:
        if worker in machines:
            continue
        seconds = worker.values("seconds")
        row = {"case": case.name, "peer": worker.name}
        row |= measurements.middle("ms_a_step", [1000 * value / case.steps for value in seconds])
        pairs = zip(ours.values("seconds"), seconds, strict=True)
        row |= measurements.middle("ours_over_peer", [a / b for a, b in pairs])
        row["cpu_ms_a_step"] = 1000 * statistics.median(worker.values("cpu")) / case.steps
        step = row["ms_a_step"] / 1000
        rate = rates.get(worker.name.endswith("bfloat16"))
        row["share_of_machine"] = case.operations / step / rate if rate else ""
        row["first_step_s"] = worker.turns[0]["seconds"] - (case.steps - 1) * step
        row["peak_mb"] = worker.turns[-1]["megabytes"]
        rows.append({**row, "n": turns, "versions": measurements.versions()})
    return rows


if __name__ == "__main__":
    main()
