"""An epoch through our trainer next to plain `model.fit`.

    python -m benchmarks.epoch --model highway-a --images 2000

Both train the same network with its recipe's batch size and augmentation on the same random
images. `fit` is what a Keras user writes: NumPy arrays in.
"""

from benchmarks import measurements
from benchmarks.turns import Worker, take_turns


def main(arguments=None):
    parser = measurements.parser("benchmarks.epoch", __doc__, turns=3)
    parser.add_argument("--model", default="highway-a", help="registered name")
    parser.add_argument("--images", type=int, default=2000, help="images of an epoch")
    parser.add_argument("--dtype", default="float32", help="Keras's policy: mixed_bfloat16, say")
    options = parser.parse_args(arguments)
    asked = {name: getattr(options, name) for name in ("model", "images", "dtype")}
    workers = [
        Worker(peer, f"benchmarks.epoch:{peer}", *asked.values()) for peer in ("fit", "trainer")
    ]
    theirs, ours = take_turns(workers, options.turns)
    sizes, seconds = ours.turns[0], ours.values("seconds")
    row = {"model": options.model, "dtype": options.dtype, "backend": sizes["machine"]}
    row |= {"images": sizes["images"], "batch": sizes["batch"], "n": options.turns}
    speeds = [sizes["images"] / second for second in seconds]
    row |= measurements.middle("images_a_second", speeds)
    ratios = measurements.ratios(theirs.values("seconds"), seconds)
    row |= measurements.middle("fit_over_ours", ratios)
    keys, command = ("model", "dtype", "backend"), {**asked, "turns": options.turns}
    measurements.record([row], keys, options.out, "benchmarks.epoch", **command)


def fit(model, images, dtype):
    """Train as a Keras user does."""
    import keras

    from benchmarks.peers.with_keras import epochs

    network, recipe, x, y, _, batch, _ = _prepare(model, images, dtype)
    optimizer = keras.optimizers.SGD(recipe.learning_rate, recipe.momentum, recipe.nesterov)
    network.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    yield
    yield from epochs(network, x=x, y=y, batch_size=batch)


def trainer(model, images, dtype):
    """Train as `training.fit` does."""
    import keras

    from benchmarks.peers.with_keras import epochs
    from highway_keras.training.batches import batches
    from highway_keras.training.evaluation import compile_classifier
    from highway_keras.training.recipe_optimizer import from_recipe

    network, recipe, x, y, steps, batch, steps_a_call = _prepare(model, images, dtype)
    backend = keras.backend.backend()
    if backend == "torch":  # runs one step a call, and lists no devices
        steps_a_call, device = 1, keras.ops.zeros(()).device
    else:
        device = keras.distribution.list_devices()[0]
    compiled = compile_classifier(network, from_recipe(recipe, steps), steps_a_call)
    figures = {"images": len(x), "batch": batch, "machine": f"{backend} on {device}"}
    yield
    fed = {"x": batches((x, y), steps, batch, seed=0), "steps_per_epoch": steps, "shuffle": False}
    for timing in epochs(compiled, **fed):
        yield {**timing, **figures}


def _prepare(model, images, dtype):
    """Return the network with its augmentation, its recipe, random images, and the sizes."""
    import keras
    import numpy as np

    from highway_keras import data, models, training
    from highway_keras.training.batches import plan_steps

    keras.config.set_dtype_policy(dtype)
    card, rng = models.get(model), np.random.default_rng(0)
    network, recipe = models.create(model), training.get_recipe(card.recipe)
    steps, steps_a_call, batch = plan_steps(images, recipe.batch_size)
    x = rng.standard_normal((steps * batch, *card.input_shape), "float32")
    y = rng.integers(0, card.classes, len(x))
    augment = data.augmenter(recipe.augmentation, network.input_shape[1:], 0)
    network = keras.Sequential([augment, network]) if augment else network
    return network, recipe, x, y, steps, batch, steps_a_call


if __name__ == "__main__":
    main()
