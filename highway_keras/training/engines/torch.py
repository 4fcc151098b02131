"""PyTorch: Keras's own steps, one per call, and a generator that resuming has to set."""

import keras
import numpy as np
import torch

from highway_keras.training.batches import array_batches as batches

__all__ = ["batches", "callbacks", "steps_per_execution", "take_over"]


def steps_per_execution(steps, planned):
    """Return how many steps one call of the train function takes: Keras allows one."""
    return 1


def take_over(model, x, y, plan, replicas):
    """Leave the model's train function unchanged."""


def callbacks(folder, seed):
    """Return the callbacks that this backend needs besides those of every run."""
    return [GeneratorSeeds(seed)]


class GeneratorSeeds(keras.callbacks.Callback):
    """Set the state of PyTorch's generator from the seed and the epoch alone.

    Keras's dropout draws from it, not from its own state as with other backends.
    """

    def __init__(self, seed):
        super().__init__()
        self.seed, self.epoch = seed, 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        # Not when the epoch begins: the iterator over the batches, which is made after that, but
        # only in the first epoch since the start or resumption, draws a number, too.
        if batch == 0:
            state = np.random.SeedSequence([self.seed, self.epoch]).generate_state(1)
            torch.manual_seed(int(state[0]))
