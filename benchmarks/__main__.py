"""`python -m benchmarks`: a training or prediction step next to what others write.

Each case of `cases.py` is measured, printed and written before the next begins.
"""

import os
from statistics import median

from benchmarks import measurements
from benchmarks.cases import CASES
from benchmarks.turns import take_turns, values


def main(arguments=None):
    """Measure the cases asked for."""
    parser = measurements.parser("benchmarks", "Time the networks beside their peers.", turns=9)
    models = dict.fromkeys(case.model for case in CASES.values())
    text = 'networks, or cases such as "highway-b train" (default: all)'
    parser.add_argument("--case", nargs="+", choices=[*models, *CASES], metavar="CASE", help=text)
    parser.add_argument("--peer", nargs="+", help="peers to compare with (default: all installed)")
    options = parser.parse_args(arguments)
    os.environ["KERAS_BACKEND"] = "tensorflow"  # of the peers in Keras
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
    compared = {}
    for name in case.peers:
        if name == "ours" or name.startswith("machine") or not peers or name in peers:
            framework = name.partition("_")[0]
            module = f"with_{framework if framework in ('jax', 'torch') else 'keras'}"
            compared[name] = f"benchmarks.peers.{module}:{name}", case
    turns_of = take_turns(compared, turns)
    if "ours" not in turns_of:
        return []
    # How many operations a second the machine reaches in one large product, by type.
    machines = [name for name in turns_of if name.startswith("machine")]
    rates = {}  # by whether the product is in bfloat16
    for name in machines:
        rates[name.endswith("bfloat16")] = median(values(turns_of.pop(name), "rate"))
    ours, rows = values(turns_of["ours"], "seconds"), []
    for name, of_peer in turns_of.items():
        seconds = values(of_peer, "seconds")
        row = {"case": case.name, "peer": name}
        row |= measurements.middle("ms_a_step", [1000 * value / case.steps for value in seconds])
        ratios = [a / b for a, b in zip(ours, seconds, strict=True)]
        row |= measurements.middle("ours_over_peer", ratios)
        row["cpu_ms_a_step"] = 1000 * median(values(of_peer, "cpu")) / case.steps
        step = row["ms_a_step"] / 1000
        rate = rates.get(name.endswith("bfloat16"))
        row["share_of_machine"] = case.operations / step / rate if rate else ""
        row["first_step_s"] = of_peer[0]["seconds"] - (case.steps - 1) * step
        row["peak_mb"] = of_peer[-1]["megabytes"]
        rows.append({**row, "n": turns, "versions": measurements.versions()})
    return rows


if __name__ == "__main__":
    main()
