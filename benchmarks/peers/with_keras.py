"""Networks in Keras: ours, and what a Keras user writes; and the machine's own rate."""

import functools
import time

import keras


def ours(case):
    """This library: the zoo's network."""
    from highway_keras import models

    def build():
        return models.thin_mlp(case.depth) if case.thin else models.create(case.model)

    return take(build, case)


def ours_bfloat16(case):
    """This library in bfloat16, with weights in float32: `--dtype-policy mixed_bfloat16`."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    return ours(case)


def fit(case):
    """The zoo's network as a Keras user feeds it: `fit` on arrays, one step per execution."""
    from highway_keras import models

    return take(lambda: models.create(case.model), case, arrays=True)


def dense_chain(case, jit_compile=False):
    """What a Keras user writes: two Dense layers per block, no XLA."""
    return take(lambda: two_dense(case.depth), case, jit_compile=jit_compile)


def two_dense(depth, activation="tanh", bias=-4.0, start="glorot_uniform"):
    """Build a thin network of two Dense layers per block, whose gate biases start at `bias`."""
    dense = functools.partial(keras.layers.Dense, 50, kernel_initializer=start)
    inputs = keras.Input((28, 28, 1))
    x = dense(activation=activation)(keras.layers.Flatten()(inputs))
    closed = keras.initializers.Constant(bias)
    for _ in range(depth - 1):
        h = dense(activation=activation)(x)
        t = dense(activation="sigmoid", bias_initializer=closed)(x)
        x = h * t + x * (1.0 - t)
    return keras.Model(inputs, keras.layers.Dense(10, "softmax")(x))


def plain(case):
    """A plain Keras network of equal parameters: 71 units, no gates."""
    from highway_keras import models

    return take(lambda: models.thin_mlp(case.depth, "plain"), case)


def two_convolutions(case):
    """What a Keras user writes: two Conv2D layers per block."""
    from benchmarks.gates import twin
    from highway_keras import models

    return take(lambda: twin(models.create(case.model), by_hand), case)


def by_hand(layer, filters):
    """Return what a user writes for a highway layer: two convolutions and a sum."""
    convolution = functools.partial(keras.layers.Conv2D, filters, 3, padding="same")
    x = keras.Input(layer.input.shape[1:])
    h = convolution(activation="relu")(x)
    t = convolution(activation="sigmoid", bias_initializer=keras.initializers.Constant(-2.0))(x)
    return keras.Model(x, h * t + x * (1.0 - t), name=layer.name)


def machine(case, dtype="float32"):
    """The machine's own rate of multiplication: one large product on all cores, nothing else."""
    side, least = 4096, 0.2  # a turn lasts at least so many seconds
    matrix = keras.random.normal((side, side), stddev=side**-0.5, seed=0)
    z = matrix = keras.ops.cast(matrix, dtype)
    yield
    count = 1
    while True:
        begun = time.perf_counter()
        for _ in range(count):
            z = keras.ops.matmul(z, matrix)
        float(z[0, 0])  # waits for the last of them
        seconds = time.perf_counter() - begun
        if seconds < least:
            count *= 2
        else:
            yield {"rate": 2 * side**3 * count / seconds}


dense_chain_xla = functools.partial(dense_chain, jit_compile=True)
machine_bfloat16 = functools.partial(machine, dtype="bfloat16")  # its sums are in float32


def take(build, case, arrays=False, **compile_options):
    """Build a model and let it take turns: an epoch of `fit` each, or a `predict`.

    `fit` is fed as our trainer feeds it, or plain `arrays`, one step per execution.
    """
    from highway_keras.training.batches import batches

    x, y = case.images()
    yield
    model = build()
    if not case.training:
        while True:
            model.predict(x, batch_size=case.batch, verbose=0)
            yield
    optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    compile_options.update(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    if arrays:
        fed = {"x": x, "y": y, "batch_size": case.batch}
    else:
        compile_options["steps_per_execution"] = min(case.steps, 30)
        fed = {"x": batches((x, y), case.steps, case.batch, seed=0), "shuffle": False}
        fed["steps_per_epoch"] = case.steps
    model.compile(optimizer, **compile_options)
    yield from epochs(model, **fed)


def epochs(model, **fed):
    """Train an epoch a turn, timed from its first step to its last.

    Before that step, `fit` sets itself up and `tf.data` may wait seconds for a thread of the last
    epoch: a lot for the few images of a turn, negligible for a data set.
    """
    clock = _Clock()
    while True:
        model.fit(**fed, verbose=0, callbacks=[clock])
        yield clock.figures


class _Clock(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        if batch == 0:
            self.begun = time.perf_counter(), time.process_time()

    def on_epoch_end(self, epoch, logs=None):
        now = time.perf_counter(), time.process_time()
        seconds, cpu = (end - begun for end, begun in zip(now, self.begun, strict=True))
        self.figures = {"seconds": seconds, "cpu": cpu}
