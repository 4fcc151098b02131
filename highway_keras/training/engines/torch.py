"""PyTorch: Keras's own steps, one a call."""

from highway_keras.training.batches import array_batches as batches

__all__ = ["batches", "steps_per_execution", "take_over"]


def steps_per_execution(steps, planned):
    """Return how many steps a call of the train function takes: Keras has one there."""
    return 1


def take_over(model, x, y, plan, replicas):
    """Leave the model's train function as it is."""
