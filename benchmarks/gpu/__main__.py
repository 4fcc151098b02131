"""A line of the open list, piece by piece, until its time is used up.

    python -m benchmarks.gpu 1 --mnist mnist.npz --out OUT --seconds 540
    python -m benchmarks.gpu 2 --mnist mnist.npz --cifar cifar10.npz --out OUT --seconds 540

A piece is a command in a process of its own. After each piece OUT/gpu.csv has its row, and a second
start with the same OUT begins with the piece that is missing. The last command ends in time: what
it saved stays in OUT and is resumed. `--tiny` runs the same commands on small sizes.
README.md in this folder is the list.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

TRIALS = {"stock": 2, "ours": 100}


def main(arguments=None):
    started = time.perf_counter()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("line", choices=LINES, help="number in the list")
    parser.add_argument("--mnist", metavar="NPZ", required=True)
    parser.add_argument("--cifar", metavar="NPZ", help="CIFAR-10, for line 2")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=540, help="end before (default: 540)")
    parser.add_argument("--tiny", action="store_true", help="rehearse on small sizes")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # two processes, one GPU
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(options.out.resolve() / "cache"))
    end = started + options.seconds
    for name, command, figures in LINES[options.line](options, end):
        if name not in _done(options):
            _run(options, name, command, figures, end)


def _run(options, name, command, figures, end):
    """Run a command until the end, and write its row if it got there first."""
    began = time.perf_counter()
    print(f"{end - began:.0f} s left: {' '.join(command)}", flush=True)
    try:
        subprocess.run([sys.executable, "-m", *command], check=True, timeout=end - began - 5)
    except subprocess.TimeoutExpired:
        sys.exit(f"The time is used up in {name!r}, which the next start resumes.")
    from benchmarks.measurements import of_command
    from highway_keras.results import update_rows

    where = of_command(f"python -m {' '.join(command)}")
    row = {"line": options.line, "piece": name, "n": 1, "seconds": time.perf_counter() - began}
    update_rows(options.out / "gpu.csv", [{**row, **figures(), **where}], ("line", "piece"))


def _done(options):
    """Return the seconds of the pieces that have their row."""
    from highway_keras.results import read_rows

    rows = read_rows(options.out / "gpu.csv")
    return {row["piece"]: float(row["seconds"]) for row in rows if row["line"] == options.line}


# Pieces


def _search(options, kind, depth, epochs):
    """Return the name of a search, its command, and a function of what it came to."""
    name = f"{kind} {depth} layers {epochs} epochs"
    out = options.out / name.replace(" ", "-")
    command = ["highway_keras", "search", "--depth", depth, "--kind", kind, "--epochs", epochs]
    command += ["--trials", 4 if options.tiny else TRIALS["ours"]]
    command += ["--dataset", options.mnist, "--out", out, "--resume"]
    command += ["--limit", 512] if options.tiny else []

    def figures():
        run = json.loads((out / f"thin-{kind}-{depth}" / "run.json").read_text("utf-8"))
        results = run["results"]
        return {name: results[name] for name in ("trials", "failed", "best")}

    return name, [str(word) for word in command], figures


def _timed_searches(options, kind, depth):
    """Yield three searches: the first compiles, the others differ in the seconds of two epochs."""
    short = [_search(options, kind, depth, epochs) for epochs in (1, 2, 4)]
    yield from short
    seconds = _done(options)
    before, after = (seconds[name] for name, *_ in short[1:])
    print(f"{kind}, {depth} layers: {(after - before) / 2:.2f} s an epoch", flush=True)


def search_50(options, end):
    """The search at 50 layers beside stock keras-tuner; in what is left, the paper's at 10."""
    depth = 3 if options.tiny else 50
    yield from _timed_searches(options, "highway", depth)
    stock = ["benchmarks.gpu.stock", options.mnist, depth, 2, TRIALS["stock"]]
    stock += [512] if options.tiny else []
    yield f"stock {depth} layers 2 epochs", [str(word) for word in stock], lambda: {"trials": 2}
    yield from _timed_searches(options, "highway", 10)
    yield _search(options, "highway", 10, 6 if options.tiny else 400)


def search_plain(options, end):
    """The paper's search of plain networks at 10 layers; in what is left, Highway110 by Muon."""
    yield from _timed_searches(options, "plain", 10)
    yield _search(options, "plain", 10, 6 if options.tiny else 400)
    for epochs in (1, 2):
        yield _muon(options, epochs)
    seconds = _done(options)
    epoch = seconds["highway110 2 epochs"] - seconds["highway110 1 epochs"]
    begun = [int(folder.name.split("-")[1]) for folder in options.out.glob("highway110-*-epochs")]
    fitting = int(0.85 * (end - time.perf_counter()) / epoch) - 1
    epochs = max(3, min(100, fitting)) if max(begun) == 2 else max(begun)
    yield _muon(options, 3 if options.tiny else epochs)


def _muon(options, epochs):
    name = f"highway110 {epochs} epochs"
    out = options.out / name.replace(" ", "-")
    command = ["highway_keras", "fit", "highway110", "--recipe", "muon-cifar", "--epochs", epochs]
    command += ["--dataset", options.cifar, "--dtype-policy", "mixed_bfloat16", "--out", out]
    command += ["--resume", "--set", "validation=0.0"]
    if options.tiny:
        command += ["--limit", 64, "--batch-size", 16, "--model-set", "blocks=2"]

    def figures():
        results = json.loads((out / "run.json").read_text("utf-8"))["results"]
        return {name: results[name] for name in ("test_accuracy", "test_loss")}

    return name, [str(word) for word in command], figures


LINES = {"1": search_50, "2": search_plain}


if __name__ == "__main__":
    main()
