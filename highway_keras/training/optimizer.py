"""The optimizer that a recipe asks for."""

import keras

from highway_keras.optimizers import CaffeSGD


def from_recipe(recipe, steps):
    """Return the optimizer of a `Recipe`, with `steps` steps an epoch."""
    return CaffeSGD(
        _schedule(recipe, steps),
        momentum=recipe.momentum,
        nesterov=recipe.nesterov,
        l2=recipe.l2,
        classifier_l2=recipe.classifier_l2,
        bias_rate=recipe.bias_rate,
        clip_norm=recipe.clip_norm,
    )


def _schedule(recipe, steps):
    schedules, rate = keras.optimizers.schedules, recipe.learning_rate
    if recipe.schedule == "cosine":
        return schedules.CosineDecay(rate, recipe.epochs * steps)
    if recipe.schedule == "exponential":
        return schedules.ExponentialDecay(rate, steps, recipe.decay, staircase=True)
    # The step that Keras calls a boundary still has the rate before it.
    boundaries = [epoch * steps - 1 for epoch in recipe.decay_epochs]
    values = [rate * recipe.decay**n for n in range(len(boundaries) + 1)]
    return schedules.PiecewiseConstantDecay(boundaries, values)
