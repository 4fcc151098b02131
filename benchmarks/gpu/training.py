"""A training with its test curve, for `python -m benchmarks.gpu`; resumed if OUT has begun."""

import argparse
import ast

from highway_keras import data
from highway_keras.training import TestCurve, fit, get_recipe


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.training", description=__doc__)
    parser.add_argument("model")
    parser.add_argument("recipe")
    parser.add_argument("source", metavar="NPZ")
    parser.add_argument("out", metavar="OUT")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="number of training images (default: all)")
    parser.add_argument("--set", metavar="KEY=VALUE", nargs="*", default=[], help="of the recipe")
    options = parser.parse_args()
    changes = dict(change.split("=", 1) for change in options.set)
    changes = {name: _value(text) for name, text in changes.items()}
    recipe = get_recipe(options.recipe).override(validation=0.0, **changes)
    images = data.load(options.source, validation=0.0, limit=options.limit)
    curve = TestCurve(images, recipe.preprocessing)
    resume = {"seed": options.seed, "out": options.out, "resume": True}
    fit(options.model, images, recipe, callbacks=[curve], verbose=2, **resume)


def _value(text):
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text  # a name, such as that of a dtype policy


if __name__ == "__main__":
    main()
