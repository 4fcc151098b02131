"""Compact networks compute the same as with layers closed."""

import keras
import numpy as np
import pytest
from keras import layers
from test_analysis import (
    as_model,
    chain_by_hand,
    layer_by_layer,
    nested,
    normalized,
    samples,
    scores,
    shared,
    shared_by_hand,
    softmax,
)

from highway_keras import analysis
from highway_keras.analysis import blocks
from highway_keras.analysis.compaction import leave_out
from highway_keras.layers import ConvHighway2D, Highway, HighwayStack, HighwayWrapper

pytestmark = pytest.mark.usefixtures("untraced")


def stack():
    return as_model((8,), HighwayStack(4, activation="tanh", name="stack"), softmax())


def convolutions():
    gated = [ConvHighway2D(3, 3, name=name) for name in "ab"]
    head = [layers.Flatten(), softmax()]
    return as_model((6, 6, 3), gated[0], layers.MaxPooling2D(), gated[1], *head)


def wrapped():
    gated = [HighwayWrapper(layers.Dense(4), name="a"), Highway(name="b")]
    return as_model((5, 4), *gated, layers.Flatten(), softmax())


@pytest.mark.parametrize("make", [stack, convolutions, wrapped, nested])
def test_the_compact_network_is_the_lesioned_one(make, tmp_path):
    model = make()
    (x, y), before = samples(model), model.get_weights()
    names = list(analysis.transform_biases(model))
    compacted = analysis.compact(model, x, y, layers=1, verbose=0)
    np.testing.assert_equal(model.get_weights(), before)

    def without(closed):
        outputs = layer_by_layer(
            model, x, lambda i, layer, z: z if names[i] in closed else layer(z)
        )
        return outputs, scores(outputs, y)

    # Each step is the cheapest lesion of what is left, beside all that is closed already.
    assert len(compacted.curve) == len(names)
    for step, row in enumerate(compacted.curve):
        closed = compacted.closed[:step]
        expected, (loss, error) = without(closed)
        assert row["layers"] == len(names) - step
        assert (row["loss"], row["error"]) == pytest.approx((loss, error), abs=1e-5)
        for name in set(names) - set(closed) if step else ():
            assert loss <= without((*closed[:-1], name))[1][0] + 1e-6
    np.testing.assert_allclose(compacted.model.predict(x, verbose=0), expected, atol=1e-6)

    # It is an ordinary model: smaller, saved, loaded and trained, and the first stays as it is.
    last = compacted.curve[-1]
    assert compacted.model.count_params() == last["parameters"] < model.count_params()
    assert len(analysis.transform_biases(compacted.model)) == 1
    compacted.model.save(tmp_path / "small.keras")
    loaded = keras.models.load_model(tmp_path / "small.keras")
    np.testing.assert_allclose(loaded.predict(x, verbose=0), expected, atol=1e-6)
    compacted.model.compile("sgd", "sparse_categorical_crossentropy")
    compacted.model.fit(x, y, verbose=0)
    np.testing.assert_equal(model.get_weights(), before)


@pytest.mark.parametrize(
    ("make", "by_hand"), [(normalized, chain_by_hand), (shared, shared_by_hand)]
)
def test_a_gate_in_a_sequential_and_a_shared_layer_are_left_out(make, by_hand):
    model = make()
    x, y = samples(model)
    small = analysis.compact(model, x, y, layers=0, verbose=0).model
    assert not list(blocks.gated_layers(small))
    expected = layer_by_layer(model, x, lambda i, layer, z: z, by_hand)
    np.testing.assert_allclose(small.predict(x, verbose=0), expected, atol=1e-6)


def test_what_a_user_chose_stays():
    """A loss that Keras cannot load, and options of a stack that its layers do not all have."""
    gated = HighwayStack(4, rematerialize=True, activity_regularizer="l2", name="stack_x4")
    model = as_model((8,), gated, softmax())
    model.compile("sgd", lambda y_true, y_pred: keras.ops.mean(y_pred))
    small = analysis.compact(model, *samples(model), layers=2, verbose=0).model
    (short,) = (layer for layer in small.layers if isinstance(layer, HighwayStack))
    config, before = short.get_config(), gated.get_config()
    assert (short.depth, short.name) == (2, "stack_x2") and config["rematerialize"]
    assert config["activity_regularizer"] == before["activity_regularizer"] is not None


def test_the_budget_is_kept():
    model = stack()
    x, y = samples(model)
    all_steps = analysis.compact(model, x, y, layers=0, verbose=0).curve
    errors, closed = [row["error"] for row in all_steps], []
    for budget in (0.0, 0.9):
        small = analysis.compact(model, x, y, budget=budget, verbose=0)
        steps = next((i for i, e in enumerate(errors) if e > errors[0] + budget + 1e-9), 5) - 1
        closed.append(len(small.closed))
        assert closed[-1] == steps
    assert closed[0] < closed[1]
    counts = [row["parameters"] for row in all_steps]
    assert counts == [27 + 144 * layers for layers in (4, 3, 2, 1, 0)]


def test_a_network_whose_every_layer_is_needed_stays_whole():
    model = as_model((8,), Highway(name="needed"), softmax())
    x = samples(model)[0]
    y = model.predict(x, verbose=0).argmax(-1)  # which the intact network gets right
    compacted = analysis.compact(model, x, y, budget=0.0, verbose=0)
    assert compacted.closed == () and len(compacted.curve) == 1
    expected = model.predict(x, verbose=0)
    np.testing.assert_allclose(compacted.model.predict(x, verbose=0), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "layer", "options"),
    [
        ("model", lambda: Highway(carry="learned"), {}),
        ("model", lambda: HighwayWrapper(layers.Dense(8), layers.Dense(8, "tanh")), {}),
        ("budget", Highway, {"budget": 1.0}),
        ("layers", Highway, {"layers": 5}),
    ],
)
def test_what_cannot_be_compacted(name, layer, options):
    model, x, y = as_model((8,), layer(), softmax()), np.ones((9, 8)), np.zeros(9, int)
    with pytest.raises(ValueError, match=f"`{name}`"):
        analysis.compact(model, x, y, **options, verbose=0)


def test_nothing_is_left_of_a_nested_model_of_any_size():
    gated = ConvHighway2D(3, 3, name="inner")
    stage = keras.Sequential([keras.Input((None, None, 3)), gated])
    parts = stage, ConvHighway2D(3, 3, name="outer"), layers.Flatten(), softmax()
    small = leave_out(as_model((4, 4, 3), *parts), [(gated, None)])
    kinds = [type(layer) for layer in small.layers[1:]]
    assert kinds == [ConvHighway2D, layers.Flatten, layers.Dense]
