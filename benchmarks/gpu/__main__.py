"""A line of the open list, piece by piece, until its time is used up.

    python -m benchmarks.gpu 1 --mnist mnist.npz --out OUT --seconds 540
    python -m benchmarks.gpu 2 --mnist mnist.npz --cifar cifar10.npz --out OUT --seconds 540

A piece is one command or several that run at the same time, each in its own process. After each
piece OUT/gpu.csv has its row, and a second start with the same OUT begins with the missing piece.
The last commands end in time; what they saved stays in OUT and is resumed. `--tiny` runs the same
commands on small sizes. README.md in this folder is the list.
"""

import argparse
import functools
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
    parser.add_argument("--cifar", metavar="NPZ", help="CIFAR-10, from line 2 on")
    parser.add_argument("--cifar100", metavar="NPZ", help="CIFAR-100, for lines 6 and 7")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=540, help="end before (default: 540)")
    parser.add_argument("--tiny", action="store_true", help="rehearse on small sizes")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(options.out.resolve() / "cache"))
    end = started + options.seconds
    for pieces in LINES[options.line](options, end):
        pieces = [piece for piece in pieces if piece[0] not in _seconds_by_piece(options)]
        if pieces:
            _run(options, pieces, end)


def _run(options, pieces, end):
    """Run the commands of pieces at the same time, and write the rows of those that end."""
    began = time.perf_counter()
    processes = []
    for _, command, _ in pieces:
        command = list(map(str, command))
        print(f"{end - began:.0f} s left: {' '.join(command)}", flush=True)
        processes.append(subprocess.Popen([sys.executable, "-m", *command]))
    for (name, command, figures), process in zip(pieces, processes, strict=True):
        try:
            code = process.wait(timeout=max(0, end - time.perf_counter() - 5))
        except subprocess.TimeoutExpired:
            for running in processes:
                running.kill()
            sys.exit(f"The time is used up in {name!r}, which the next start resumes.")
        if code:
            sys.exit(f"{name!r} failed with exit code {code}.")
        _write(options, name, command, figures, time.perf_counter() - began)


def _write(options, name, command, figures, seconds):
    from highway_keras.results import update_rows
    from highway_keras.training.machine import here

    row = {"line": options.line, "piece": name, "n": 1, "seconds": seconds, **figures()}
    row |= {**here(), "command": f"python -m {' '.join(map(str, command))}"}
    update_rows(options.out / "gpu.csv", [row], ("line", "piece"))


def _seconds_by_piece(options):
    """Return the seconds of the pieces that have their row."""
    from highway_keras.results import read_rows

    rows = read_rows(options.out / "gpu.csv")
    return {row["piece"]: float(row["seconds"]) for row in rows if row["line"] == options.line}


# Pieces: a name, a command, and a function that reads figures from the results


def _search(options, kind, depth, epochs):
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

    return name, command, figures


def _training(options, model, recipe, source, seed=0, **changes):
    changes = {"dtype_policy": "mixed_bfloat16", **changes}
    name = " ".join([model, recipe, f"seed={seed}", *_assignments(changes)])
    if options.tiny:
        changes |= {"epochs": min(2, changes.get("epochs", 2)), "batch_size": 32}
    out = options.out / name.replace(" ", "-")
    command = ["benchmarks.gpu.training", model, recipe, source, out, "--seed", seed]
    command += ["--limit", 64] if options.tiny else []
    command += ["--set", *_assignments(changes)]

    def figures():
        results = json.loads((out / "run.json").read_text("utf-8"))["results"]
        return {name: results[name] for name in ("test_accuracy", "test_loss")}

    return name, command, figures


def _assignments(changes):
    return [f"{name}={value}" for name, value in changes.items()]


# Lines: pieces that run at the same time, group by group


def _timed_searches(options, kind, depth):
    """Yield three searches: the first compiles, the others differ in the seconds of two epochs."""
    short = [_search(options, kind, depth, epochs) for epochs in (1, 2, 4)]
    for search in short:
        yield [search]
    seconds = _seconds_by_piece(options)
    before, after = (seconds[name] for name, *_ in short[1:])
    print(f"{kind}, {depth} layers: {(after - before) / 2:.2f} s an epoch", flush=True)


def search_50(options, end):
    """The search at 50 layers beside stock keras-tuner; in what is left, the paper's at 10."""
    depth = 3 if options.tiny else 50
    yield from _timed_searches(options, "highway", depth)
    stock = ["benchmarks.gpu.stock", options.mnist, depth, 2, TRIALS["stock"]]
    stock += [512] if options.tiny else []
    yield [(f"stock {depth} layers 2 epochs", stock, lambda: {"trials": TRIALS["stock"]})]
    yield from _timed_searches(options, "highway", 10)
    yield [_search(options, "highway", 10, 6 if options.tiny else 400)]


def search_plain(options, end):
    """The paper's search of plain networks at 10 layers; in what is left, Highway110 by Muon."""
    yield from _timed_searches(options, "plain", 10)
    yield [_search(options, "plain", 10, 6 if options.tiny else 400)]
    muon = functools.partial(_training, options, "highway110", "muon-cifar", options.cifar)
    short = [muon(epochs=epochs) for epochs in (1, 2)]
    for training in short:
        yield [training]
    seconds = _seconds_by_piece(options)
    before, after = (seconds[name] for name, *_ in short)
    folders = options.out.glob("highway110*")
    epochs = max(int(folder.name.rpartition("=")[2]) for folder in folders)
    if epochs == 2:  # the long training has not begun: as many epochs as fit, with a margin
        fitting = int(0.85 * (end - time.perf_counter()) / (after - before)) - 1
        epochs = max(3, min(100, fitting))
    yield [muon(epochs=epochs)]


def authors_10(options, end):
    """Table 3's network of 10 gated layers by the authors' recipe, all 400 epochs."""
    yield [_training(options, "highway-gap-10", "cifar", options.cifar)]


def mnist_and_a(options, end):
    """Four more seeds of Table 1's network, and Highway A with less dropout, all at once."""
    mnist = functools.partial(_training, options, "mnist-highway-16", "mnist", options.mnist)
    trainings = [mnist(seed=seed, dtype_policy="float32") for seed in range(1, 5)]
    highway_a = functools.partial(_training, options, "highway-a", "cifar", options.cifar)
    yield trainings + [highway_a(dropout=dropout) for dropout in (0.0, 0.25)]


def search_20(options, end):
    """The paper's searches at 20 layers, then 110 layers with gates and with plain shortcuts."""
    for kind in ("highway", "plain"):
        yield [_search(options, kind, 20, 6 if options.tiny else 400)]
    networks = {"highway110": "skip-2025", "resnet110": "skip-2025-resnet"}
    yield [_training(options, model, recipe, options.cifar) for model, recipe in networks.items()]


def muon_seeds(options, end):
    """Two more seeds of three networks by Muon, three trainings at a time."""
    for seed in (1, 2):
        muon = functools.partial(_training, options, recipe="muon-cifar", seed=seed)
        yield [
            muon("highway-b", source=options.cifar),
            muon("highway-gap-10", source=options.cifar),
            muon("highway-gap-100", source=options.cifar100),
        ]


def authors_100(options, end):
    """Table 3's network of 100 classes by the authors' recipe; Highway C and Fitnet B by Muon."""
    yield [_training(options, "highway-gap-100", "cifar", options.cifar100)]
    networks = {"highway-c": "muon-cifar", "fitnet-b": "muon-fitnet-b"}
    yield [_training(options, name, recipe, options.cifar) for name, recipe in networks.items()]


LINES = {
    "1": search_50,
    "2": search_plain,
    "3": authors_10,
    "4": mnist_and_a,
    "5": search_20,
    "6": muon_seeds,
    "7": authors_100,
}


if __name__ == "__main__":
    main()
