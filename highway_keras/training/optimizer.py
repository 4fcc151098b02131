"""The optimizer that a recipe asks for."""

import keras

from highway_keras.optimizers import CaffeSGD


def from_recipe(recipe, steps):
    """Return the optimizer of a `Recipe`, with `steps` steps per epoch."""
    if recipe.optimizer != "sgd":
        return _adaptive(recipe, steps)
    return CaffeSGD(
        _schedule(recipe, steps),
        momentum=recipe.momentum,
        nesterov=recipe.nesterov,
        l2=recipe.l2,
        classifier_l2=recipe.classifier_l2,
        bias_rate=recipe.bias_rate,
        clip_norm=recipe.clip_norm,
    )


def _adaptive(recipe, steps):
    kind = {"adamw": keras.optimizers.AdamW, "muon": keras.optimizers.Muon}[recipe.optimizer]
    optimizer = kind(
        _schedule(recipe, steps),
        weight_decay=recipe.weight_decay,
        global_clipnorm=recipe.clip_norm,
    )
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    return optimizer


def _schedule(recipe, steps):
    schedules, rate = keras.optimizers.schedules, recipe.learning_rate
    if recipe.schedule == "cosine":
        rising, all_steps = round(recipe.warmup * steps), recipe.epochs * steps
        if not rising:
            return schedules.CosineDecay(rate, all_steps)
        falling = max(1, all_steps - rising)  # Keras wants one, also where all epochs rise
        return schedules.CosineDecay(0.0, falling, 0.0, "warmup", rate, rising)
    if recipe.schedule == "exponential":
        return schedules.ExponentialDecay(rate, steps, recipe.decay, staircase=True)
    if not recipe.decay_epochs:
        return rate
    # The step that Keras calls a boundary still has the previous rate.
    boundaries = [epoch * steps - 1 for epoch in recipe.decay_epochs]
    values = [rate * recipe.decay**n for n in range(len(boundaries) + 1)]
    return schedules.PiecewiseConstantDecay(boundaries, values)
