"""Stock keras-tuner over two Dense layers per block, for `python -m benchmarks.gpu`."""

import sys
import tempfile

import keras_tuner
import numpy as np

from benchmarks.search import BATCH_SIZE, two_dense_hypermodel
from highway_keras import data


def main(source, depth, epochs, trials, limit=None):
    images = data.load(source, validation=0.0, limit=limit and int(limit))
    x, y = images.x_train / np.float32(256), images.y_train
    sizes = {"max_trials": int(trials), "seed": 1, "max_consecutive_failed_trials": int(trials) + 1}
    with tempfile.TemporaryDirectory() as folder:
        hypermodel = two_dense_hypermodel(int(depth))
        tuner = keras_tuner.RandomSearch(hypermodel, "loss", directory=folder, **sizes)
        tuner.search(x, y, epochs=int(epochs), batch_size=BATCH_SIZE, verbose=0)


if __name__ == "__main__":
    main(*sys.argv[1:])
