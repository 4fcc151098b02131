"""Two runs side by side against the same two one after the other, as a ratio.

    python -m benchmarks.jobs --model mnist-highway-16

Both run the command `fit --runs 2`, as whole processes including startup and data, and they take
turns.
"""

import argparse
import subprocess
import sys
import tempfile
import time

from benchmarks import report

JOBS = (1, 2)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.jobs")
    parser.add_argument("--model", default="mnist-highway-16", help="registered name")
    parser.add_argument("--epochs", type=report.positive, default=2, help="of a run (default: 2)")
    parser.add_argument("--limit", type=report.positive, help="images (default: all)")
    parser.add_argument(
        "--turns", type=report.positive, default=3, help="turns of each (default: 3)"
    )
    report.add_out(parser)
    options = parser.parse_args(arguments)
    seconds = {jobs: [] for jobs in JOBS}
    for index in range(options.turns):
        for jobs in JOBS:
            report.say(f"{options.model}: turn {index + 1} of {options.turns}, --jobs {jobs}")
            seconds[jobs].append(_train(options, jobs))
    ratios = report.ratios(seconds[2], seconds[1])
    for jobs, times in seconds.items():
        print(f"two runs of {options.model}, --jobs {jobs}: {report.spread(times)} s")
    print(f"side by side / one after the other: {report.spread(ratios)}, n={options.turns}")
    if options.out:
        case = {name: getattr(options, name) for name in ("model", "epochs", "limit")}
        command = report.command("benchmarks.jobs", **case, turns=options.turns)
        case["limit"] = options.limit or ""  # as the file has it
        row = {**case, "n": options.turns, **report.middle("jobs_2_over_1", ratios)}
        report.save(options.out, [row], tuple(case), command)


def _train(options, jobs):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "highway_keras", "fit", options.model, "--runs", "2"]
        command += ["--jobs", str(jobs), "--epochs", str(options.epochs), "--out", f"{folder}/run"]
        command += ["--limit", str(options.limit)] if options.limit else []
        begun = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr.strip().splitlines()[-1])
        return time.perf_counter() - begun


if __name__ == "__main__":
    main()
