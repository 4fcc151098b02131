"""Our training beside the authors' own logs, epoch by epoch, by their solver.

    python -m benchmarks.authors_log --model mnist-highway-32 --epochs 5

The authors published a log of one run for three networks, with the accuracy on the test images
after every epoch. This trains the same network by the same recipe, measures the same, and prints
both. Nothing is chosen by it: it is the check that network, images and solver are theirs. It goes
on where an earlier call with that `--out` stopped.
"""

import argparse
import csv
import dataclasses
import sys

from highway_keras import results

COLUMNS = ("epoch", "authors_accuracy", "ours_accuracy", "authors_loss", "ours_loss")


def main():
    logs = results.authors_logs()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.authors_log")
    parser.add_argument("--model", choices=logs, default="mnist-highway-32")
    parser.add_argument("--epochs", type=int, default=5, help="of the hundreds (default: 5)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    parser.add_argument("--out", help="folder of the run (default: runs/authors-log/MODEL)")
    options = parser.parse_args()
    options.out = options.out or f"runs/authors-log/{options.model}"
    authors = logs[options.model]
    if not 1 <= options.epochs <= len(authors):
        parser.error(f"--epochs must be 1 to {len(authors)}. Received: {options.epochs}.")
    _print(zip(authors, _train(options), strict=False))


def _train(options):
    """The history of our run, with the test images in the place of held-out ones."""
    import keras

    from highway_keras import data, models, training
    from highway_keras.training.engines.engine import Engine
    from highway_keras.training.folder import RunFolder
    from highway_keras.training.run import Run

    card = models.get(options.model)
    recipe = training.get_recipe(card.recipe).override(epochs=options.epochs)
    images = data.load(card.dataset, data_dir=options.data_dir, validation=0.0)
    images = dataclasses.replace(images, x_val=images.x_test, y_val=images.y_test)
    keras.utils.set_random_seed(options.seed)
    folder = RunFolder(options.out)
    run = Run(card.build(), images, recipe, folder, options.seed, 2, Engine())
    folder.open({"model": card.name, "seed": options.seed}, resume=True)
    return run.train().history


def _print(pairs):
    table = csv.writer(sys.stdout)
    table.writerow(COLUMNS)
    for log, ours in pairs:
        table.writerow(
            (
                log["epoch"],
                log["test_accuracy"],
                f"{ours['val_accuracy']:.4f}",
                log["test_loss"],
                f"{ours['val_loss']:.4f}",
            )
        )


if __name__ == "__main__":
    main()
