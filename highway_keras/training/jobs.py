"""Several runs at once, each in a process with its share of the threads.

A network that leaves cores idle gains from this. One that keeps them busy does not: two runs of
`mnist-highway-16` on two cores take as long side by side as one after the other (`python -m
benchmarks.jobs`).
"""

import concurrent.futures
import contextlib
import multiprocessing
import os
import threading
import time

from highway_keras import checks
from highway_keras.extras import extra
from highway_keras.io import BusyError
from highway_keras.runs.folder import RunFolder
from highway_keras.training.run import TrainingDiverged
from highway_keras.training.trainer import fit

with extra("train"):
    from tqdm.auto import tqdm

# What a process reads before its backend starts.
THREADS = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
FAILURES = (TrainingDiverged, BusyError)  # of one run, which do not end the others
SECONDS = 1.0  # between two looks at the runs' histories


def train_all(tasks, jobs=1):
    """Train runs, `jobs` of them side by side, and yield (task, outcome) as they end.

    With several jobs, each run has its own process. It does not outlive this one, and a run that
    ended with it resumes from its last epoch.

    Args:
        tasks: Arguments of `fit`, a dictionary for each run, with its own `out`.
        jobs: Number of runs at once.

    Yields:
        A task, and the `Result` of its run or the error that ended it: one of `FAILURES`.

    Raises:
        ValueError: If `jobs` is not a positive integer.
    """
    checks.positive_integer("jobs", jobs)
    if jobs == 1:
        for number, task in enumerate(tasks, start=1):
            if len(tasks) > 1 and task.get("verbose", "auto"):
                run = f"run {number} of {len(tasks)}"
                print(f"{task['model']}, seed {task['seed']}: {run}", flush=True)
            yield task, _outcome(task)
        return
    with _processes(jobs) as pool:
        quiet = [{**task, "verbose": 0} for task in tasks]
        futures = {pool.submit(_outcome, q): t for q, t in zip(quiet, tasks, strict=True)}
        with _shown(tasks):
            for future in concurrent.futures.as_completed(futures):
                yield futures[future], future.result()


def fit_runs(model, runs, out=None, seed=0, jobs=1, **arguments):
    """Train a network `runs` times, with seeds starting at `seed`.

    Args:
        model: Registered name; for a single run, also a `keras.Model`.
        runs: Number of runs, a positive integer.
        out: Folder; several runs are in `OUT/seed-0`, `OUT/seed-1`, ...
        seed: Seed of the first run.
        jobs: Number of runs to train at once, each in its own process.
        **arguments: As for `fit`.

    Returns:
        A list of `Result`, in the order of the seeds.

    Raises:
        ValueError: If `runs`, `jobs` or a seed is out of range.
        TrainingDiverged: After all other runs, if some diverge.
        BusyError: After all other runs, if another process is writing some.
    """
    seeds = checks.seeds(seed, runs)
    checks.positive_integer("jobs", jobs)
    if runs == 1:
        return [fit(model, out=out, seed=seed, **arguments)]
    if not isinstance(model, str):
        raise ValueError(
            "`model` must be a registered name where `runs` is above 1, so that each run starts "
            f"anew: see `models.register`. Received: model={checks.short_repr(model)}, runs={runs}."
        )
    out = checks.path("out", out or f"runs/{model}-{runs}-runs")
    tasks = [{"model": model, "out": out / f"seed-{s}", "seed": s, **arguments} for s in seeds]
    outcomes = {task["seed"]: outcome for task, outcome in train_all(tasks, jobs)}
    failed = {s: outcomes[s] for s in seeds if isinstance(outcomes[s], FAILURES)}
    if failed:
        kind = type(next(iter(failed.values())))
        raise kind("; ".join(f"seed {s}: {error}" for s, error in failed.items()))
    return [outcomes[s] for s in seeds]


def _outcome(task):
    try:
        return fit(**task)
    except FAILURES as error:
        return error


@contextlib.contextmanager
def _processes(jobs):
    share = str(max(1, (os.cpu_count() or 1) // jobs))
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, share))
    pool = concurrent.futures.ProcessPoolExecutor(
        jobs,
        multiprocessing.get_context("spawn"),  # a backend that has started cannot be forked
        initializer=_end_with,
        initargs=(os.getpid(),),
    )
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        raise
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _end_with(parent):
    """End this process when `parent` ends: a run that nobody waits for must not keep writing."""

    def watch():
        while os.getppid() == parent:
            time.sleep(SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _shown(tasks):
    """Show a line for each run: its epochs, read from its history."""
    bars = [
        tqdm(desc=str(task["out"]), unit="epoch", position=position)
        for position, task in enumerate(tasks)
    ]
    done = threading.Event()

    def follow():
        while not done.wait(SECONDS):
            for task, bar in zip(tasks, bars, strict=True):
                _update(bar, task)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        for task, bar in zip(tasks, bars, strict=True):
            _update(bar, task)
            bar.close()


def _update(bar, task):
    folder = RunFolder(task["out"])
    with contextlib.suppress(OSError, ValueError):  # not there yet, or being written
        rows = folder.read_history()
        if rows:
            bar.n, bar.total = len(rows), folder.read_json()["recipe"]["epochs"]
            bar.set_postfix(loss=f"{rows[-1]['loss']:.4f}", accuracy=f"{rows[-1]['accuracy']:.4f}")
