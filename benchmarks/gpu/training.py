"""A training with its test curve, for `python -m benchmarks.gpu`; resumed if OUT has begun."""

import argparse

from highway_keras import data
from highway_keras.cli.fit import PAIRS
from highway_keras.training import TestCurve, fit, get_recipe


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.training", description=__doc__)
    parser.add_argument("model")
    parser.add_argument("recipe")
    parser.add_argument("source", metavar="NPZ")
    parser.add_argument("out", metavar="OUT")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="number of training images (default: all)")
    parser.add_argument("--set", help="values of the recipe", **PAIRS)
    options = parser.parse_args()
    recipe = get_recipe(options.recipe).override(validation=0.0, **dict(options.set))
    images = data.load(options.source, validation=0.0, limit=options.limit)
    curve = TestCurve(images, recipe.preprocessing)
    resume = {"seed": options.seed, "out": options.out, "resume": True}
    fit(options.model, images, recipe, callbacks=[curve], verbose=2, **resume)


if __name__ == "__main__":
    main()
