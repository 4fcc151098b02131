"""The loss before the first step; the authors' logs have one value for each network.

    python -m highway_keras.paper.first_losses

It depends on the start of the kernels and on the scale of the images, not on the solver, so it
checks both. It is measured on held-out training images.
"""

import argparse
import functools
import pathlib

import keras

from highway_keras import checks, data, models, results
from highway_keras.io import write_rows
from highway_keras.results import provenance
from highway_keras.training.evaluation import EVALUATION_BATCH
from highway_keras.training.recipes import get_recipe

CAFFES_KERNEL = "lecun_uniform"  # the "xavier" of Caffe as it was published
# The scale of images after contrast normalization is not given for CIFAR, so two are tried.
SCALES = {"mnist-highway-32": (1.0,), "highway-gap-10": (1.0, 0.5), "highway-gap-100": (1.0, 0.5)}
HALF = "half"  # the step of their recipe that stands for the scale
COLUMNS = ("model", "kernel_initializer", "input_scale", "images", "n", "seeds", "mean", "std")
COLUMNS += ("authors", *provenance.COLUMNS)


def first_losses(model, kernel_initializer=None, scale=1.0, seeds=10, limit=1000, data_dir=None):
    """Measure the cross-entropy of an untrained network on held-out images, once per seed.

    Args:
        model: Registered name.
        kernel_initializer: Start of the kernels; default: the network's own.
        scale: Factor on the images after the preprocessing of the network's recipe, but for `half`.
        seeds: Number of seeds, from 0 on.
        limit: Number of held-out images, at most a tenth of the training images.
        data_dir: Where TFDS keeps its data.

    Returns:
        A list of losses, in nats.
    """
    x, y = _held_out(model, limit, data_dir)
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    losses = []
    for seed in range(seeds):
        keras.utils.set_random_seed(seed)
        options = {"kernel_initializer": kernel_initializer, "classifier_activation": None}
        network = models.create(model, **options)
        network.compile(loss=cross_entropy)
        losses.append(network.evaluate(scale * x, y, EVALUATION_BATCH, verbose=0))
    return losses


@functools.lru_cache(maxsize=1)
def _held_out(model, limit, data_dir):
    card = models.get(model)
    images = data.load(card.dataset, data_dir=data_dir, validation=0.1)
    steps = [step for step in get_recipe(card.recipe).preprocessing if step != HALF]
    preprocess = data.preprocessor(steps, images.x_train)
    return preprocess.predict(images.x_val[:limit], verbose=0), images.y_val[:limit]


def main():
    """Measure all networks that have a log, and write a row for each start and scale."""
    parser = argparse.ArgumentParser(prog="python -m highway_keras.paper.first_losses")
    parser.add_argument("--seeds", type=int, default=10, help="from 0 on (default: 10)")
    parser.add_argument("--limit", type=int, default=1000, help="held-out images (default: 1000)")
    parser.add_argument("--data-dir", help="where tensorflow-datasets keeps its data")
    parser.add_argument("--out", default="runs/first-losses.csv", help="default: %(default)s")
    options = parser.parse_args()
    try:
        checks.positive_integers(seeds=options.seeds, limit=options.limit)
    except ValueError as error:
        parser.error(str(error))
    before = {row["model"]: row for row in results.read("authors-logs") if row["epoch"] == "0"}
    sizes = f"--seeds {options.seeds} --limit {options.limit}"
    command = f"python -m highway_keras.paper.first_losses {sizes}"
    made = provenance.of_command(command)
    out, rows = pathlib.Path(options.out), []
    out.parent.mkdir(parents=True, exist_ok=True)
    cases = [(m, k, s) for m in SCALES for s in SCALES[m] for k in (None, CAFFES_KERNEL)]
    for model, kernel, scale in cases:
        losses = first_losses(
            model, kernel, scale, options.seeds, options.limit, data_dir=options.data_dir
        )
        case = (model, kernel or "authors", scale, options.limit)
        found = results.spread(losses)
        values = (*case, found["n"], f"0-{found['n'] - 1}")
        values += (f"{found['mean']:.3f}", f"{found['std']:.3f}")
        values += (before[model]["test_loss"], *made.values())
        rows.append(dict(zip(COLUMNS, values, strict=True)))
        print(*values[:9], flush=True)
        write_rows(out, rows, COLUMNS)


if __name__ == "__main__":
    main()
