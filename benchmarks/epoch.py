"""An epoch through our trainer next to plain `model.fit`, and next to the floor.

    KERAS_BACKEND=jax python -m benchmarks.epoch --model highway-a --images 2000

Both train the same network with its recipe's batch size and augmentation on the same random
images. `fit` is what a Keras user writes: NumPy arrays in. The floor is the network's matrix
products, three for each in the forward pass (itself and two gradients), at the rate of one large
product. Each is a process of its own and all take turns, so that a machine that slows down slows
all of them. A turn is two epochs and the second counts: the first brings back the memory that the
system took from a process that waited. Time runs from an epoch's first step to its end: ahead of it
`tf.data` may wait seconds for a thread of the last epoch's, much for a thousand images and nothing
for a data set.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

SIDE = 4096  # of the large product


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.epoch")
    parser.add_argument("--model", default="highway-a", help="registered name")
    parser.add_argument("--images", type=int, default=2000, help="an epoch (default: 2000)")
    parser.add_argument("--turns", type=int, default=3, help="epochs behind the first (default: 3)")
    parser.add_argument("--dtype", default="float32", help="Keras's policy: mixed_bfloat16, say")
    parser.add_argument("--run", choices=RUNS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        _work(options)
        return
    workers = {name: _start(options, name) for name in RUNS}
    described = {name: json.loads(worker.stdout.readline()) for name, worker in workers.items()}
    turns = {name: [] for name in workers}
    for _ in range(1 + options.turns):  # the first one compiles
        for name, worker in workers.items():
            turns[name].append(_turn(worker))
    for worker in workers.values():
        worker.communicate()
    _report(options, described["trainer"], turns)


def _start(options, run):
    command = [sys.executable, "-m", "benchmarks.epoch", "--run", run]
    for name in ("model", "images", "turns", "dtype"):
        command += [f"--{name}", str(getattr(options, name))]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    # Three processes share a GPU.
    environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    environment.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _turn(worker):
    worker.stdin.write("go\n")
    worker.stdin.flush()
    return json.loads(worker.stdout.readline())


def _report(options, described, turns):
    first = {name: measured[0][0] for name, measured in turns.items()}
    turns = {name: [turn[-1] for turn in measured[1:]] for name, measured in turns.items()}
    rate = statistics.median(turns["product"])
    floor = described["operations"] / rate
    print(
        f"{options.model}, {described['images']} images, batch {described['batch']}, "
        f"{options.dtype}, {described['machine']}, load {os.getloadavg()[0]:.1f}, "
        f"{options.turns} turns; median (low-high)"
    )
    print(f"{'':<10}{'s an epoch':>24}{'images/s':>12}{'times the floor':>18}{'first epoch s':>16}")
    for name in ("fit", "trainer"):
        seconds = statistics.median(turns[name])
        print(
            f"{name:<10}{_spread(turns[name]):>24}{described['images'] / seconds:>12,.0f}"
            f"{seconds / floor:>18.2f}{first[name]:>16.1f}"
        )
    ratios = [a / b for a, b in zip(turns["fit"], turns["trainer"], strict=True)]
    print(f"fit / trainer: {_spread(ratios)}")
    print(
        f"floor: {floor:.3g} s, {described['operations']:.3g} operations at {rate / 1e12:.3g} "
        f"({min(turns['product']) / 1e12:.3g}-{max(turns['product']) / 1e12:.3g}) TFLOP/s"
    )


def _spread(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g}-{max(values):.3g})"


def _work(options):
    """The worker: says what it runs; then a line in starts a turn, a line out has its figure."""
    channel = os.fdopen(os.dup(1), "w")  # libraries print as they like
    os.dup2(2, 1)
    import keras
    import numpy as np

    from highway_keras import models, training
    from highway_keras.training.batches import plan_steps

    keras.config.set_dtype_policy(options.dtype)
    card = models.get(options.model)
    recipe = training.get_recipe(card.recipe)
    steps, at_once, batch = plan_steps(options.images, recipe.batch_size)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((steps * batch, *card.input_shape), "float32")
    y = rng.integers(0, card.classes, len(x))
    network = card.build()
    described = {
        "images": len(x),
        "batch": batch,
        "operations": 3 * len(x) * _operations(network),
        "machine": f"{keras.backend.backend()} on {keras.distribution.list_devices()[0]}",
    }

    def say(content):
        print(json.dumps(content), file=channel, flush=True)

    say(described)
    RUNS[options.run](options, network, recipe, x, y, (steps, at_once, batch), say)


def _operations(network):
    """Multiplications and additions of an image's matrix products on its way forward."""
    from math import prod

    return sum(
        2 * prod(weight.shape) * prod(layer.output.shape[1:-1])
        for layer in network.layers
        for weight in layer.weights
        if weight.name.endswith("kernel")
    )


def _fit(options, network, recipe, x, y, plan, say):
    import keras

    batch = plan[-1]
    model = _augmented(network, recipe)
    optimizer = keras.optimizers.SGD(recipe.learning_rate, recipe.momentum, recipe.nesterov)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, batch, 2 * (1 + options.turns), verbose=0, callbacks=[_take_turns(say)])


def _trainer(options, network, recipe, x, y, plan, say):
    import keras

    from highway_keras.optimizers import from_recipe
    from highway_keras.training.batches import batches, orders
    from highway_keras.training.engines.jax import compiled_epoch
    from highway_keras.training.evaluation import compile_classifier

    steps, at_once, batch = plan
    on_jax = keras.backend.backend() == "jax"
    model = compile_classifier(
        _augmented(network, recipe), from_recipe(recipe, steps), steps if on_jax else at_once
    )
    if on_jax:
        model.train_function = compiled_epoch(model, x, y, orders(len(x), steps, batch, 0))
    model.fit(
        batches(x, y, steps, batch, 0),
        steps_per_epoch=steps,
        shuffle=False,
        epochs=2 * (1 + options.turns),
        verbose=0,
        callbacks=[_take_turns(say)],
    )


def _augmented(network, recipe):
    import keras

    from highway_keras import data

    augment = data.augmenter(recipe.augmentation, network.input_shape[1:], 0)
    return keras.Sequential([augment, network]) if augment else network


def _take_turns(say):
    import keras

    class Turns(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch % 2 == 0:
                sys.stdin.readline()
                self.seconds = []
            self.begun = None

        def on_train_batch_begin(self, batch, logs=None):
            self.begun = self.begun or time.perf_counter()

        def on_epoch_end(self, epoch, logs=None):
            self.seconds.append(time.perf_counter() - self.begun)
            if epoch % 2:
                say(self.seconds)

    return Turns()


def _product(options, network, recipe, x, y, plan, say):
    """Operations a second of products of the policy's compute type."""
    import keras
    from keras import ops

    dtype = keras.config.dtype_policy().compute_dtype
    matrix = ops.cast(keras.random.normal((SIDE, SIDE), stddev=SIDE**-0.5, seed=0), dtype)
    count, z = 1, matrix
    while sys.stdin.readline():
        seconds = 0
        while seconds < 0.2:
            count = count if seconds == 0 else 2 * count
            begun = time.perf_counter()
            for _ in range(count):
                z = ops.matmul(z, matrix)
            ops.convert_to_numpy(z[0, 0])
            seconds = time.perf_counter() - begun
        say([2 * SIDE**3 * count / seconds])


RUNS = {"fit": _fit, "trainer": _trainer, "product": _product}

if __name__ == "__main__":
    main()
