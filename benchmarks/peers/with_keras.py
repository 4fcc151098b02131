"""Networks in Keras: ours, and what a Keras user writes; and the machine's own rate."""

import time

import keras

ENDLESS = 10**9  # epochs; the end of the turns ends them
STAGES = ((32, 5), (80, 6), (128, 6))  # width and layers, as Highway B


def ours(case, turns):
    """This library: the zoo's network, fed as its trainer feeds it."""
    from highway_keras import models
    from highway_keras.training.engines.tensorflow import batches

    def build():
        return models.thin_mlp(case.depth) if case.thin else models.create(case.model)

    def feed(x, y):
        fed = batches(x, y, case.steps, case.batch, seed=0)
        return {"x": fed, "steps_per_epoch": case.steps, "shuffle": False}

    take(build, case, turns, feed, steps_per_execution=min(case.steps, 30))


def ours_bfloat16(case, turns):
    """This library in bfloat16, with weights in float32: `--dtype-policy mixed_bfloat16`."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    ours(case, turns)


def dense_chain(case, turns, jit_compile=False):
    """What a Keras user writes: two Dense layers per block, `fit` on arrays, no XLA."""

    def build():
        inputs = keras.Input((28, 28, 1))
        x = keras.layers.Dense(50, "tanh")(keras.layers.Flatten()(inputs))
        closed = keras.initializers.Constant(-4.0)
        for _ in range(case.depth - 1):
            h = keras.layers.Dense(50, "tanh")(x)
            t = keras.layers.Dense(50, "sigmoid", bias_initializer=closed)(x)
            x = h * t + x * (1.0 - t)
        return keras.Model(inputs, keras.layers.Dense(10, "softmax")(x))

    take(build, case, turns, jit_compile=jit_compile)


def dense_chain_xla(case, turns):
    """Two Dense layers per block under XLA."""
    dense_chain(case, turns, jit_compile=True)


def plain(case, turns):
    """A plain Keras network of equal parameters: 71 units, no gates."""

    def build():
        hidden = [keras.layers.Dense(71, "tanh") for _ in range(case.depth)]
        top = keras.layers.Dense(10, "softmax")
        return keras.Sequential([keras.Input((28, 28, 1)), keras.layers.Flatten(), *hidden, top])

    take(build, case, turns, jit_compile=False)


def two_convolutions(case, turns):
    """What a Keras user writes: two Conv2D layers per block, `fit` on arrays."""
    take(lambda: convolutional(case.model, two_convolutions_block), case, turns, jit_compile=False)


def maxout(case, turns):
    """A maxout network with the same convolutions."""
    take(lambda: convolutional(case.model, maxout_block), case, turns, jit_compile=False)


def two_convolutions_block(x, width):
    """A highway layer by hand."""
    closed = keras.initializers.Constant(-2.0)
    h = _convolution(x, width, activation="relu")
    t = _convolution(x, width, activation="sigmoid", bias_initializer=closed)
    return h * t + x * (1.0 - t)


def maxout_block(x, width):
    """Two maps per unit, the larger one wins, no gate."""
    from highway_keras.layers import Maxout

    return Maxout(2)(_convolution(x, 2 * width))


def convolutional(model, block):
    """Build `highway-b` or `highway-gap-10` with `block(x, width)` in place of a highway layer."""
    inputs = keras.Input((32, 32, 3))
    x = keras.layers.Dropout(0.2)(inputs)
    for stage, (width, layers) in enumerate(STAGES):
        if stage:
            x = keras.layers.Dropout(0.2)(keras.layers.MaxPooling2D(2)(x))
        x = _convolution(x, width, activation="relu")
        for _ in range(layers - 1):
            x = block(x, width)
    if model == "highway-b":
        x = keras.layers.Flatten()(keras.layers.MaxPooling2D(8)(x))
        x = keras.layers.Dense(500, "relu")(x)
    else:
        x = keras.layers.Conv2D(100, 1, activation="relu")(x)
        x = keras.layers.GlobalAveragePooling2D()(x)
    x = keras.layers.Dropout(0.2)(x)
    return keras.Model(inputs, keras.layers.Dense(10, "softmax")(x))


def _convolution(x, width, **options):
    return keras.layers.Conv2D(width, 3, padding="same", **options)(x)


def machine(case, turns, dtype="float32"):
    """The machine's own rate of multiplication: one large product on all cores, nothing else."""
    side, least = 4096, 0.2  # a turn lasts at least so many seconds
    matrix = keras.random.normal((side, side), stddev=side**-0.5, seed=0)
    matrix = keras.ops.cast(matrix, dtype)
    count, z = 1, matrix
    while turns.wait():
        seconds = 0
        while seconds < least:
            count = count if seconds == 0 else 2 * count
            begun = time.perf_counter()
            for _ in range(count):
                z = keras.ops.matmul(z, matrix)
            float(z[0, 0])  # waits for the last of them
            seconds = time.perf_counter() - begun
        turns.end(rate=2 * side**3 * count / seconds)


def machine_bfloat16(case, turns):
    """The machine's own rate in bfloat16, sums in float32 as the hardware does it."""
    machine(case, turns, "bfloat16")


def take(build, case, turns, feed=None, **compile_options):
    """Build a model and let it take turns: an epoch of one `fit` each, or a `predict`.

    Args:
        build: Function that returns the model.
        case: The `Case`.
        turns: The worker's `Turns`.
        feed: Function from images and labels to the arguments of `fit` that feed it. Default:
            plain arrays.
        **compile_options: Arguments of `compile`.
    """
    x, y = case.images()
    turns.wait()
    model = build()
    if not case.training:
        turns.repeat(lambda: model.predict(x, batch_size=case.batch, verbose=0))
        return
    optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    compile_options.update(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.compile(optimizer, **compile_options)
    fed = feed(x, y) if feed else {"x": x, "y": y, "batch_size": case.batch}
    model.fit(**fed, epochs=ENDLESS, verbose=0, callbacks=[EpochTurns(turns)])


class EpochTurns(keras.callbacks.Callback):
    """One epoch of `fit` per turn, all but the first timed from its first step on.

    Before that step, `tf.data` may wait seconds for a thread of the last epoch: a lot for the few
    images of a turn, negligible for a data set.

    Args:
        turns: The worker's `Turns`, which has waited for the first.
        **figures: What to report with every turn.
    """

    def __init__(self, turns, **figures):
        super().__init__()
        self.turns, self.figures, self.first = turns, figures, True

    def on_train_batch_begin(self, batch, logs=None):
        if batch == 0 and not self.first:
            self.turns.start()

    def on_epoch_end(self, epoch, logs=None):
        self.turns.end(**self.figures)
        self.first = False
        self.model.stop_training = not self.turns.wait()
