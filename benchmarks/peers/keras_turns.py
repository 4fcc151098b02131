"""How a Keras model takes turns: inside one `fit`, an epoch a turn; or one `predict` a turn."""

import keras

from benchmarks.inputs import images


class _Turn(keras.callbacks.Callback):
    def __init__(self, turns):
        super().__init__()
        self.turns, self.compiled = turns, False

    def on_epoch_begin(self, epoch, logs=None):
        # The first turn began before the model was built.
        if epoch and not self.turns.wait():
            self.model.stop_training = True
            raise KeyboardInterrupt

    def on_epoch_end(self, epoch, logs=None):
        self.turns.end()


def run(build, case, turns, fit_data=None, **compile_options):
    """Builds, compiles and runs a model.

    Args:
        build: Function that returns the model.
        case: The `Case`.
        turns: The worker's `Turns`.
        fit_data: Arguments of `fit` besides the defaults; `None` for plain arrays.
        **compile_options: Arguments of `compile`.
    """
    x, y = images(case)
    turns.wait()
    model = build()
    if not case.training:
        while True:
            model.predict(x, batch_size=case.batch, verbose=0)
            turns.end()
            if not turns.wait():
                return
    optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    compile_options.update(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.compile(optimizer, **compile_options)
    data = fit_data(x, y) if fit_data else {"x": x, "y": y, "batch_size": case.batch}
    try:
        model.fit(**data, epochs=10**6, verbose=0, callbacks=[_Turn(turns)])
    except KeyboardInterrupt:
        return
