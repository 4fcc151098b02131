"""Stock keras-tuner over two Dense layers per block, for `python -m benchmarks.gpu`."""

import sys

from benchmarks.search import search
from highway_keras import data


def main(source, depth, epochs, trials, limit=None):
    images = data.load(source, validation=0.0, limit=limit and int(limit))
    search("stock", images.x_train, images.y_train, int(depth), int(trials), int(epochs))


if __name__ == "__main__":
    main(*sys.argv[1:])
