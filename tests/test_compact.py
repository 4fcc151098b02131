"""Compact networks compute the same as with layers closed; what cannot be compacted is refused."""

import errno
import math
import os
from unittest import mock

import keras
import numpy as np
import pytest
from helpers import read_rows, run
from keras import layers
from test_analysis import as_model, layer_by_layer, nested, samples, scores, softmax

from highway_keras import analysis, data, models, training
from highway_keras.analysis.compaction import leave_out
from highway_keras.analysis.gating import block_starts
from highway_keras.analysis.graph import Graph
from highway_keras.layers import ConvHighway2D, Highway, HighwayStack, HighwayWrapper
from highway_keras.runs.folder import RunFolder
from highway_keras.util.messages import Notice

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
    blocks = list(Graph(model).blocks)
    found = analysis.compact(model, x, y, layers=1, verbose=0)
    np.testing.assert_equal(model.get_weights(), before)

    # The first closed layer is the cheapest lesion, and each step is the lesion of all so far.
    lesions = analysis.lesions(model, x, y, verbose=0)
    assert found.closed[0] == lesions.layers[int(np.argmin(lesions.loss))]
    assert [row["layers"] for row in found.curve] == [*range(len(blocks), 0, -1)]
    assert found.curve[1]["loss"] == pytest.approx(lesions.loss.min(), abs=1e-6)
    expected = layer_by_layer(
        model, x, lambda i, layer, z: z if blocks[i] in found.closed else layer(z)
    )
    np.testing.assert_allclose(found.model.predict(x, verbose=0), expected, atol=1e-6)
    assert found.curve[-1]["loss"] == pytest.approx(scores(expected, y)[0], abs=1e-5)

    # It is an ordinary model: smaller, saved, loaded and trained.
    assert found.model.count_params() == found.curve[-1]["parameters"] < model.count_params()
    assert len(Graph(found.model).blocks) == 1
    found.model.save(tmp_path / "small.keras")
    loaded = keras.models.load_model(tmp_path / "small.keras")
    np.testing.assert_allclose(loaded.predict(x, verbose=0), expected, atol=1e-6)
    loaded.compile("sgd", "sparse_categorical_crossentropy")
    loaded.fit(x, y, verbose=0)


def test_what_a_user_chose_stays():
    """A loss that Keras cannot load, and options of a stack that its layers do not all have."""
    gated = HighwayStack(4, rematerialize=True, activity_regularizer="l2", name="stack")
    model = as_model((8,), gated, softmax())
    model.compile("sgd", lambda y_true, y_pred: keras.ops.mean(y_pred))
    found = analysis.compact(model, *samples(model), layers=2, verbose=0).model
    (short,) = (layer for layer in found.layers if isinstance(layer, HighwayStack))
    config, before = short.get_config(), gated.get_config()
    assert short.depth == 2 and config["rematerialize"]
    assert config["activity_regularizer"] == before["activity_regularizer"] is not None
    np.testing.assert_allclose(block_starts(Graph(found)), -np.log(5), rtol=1e-6)  # of the four


def test_stacks_cut_to_one_depth_keep_different_names():
    inputs = x = keras.Input((8,))
    for depth in (2, 3):
        x = HighwayStack(depth, name=f"stack_x{depth}")(x)
    found = leave_out(keras.Model(inputs, softmax()(x)), {"stack_1", "stack_1 (2)", "stack_2"})
    stacks = [layer for layer in found.layers if isinstance(layer, HighwayStack)]
    assert [(stack.name, stack.depth) for stack in stacks] == [("stack_x1", 1), ("stack_x3", 1)]


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("sequences", [True, False])
def test_each_step_of_a_recurrent_layer_multiplies(sequences, ways):
    top, steps = ([layers.Flatten()] if sequences else []), 5
    rnn = layers.LSTM(4, return_sequences=sequences)
    rnn = rnn if ways == 1 else layers.Bidirectional(rnn)
    model = as_model((steps, 8), Highway(), rnn, *top, softmax())
    curve = analysis.compact(model, *samples(model), layers=0, verbose=0).curve
    expected = ways * steps * 4 * 4 * (8 + 4) + math.prod(model.layers[-1].kernel.shape)
    assert curve[-1]["multiplications"] == expected


def test_each_input_position_of_a_transposed_convolution_multiplies():
    wider = layers.Conv2DTranspose(3, 2, strides=2)
    model = as_model((4, 4, 2), ConvHighway2D(2, 1), wider, layers.Flatten(), softmax())
    curve = analysis.compact(model, *samples(model), layers=0, verbose=0).curve
    expected = 4 * 4 * 2 * 2 * 3 * 2 + math.prod(model.layers[-1].kernel.shape)
    assert curve[-1]["multiplications"] == expected


def test_the_budget_is_kept():
    model = stack()
    x, y = samples(model)
    whole = analysis.compact(model, x, y, layers=0, verbose=0)
    errors, closed = [row["error"] for row in whole.curve], []
    for budget in (0.0, 0.9):
        found = analysis.compact(model, x, y, budget=budget, verbose=0)
        steps = next((i for i, e in enumerate(errors) if e > errors[0] + budget + 1e-9), 5) - 1
        closed.append(len(found.closed))
        assert closed[-1] == steps
    assert closed[0] < closed[1]
    counts = [row["multiplications"] for row in whole.curve]
    assert counts == [24 + 128 * layers for layers in (4, 3, 2, 1, 0)]


def with_adapters():
    layer = Highway()
    layer.build((None, 8))
    layer.enable_lora(2)
    return layer


def used_twice():
    inputs, layer = keras.Input((8,)), Highway()
    return keras.Model(inputs, layer(layer(inputs)))


@pytest.mark.parametrize(
    ("name", "layer", "options"),
    [
        ("model", lambda: Highway(carry="learned"), {}),
        ("model", lambda: Highway(transform_activation="tanh"), {}),
        ("model", lambda: HighwayWrapper(layers.Dense(8), transform=layers.Dense(8, "tanh")), {}),
        ("model", with_adapters, {}),
        ("model", used_twice, {}),
        ("budget", Highway, {"budget": 1.0}),
        ("layers", Highway, {"layers": 5}),
    ],
)
def test_what_cannot_be_compacted(name, layer, options):
    model, x, y = as_model((8,), layer(), softmax()), np.ones((9, 8)), np.zeros(9, int)
    with pytest.raises(ValueError, match=f"`{name}`"):
        analysis.compact(model, x, y, **options, verbose=0)


def test_a_function_that_keras_cannot_find_again():
    model = as_model((8,), Highway(), Highway(activation=lambda z: z), softmax())
    with pytest.raises(ValueError, match="register your own functions"):
        analysis.compact(model, np.ones((9, 8)), np.zeros(9, int), verbose=0)


def test_nothing_is_left_of_a_nested_model_of_any_size():
    stage = keras.Sequential([keras.Input((None, None, 3)), ConvHighway2D(3, 3, name="inner")])
    parts = stage, ConvHighway2D(3, 3, name="outer"), layers.Flatten(), softmax()
    model = as_model((4, 4, 3), *parts)
    small = leave_out(model, {"inner"})
    assert [type(layer) for layer in small.layers[1:]] == [
        ConvHighway2D,
        layers.Flatten,
        layers.Dense,
    ]


def test_the_command(tmp_path, capsys):
    network = models.thin_mlp(5, input_shape=(8, 8, 1), transform_bias=-6.0)
    network.save(tmp_path / "thin.keras")
    small, sizes = tmp_path / "small", "--dataset digits --limit 100 --layers"
    command = ["compact", tmp_path / "thin.keras", "--out", small, *sizes.split()]
    assert run(*command, 9) == 2 and not small.exists()
    assert run(*command, 1) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("1 of 4 gated layers") and f"saved {small / 'best.keras'}" in printed
    assert [row["layers"] for row in read_rows(small / "compact.csv")] == ["4", "3", "2", "1"]
    assert (small / "compact.png").stat().st_size > 1000
    assert run("evaluate", small / "best.keras", "--json") == 0
    assert '"images": 359' in capsys.readouterr().out
    assert run("predict", small / "best.keras", small / "compact.png") == 0
    assert run("analyze", small, "--limit", 20, "--out", tmp_path / "look") == 0
    assert len(read_rows(tmp_path / "look" / "layers.csv")) == 1
    (small / "run.json").write_text('{"model": "another"}')
    with pytest.warns(Notice, match="not of the run in its folder"):
        training.SavedNetwork(small / "best.keras")


@pytest.mark.parametrize("command", ["compact", "export"])
def test_a_command_asks_first_whether_it_can_write(command, tmp_path, monkeypatch, capsys):
    models.thin_mlp(3, input_shape=(8, 8, 1)).save(tmp_path / "thin.keras")
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    monkeypatch.setattr(training.SavedNetwork, "load", None)  # not called
    out = tmp_path / "new" / "small"
    assert run(command, tmp_path / "thin.keras", "--out", out) == 2
    printed = capsys.readouterr().err
    assert "folder that can be written" in printed and f"--out {out}" in printed


def test_a_full_disk_leaves_the_way_free(tmp_path, monkeypatch, capsys):
    models.thin_mlp(3, input_shape=(8, 8, 1)).save(tmp_path / "thin.keras")
    small, save = tmp_path / "small", keras.Model.save
    command = f"compact {tmp_path}/thin.keras --layers 1 --dataset digits --limit 20 --out {small}"
    full = OSError(errno.ENOSPC, "No space left on device")
    as_written = OSError("run.json cannot be written")
    as_written.__cause__ = full
    monkeypatch.setattr(keras.Model, "save", mock.Mock(side_effect=full))
    assert run(*command.split()) == 1 and not (small / "run.json").exists()
    monkeypatch.setattr(keras.Model, "save", save)
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_json", mock.Mock(side_effect=as_written))
        assert run(*command.split()) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "run.json" in line]
    assert line.count("cannot be written") == 1
    assert run(*command.split()) == 0


def test_the_command_keeps_a_network_that_came_meanwhile(tmp_path, monkeypatch):
    models.thin_mlp(3, input_shape=(8, 8, 1)).save(tmp_path / "thin.keras")
    small = tmp_path / "small"
    small.mkdir()

    def compact(*arguments):
        assert arguments[3:] == (0.002, None)  # as a share; no number of layers
        found = data.load("digits", validation=0, limit=100)
        np.testing.assert_array_equal(arguments[1], found.x_train)  # never the test images
        (small / "best.keras").write_text("of another process")

    monkeypatch.setattr(analysis, "compact", compact)
    sizes = "--dataset digits --limit 100 --budget 0.2"  # percentage points
    assert run("compact", tmp_path / "thin.keras", "--out", small, *sizes.split()) == 2
    assert (small / "best.keras").read_text() == "of another process"


@pytest.mark.slow
def test_the_command_takes_the_zoos_weights(tmp_path, capsys):
    images, labels = np.random.default_rng(0).integers(0, 255, (40, 28, 28)), np.arange(40) % 10
    images = images.astype("uint8")
    test = {"x_test": images[:9], "y_test": labels[:9]}
    np.savez(tmp_path / "random.npz", x_train=images, y_train=labels, **test)
    data, small = ["--dataset", tmp_path / "random.npz"], tmp_path / "small"
    zoo = "compact thin-highway-10 --weights mnist --layers 2"
    assert run(*zoo.split(), *data, "--out", small) == 0
    best = small / "best.keras"
    assert run("evaluate", best, *data) == 0
    settings = RunFolder(small).read_json()
    assert settings["recipe"]["name"] == "thin" and len(settings["compacted"]["closed"]) == 7
    assert not settings.keys() & {"accuracy", "sha256", "results"}  # these were the whole network's

    # It is fine-tuned as a network of its depth, or by its file, for which no name is needed.
    before = training.SavedNetwork(best).model.predict(images[..., None], verbose=0)
    of_depth = ["--model-set", "depth=3", "implementation=stack", "--weights", best]
    for number, network in enumerate((["thin-highway-10", *of_depth], [best])):
        tuned = tmp_path / f"tuned-{number}"
        options = "--recipe thin --epochs 1 --learning-rate 1e-9"
        assert run("fit", *network, *options.split(), *data, "--out", tuned) == 0
        model = training.SavedNetwork(tuned / "best.keras").model
        np.testing.assert_allclose(model.predict(images[..., None], verbose=0), before, atol=1e-5)
    assert "expect images" not in capsys.readouterr().err
    other = "--recipe modern-cifar --epochs 1 --set warmup=0"
    run("fit", best, *other.split(), *data, "--out", tmp_path / "other")
    assert "expect images preprocessed by scale" in capsys.readouterr().err
