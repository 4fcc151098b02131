"""The optimizer that a recipe asks for."""

import keras

from highway_keras.optimizers import NO_DECAY_PATTERNS, CaffeSGD, ClippedAdamW, ConvMuon
from highway_keras.training.recipes import SGD


def from_recipe(recipe, steps):
    """Return the optimizer of a `Recipe`, with `steps` steps per epoch."""
    rate, decay = _schedule(recipe, steps), recipe.weight_decay
    if recipe.optimizer == "sgd":
        options = {name: getattr(recipe, name) for name in SGD}
        return CaffeSGD(rate, global_clipnorm=recipe.clip_norm, **options)
    options = {"weight_decay": decay, "global_clipnorm": recipe.clip_norm}
    if recipe.optimizer == "muon":
        return ConvMuon(rate, adam_weight_decay=decay, **options)
    optimizer = ClippedAdamW(rate, **options)
    optimizer.exclude_from_weight_decay(var_names=NO_DECAY_PATTERNS)
    return optimizer


def _schedule(recipe, steps):
    # With an integer rate, Keras's schedules compute in integers.
    schedules, rate = keras.optimizers.schedules, float(recipe.learning_rate)
    if recipe.schedule == "cosine":
        rising, all_steps = round(recipe.warmup * steps), recipe.epochs * steps
        if not rising:
            return schedules.CosineDecay(rate, all_steps)
        falling = max(1, all_steps - rising)  # Keras wants one, also where all epochs rise
        return schedules.CosineDecay(0.0, falling, warmup_target=rate, warmup_steps=rising)
    if recipe.schedule == "exponential":
        return schedules.ExponentialDecay(rate, steps, recipe.decay, staircase=True)
    epochs = recipe.decay_epochs
    values = [rate * recipe.decay**n for n in range(len(epochs) + 1)]
    if recipe.first_epoch != 1:
        epochs, values = (1, *epochs), [rate * recipe.first_epoch, *values]
    if not epochs:
        return rate  # which callbacks may change
    # The step that Keras calls a boundary still has the previous rate.
    boundaries = [epoch * steps - 1 for epoch in epochs]
    return schedules.PiecewiseConstantDecay(boundaries, values)
