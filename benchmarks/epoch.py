"""An epoch through our trainer next to plain `model.fit`, and next to the floor.

    KERAS_BACKEND=jax python -m benchmarks.epoch --model highway-a --images 2000

Both train the same network with its recipe's batch size and augmentation on the same random
images. `fit` is what a Keras user writes: NumPy arrays in. The floor is the network's matrix
products, three for each in the forward pass (itself and two gradients), at the rate of one large
product. `epoch_runs.py` holds the three.
"""

import argparse
import json
import statistics
import sys

from benchmarks import report
from benchmarks.turns import NO_LIMIT, Worker, take_turns

RUNS = ("fit", "trainer", "product")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.epoch")
    parser.add_argument("--model", default="highway-a", help="registered name")
    parser.add_argument(
        "--images", type=report.positive, default=2000, help="an epoch (default: 2000)"
    )
    parser.add_argument(
        "--turns", type=report.positive, default=3, help="epochs after the first (default: 3)"
    )
    parser.add_argument("--dtype", default="float32", help="Keras's policy: mixed_bfloat16, say")
    report.add_out(parser)
    options = parser.parse_args(arguments)
    sizes = json.dumps({name: getattr(options, name) for name in ("model", "images", "dtype")})
    # An epoch can take hours.
    workers = [Worker(name, "benchmarks.epoch_runs", name, sizes, limit=NO_LIMIT) for name in RUNS]
    present = take_turns(workers, options.turns, report.say)
    if present != workers:
        sys.exit("All three are needed.")
    turns = [worker.turns for worker in workers]
    _print(options, *turns)
    if options.out:
        asked = {name: getattr(options, name) for name in ("model", "images", "turns", "dtype")}
        command = report.command("benchmarks.epoch", **asked)
        report.save(options.out, [_row(options, *turns)], ("model", "dtype", "backend"), command)


def _row(options, fit, trainer, product):
    """Return the figures of the trainer next to the others, without the first turns."""
    described = trainer[0]
    floors = [described["operations"] / turn["rate"] for turn in product[1:]]
    theirs, ours = ([turn["seconds"] for turn in turns[1:]] for turns in (fit, trainer))
    rates = [described["images"] / seconds for seconds in ours]
    return {
        "model": options.model,
        "dtype": options.dtype,
        "backend": described["machine"],
        "images": described["images"],
        "batch": described["batch"],
        "n": options.turns,
        **report.middle("images_a_second", rates),
        **report.middle("fit_over_ours", report.ratios(theirs, ours)),
        **report.middle("ours_over_products", report.ratios(ours, floors)),
    }


def _print(options, fit, trainer, product):
    described = trainer[0]
    rates = [turn["rate"] for turn in product[1:]]
    floor = described["operations"] / statistics.median(rates)
    print(
        f"{options.model}, {described['images']} images, batch {described['batch']}, "
        f"{options.dtype}, {described['machine']}, {report.load()}, {options.turns} turns; "
        "median (low-high)"
    )
    print(f"{'':<10}{'s an epoch':>24}{'images/s':>12}{'times the floor':>18}{'first epoch s':>16}")
    seconds = [[turn["seconds"] for turn in turns] for turns in (fit, trainer)]
    for name, (first, *others) in zip(RUNS, seconds, strict=False):
        middle = statistics.median(others)
        print(
            f"{name:<10}{report.spread(others):>24}{described['images'] / middle:>12,.0f}"
            f"{middle / floor:>18.2f}{first:>16.1f}"
        )
    ratios = report.ratios(seconds[0][1:], seconds[1][1:])
    print(f"fit / trainer: {report.spread(ratios)}")
    teraflops = [rate / 1e12 for rate in rates]
    print(
        f"floor: {floor:.3g} s, {described['operations']:.3g} operations at "
        f"{report.spread(teraflops)} TFLOP/s"
    )


if __name__ == "__main__":
    main()
