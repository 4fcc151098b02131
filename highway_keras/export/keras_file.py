"""The network as a Keras file again: without the optimizer's state, and optionally in int8."""

import warnings

import keras

from highway_keras.export.card import write_card_beside


def write_keras(file, path, card):
    # Loading drops the optimizer of the whole, cloning those of the models inside.
    model = keras.models.load_model(file, compile=False)
    copy = keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    if card["quantize"]:
        with warnings.catch_warnings():
            # Keras warns about each layer that it leaves unchanged: pooling, dropout, scaling ...
            warnings.filterwarnings("ignore", ".* does not have a `quantize` method")
            copy.quantize(card["quantize"])
    copy.save(path)
    write_card_beside(path, card)
