"""Compact networks: what is closed and left out computes the same, and what cannot be is said."""

import csv

import keras
import numpy as np
import pytest

from highway_keras import analysis, models, training
from highway_keras.analysis.graph import Graph
from highway_keras.cli import command as cli
from highway_keras.layers import ConvHighway2D, Highway, HighwayStack, HighwayWrapper
from highway_keras.runs.folder import RunFolder

pytestmark = pytest.mark.usefixtures("untraced")


def as_model(shape, *layers):
    """A classifier of three classes with weights at which each layer matters to another degree."""
    model = keras.Sequential(
        [keras.Input(shape), *layers, keras.layers.Flatten(), keras.layers.Dense(3, "softmax")]
    )
    random = np.random.default_rng(0)
    model.set_weights([0.3 * random.standard_normal(w.shape) for w in model.get_weights()])
    return model


def random_samples(model, count=30):
    random = np.random.default_rng(1)
    x = random.standard_normal((count, *model.input_shape[1:])).astype("float32")
    return x, random.integers(0, 3, count)


MODELS = {
    "stack": lambda: as_model((8,), HighwayStack(4, activation="tanh", name="stack")),
    "convolutions": lambda: as_model(
        (6, 6, 3), ConvHighway2D(3, 3), keras.layers.MaxPooling2D(), ConvHighway2D(3, 3)
    ),
    "wrapped": lambda: as_model((5, 4), HighwayWrapper(keras.layers.Dense(4)), Highway()),
    "nested": lambda: as_model((8,), as_model((8,), Highway()), keras.layers.Dense(8), Highway()),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_compact_network_is_the_lesioned_one(name, tmp_path):
    model = MODELS[name]()
    (x, y), before = random_samples(model), model.get_weights()
    count = len(Graph(model).blocks)
    found = analysis.compact(model, x, y, layers=1, verbose=0)
    for weight, kept in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, kept)

    # The first closed layer is the cheapest lesion, and each step is the lesion of all so far.
    lesions = analysis.lesions(model, x, y, verbose=0)
    assert found.closed[0] == lesions.layers[int(np.argmin(lesions.loss))]
    assert [row["layers"] for row in found.curve] == [*range(count, 0, -1)]
    assert found.curve[1]["loss"] == pytest.approx(lesions.loss.min(), abs=1e-6)
    shut = keras.models.clone_model(model)
    shut.set_weights(before)
    graph = Graph(shut)
    for call in graph.gated:
        bias = keras.ops.convert_to_numpy(call.layer.transform_bias).copy()
        rows = bias.reshape(len(call.blocks), -1)
        for block in call.blocks:
            if graph.blocks[block] in found.closed:
                rows[block - call.blocks.start] = -1e9
        call.layer.transform_bias.assign(bias)
    expected = shut.predict(x, verbose=0)
    np.testing.assert_allclose(found.model.predict(x, verbose=0), expected, atol=1e-6)
    chosen = expected[np.arange(30), y]
    assert found.curve[-1]["loss"] == pytest.approx(-np.log(chosen).mean(), abs=1e-5)

    # It is an ordinary model: smaller, saved, loaded and trained.
    assert found.model.count_params() == found.curve[-1]["parameters"] < model.count_params()
    assert len(Graph(found.model).blocks) == 1
    found.model.save(tmp_path / "small.keras")
    loaded = keras.models.load_model(tmp_path / "small.keras")
    np.testing.assert_allclose(loaded.predict(x, verbose=0), expected, atol=1e-6)
    loaded.compile("sgd", "sparse_categorical_crossentropy")
    loaded.fit(x, y, verbose=0)


def test_the_budget_is_kept():
    model = MODELS["stack"]()
    x, y = random_samples(model, 200)
    whole = analysis.compact(model, x, y, layers=0, verbose=0)
    errors = [row["error"] for row in whole.curve]
    for budget in (0.05, 0.9):
        found = analysis.compact(model, x, y, budget=budget, verbose=0)
        steps = next((i for i, e in enumerate(errors) if e > errors[0] + budget + 1e-9), 5) - 1
        assert len(found.closed) == steps
    counts = [row["multiplications"] for row in whole.curve]
    assert counts == [24 + 128 * layers for layers in (4, 3, 2, 1, 0)]


DENSE, OPEN = keras.layers.Dense(8), keras.layers.Dense(8, "tanh")


@pytest.mark.parametrize(
    ("name", "make", "options"),
    [
        ("model", lambda: as_model((8,), Highway(carry="learned", name="bad")), {}),
        ("model", lambda: as_model((8,), Highway(transform_activation="tanh", name="bad")), {}),
        ("model", lambda: as_model((8,), HighwayWrapper(DENSE, transform=OPEN, name="bad")), {}),
        ("model", lambda: as_model((8,), keras.layers.Dense(3)), {}),
        ("budget", MODELS["stack"], {"budget": 1.0}),
        ("layers", MODELS["stack"], {"layers": 5}),
        ("y", MODELS["stack"], {"y": np.array([3] * 9)}),
        ("x", MODELS["stack"], {"x": np.ones((9, 7))}),
    ],
)
def test_what_cannot_be_compacted(name, make, options):
    arguments = {"x": np.ones((9, 8)), "y": np.zeros(9, int), **options}
    with pytest.raises(ValueError, match=f"`{name}`"):
        analysis.compact(make(), **arguments, verbose=0)


def test_the_command(tmp_path, capsys):
    network = models.thin_mlp(5, input_shape=(8, 8, 1), transform_bias=-6.0)
    network.save(tmp_path / "thin.keras")
    small = tmp_path / "small"
    data = ["--dataset", "digits", "--limit", "100"]
    command = ["compact", str(tmp_path / "thin.keras"), *data, "--out", str(small), "--layers", "1"]
    assert cli.main(command) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("1 of 4 gated layers") and f"saved {small / 'best.keras'}" in printed
    with (small / "compact.csv").open(newline="") as file:
        assert [row["layers"] for row in csv.DictReader(file)] == ["4", "3", "2", "1"]
    assert (small / "compact.png").stat().st_size > 1000
    assert cli.main(["evaluate", str(small / "best.keras"), "--json"]) == 0
    assert '"images": 359' in capsys.readouterr().out
    assert cli.main(["predict", str(small / "best.keras"), str(small / "compact.png")]) == 0


@pytest.mark.slow
def test_the_command_takes_the_zoos_weights(tmp_path, capsys):
    images, labels = np.random.default_rng(0).integers(0, 255, (40, 28, 28)), np.arange(40) % 10
    test = {"x_test": images[:9].astype("uint8"), "y_test": labels[:9]}
    np.savez(tmp_path / "random.npz", x_train=images.astype("uint8"), y_train=labels, **test)
    data = ["--dataset", str(tmp_path / "random.npz"), "--layers", "2"]
    command = ["compact", "thin-highway-10", "--weights", "mnist", *data]
    small = tmp_path / "small"
    assert cli.main([*command, "--out", str(small)]) == 0
    assert cli.main(["evaluate", str(small / "best.keras"), *data[:2]]) == 0
    settings = RunFolder(small).read_json()
    assert settings["recipe"]["name"] == "thin" and len(settings["compacted"]["closed"]) == 7
    assert not settings.keys() & {"accuracy", "sha256", "results"}  # which were the whole one's

    # It is fine-tuned as a network of its depth, or by its file, for which no name is needed.
    settings, best = ["--recipe", "thin", "--epochs", "1", *data[:2]], str(small / "best.keras")
    by_name = ["thin-highway-10", "--model-set", "depth=3", "implementation=stack"]
    for number, network in enumerate(([*by_name, "--weights", best], [best])):
        out = str(tmp_path / f"tuned-{number}")
        assert cli.main(["fit", *network, *settings, "--learning-rate", "1e-9", "--out", out]) == 0
    tuned = [training.SavedNetwork(tmp_path / f"tuned-{n}" / "best.keras").model for n in (0, 1)]
    before = training.SavedNetwork(small / "best.keras").model.predict(images[..., None], verbose=0)
    for model in tuned:
        found = model.predict(images[..., None], verbose=0)
        np.testing.assert_allclose(found, before, atol=1e-5)
    assert "expect images" not in capsys.readouterr().err
    other = ["--recipe", "modern-cifar", "--epochs", "1", "--set", "warmup=0", *data[:2]]
    cli.main(["fit", str(small / "best.keras"), *other, "--out", str(tmp_path / "other")])
    assert "expect images preprocessed by scale" in capsys.readouterr().err
