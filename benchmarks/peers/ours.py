"""This library: the zoo's network, fed as its trainer feeds it."""

from benchmarks.peers import keras_turns
from highway_keras import models

try:
    from highway_keras.training.engines.tensorflow import batches
except ImportError:  # version 0.1, as the peer `before`
    from highway_keras.training.batches import batches


def build(case):
    if case.model.startswith("thin"):
        return models.thin_mlp(case.depth)
    return models.create(case.model)


def run(case, turns):
    def feed(x, y):
        fed = batches(x, y, case.steps, case.batch, seed=0)
        return {"x": fed, "steps_per_epoch": case.steps, "shuffle": False}

    keras_turns.run(lambda: build(case), case, turns, feed, steps_per_execution=min(case.steps, 30))
