"""The optimizer that a recipe asks for."""

import keras

from highway_keras.optimizers import CaffeSGD


def from_recipe(recipe, steps):
    """The optimizer of a `Recipe`, with `steps` steps an epoch."""
    schedules = keras.optimizers.schedules
    rate = recipe.learning_rate
    if recipe.schedule == "cosine":
        schedule = schedules.CosineDecay(rate, recipe.epochs * steps)
    elif recipe.schedule == "exponential":
        schedule = schedules.ExponentialDecay(rate, steps, recipe.decay, staircase=True)
    else:
        # The step that Keras calls a boundary still has the rate before it.
        boundaries = [epoch * steps - 1 for epoch in recipe.decay_epochs]
        values = [rate * recipe.decay**n for n in range(len(boundaries) + 1)]
        schedule = schedules.PiecewiseConstantDecay(boundaries, values)
    return CaffeSGD(
        schedule,
        momentum=recipe.momentum,
        nesterov=recipe.nesterov,
        l2=recipe.l2,
        classifier_l2=recipe.classifier_l2,
        bias_rate=recipe.bias_rate,
        clip_norm=recipe.clip_norm,
    )
