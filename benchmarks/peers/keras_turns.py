"""How a Keras model takes turns: inside one `fit`, an epoch per turn; or a `predict` per turn."""

import keras

from benchmarks.inputs import images

ENDLESS = 10**9  # epochs; the end of the turns ends them


def run(build, case, turns, feed=None, **compile_options):
    """Build a model and let it take turns.

    Args:
        build: Function that returns the model.
        case: The `Case`.
        turns: The worker's `Turns`.
        feed: Function from images and labels to the arguments of `fit` that feed it. Default:
            plain arrays.
        **compile_options: Arguments of `compile`.
    """
    x, y = images(case)
    turns.wait()
    model = build()
    if not case.training:
        turns.repeat(lambda: model.predict(x, batch_size=case.batch, verbose=0))
        return
    optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    compile_options.update(loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.compile(optimizer, **compile_options)
    fit(model, turns, **(feed(x, y) if feed else {"x": x, "y": y, "batch_size": case.batch}))


def fit(model, turns, figures=None, **arguments):
    """Call `model.fit` after a first `turns.wait()`, and take turns from within it.

    Args:
        model: A compiled model.
        turns: The worker's `Turns`.
        figures: What to report with every turn.
        **arguments: Arguments of `fit`.
    """
    callback = _EpochTurns(turns, figures or {})
    model.fit(**arguments, epochs=ENDLESS, verbose=0, callbacks=[callback])


class _EpochTurns(keras.callbacks.Callback):
    """One epoch per turn, all but the first timed from its first step on.

    Before that step, `tf.data` may wait seconds for a thread of the last epoch: a lot for the few
    images of a turn, negligible for a data set.
    """

    def __init__(self, turns, figures):
        super().__init__()
        self.turns, self.figures, self.first = turns, figures, True

    def on_train_batch_begin(self, batch, logs=None):
        if batch == 0 and not self.first:
            self.turns.start()

    def on_epoch_end(self, epoch, logs=None):
        self.turns.end(**self.figures)
        self.first = False
        self.model.stop_training = not self.turns.wait()
