"""How the paper's statements on depth, gradients and starts are measured, on small networks."""

import itertools
import math

import keras
import numpy as np
import pytest

from highway_keras import data, models
from highway_keras.cli import command as cli
from highway_keras.layers.backends import shim
from highway_keras.paper import first_losses, gradients, starts
from highway_keras.results import provenance, read_rows
from highway_keras.tuning import HighwayHyperModel
from highway_keras.tuning.weights import assign, draw


def small_images(n=60):
    rng = np.random.default_rng(1)
    return rng.random((n, 8, 8, 1), "float32"), np.arange(n) % 10


def kernels(layers):
    """The kernels of plain layers, or of a single stack of highway layers."""
    found = [np.asarray(layer.kernel) for layer in layers]
    return np.concatenate([np.reshape(k, (-1, *k.shape[-2:])) for k in found])


@pytest.mark.parametrize("kind", ["highway", "plain"])
def test_gradient_norms_are_those_of_the_keras_network(kind):
    x, y = small_images()
    norms = gradients.gradient_norms(kind, 4, x, y, scale=1.5, seeds=2)
    hypermodel = HighwayHyperModel(4, kind, (8, 8, 1))
    for activation, seed in itertools.product(gradients.ACTIVATIONS, range(2)):
        values = {"activation": activation, "transform_bias": -math.log(4)}
        weights = draw(hypermodel, values, [seed])
        for key in ("first_kernel", "kernel"):
            weights[key][..., : hypermodel.units] *= 1.5
        model = models.thin_mlp(4, kind, activation=activation, input_shape=(8, 8, 1))
        assign(model, weights)
        _, *layers, top = [layer for layer in model.layers if layer.weights]
        before = kernels(layers)
        # From logits: Keras on JAX clips small probabilities, which loses their gradients.
        top.activation = keras.activations.linear
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(1.0), loss, run_eagerly=True)
        model.train_on_batch(x, y)
        expected = np.linalg.norm(before - kernels(layers), axis=(1, 2))
        np.testing.assert_allclose(norms[activation][seed], expected, rtol=1e-3)


@pytest.mark.parametrize("start", starts.STARTS)
def test_starts_have_mean_zero_and_the_deviation_asked_for(start):
    kernels = starts.draw_start(start, 2.0, (3, 80, 50), np.random.default_rng(0))
    assert kernels.shape == (3, 80, 50) and kernels.dtype == "float32"
    assert abs(kernels.mean()) < 0.03 * kernels.std()
    assert kernels.std() == pytest.approx(2 / np.sqrt(80), rel=0.02)
    spread = np.abs(kernels).max() / kernels.std()
    assert (spread <= np.sqrt(3) * 1.02) == (start == "uniform")
    products = np.swapaxes(kernels, 1, 2) @ kernels / 4
    assert np.allclose(products, np.eye(50), atol=1e-5) == (start == "orthogonal")
    assert len({kernel.tobytes() for kernel in kernels}) == 3


def test_the_best_rate_of_each_start_is_reported(monkeypatch):
    x, y = small_images()
    x += 0.1 * y[:, None, None, None]
    monkeypatch.setattr(starts, "BATCH_SIZE", 20)
    one, three = (
        starts.train_from_starts("highway", 5, x, y, 2, rates=rates)
        for rates in ((0.01,), (1e-6, 0.01, 1e9))
    )
    assert len(one) == 2 * 3 * 3 * 2
    assert {row["learning_rate"] for row in three} == {0.01}
    losses = [[row.pop("loss") for row in rows] for rows in (one, three)]
    assert one == three and losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_starts_reach_the_kernels_of_h_alone():
    hypermodel = HighwayHyperModel(5, "highway", (8, 8, 1))
    values = {"activation": "relu", "transform_bias": -2.0}
    weights = starts.start_weights(hypermodel, values, "normal", 2.0, 3)
    normalized = draw(hypermodel, values, [3])
    changed = {key for key in weights if not np.array_equal(weights[key], normalized[key])}
    assert changed == {"first_kernel", "kernel"}
    np.testing.assert_array_equal(weights["kernel"][..., 50:], normalized["kernel"][..., 50:])
    assert weights["kernel"][..., :50].std() == pytest.approx(2 * np.sqrt(2 / 50), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "file", "rows"),
    [
        ("gradients --limit 40", "gradient-norms", 3 * 4 * 3 * 2),
        ("starts --depth 3 --limit 40 --epochs 1", "starts", 36 + 18),
        ("first-losses --seeds 1 --limit 6", "first-losses", 14),
    ],
)
def test_the_commands_leave_rows_that_say_how_they_were_made(command, file, rows, noise, tmp_path):
    assert cli.main(["reproduce", *command.split(), "--out", str(tmp_path)]) == 0
    found = read_rows(tmp_path / f"{file}.csv")
    assert len(found) == rows
    for row in found:
        assert row["images"] == command.split("--limit ")[1].split()[0]
        assert all(row[key] for key in provenance.COLUMNS if key != "commit")  # without git
        assert set(command.split()) <= set(row["command"].split())
    assert (tmp_path / "gradient-norms.png").exists() == command.startswith("gradients")


@pytest.mark.parametrize("command", ["reproduce gradients", "reproduce starts", "search"])
def test_what_needs_populations_says_so_first(command, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(shim, "has_loops", lambda: False)
    assert cli.main([*command.split(), "--out", str(tmp_path / "none")]) == 2
    assert "TensorFlow or the JAX backend" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_gradients_keep_other_rows(noise, tmp_path):
    command = f"reproduce gradients --kind plain --seeds 1 --limit 8 --out {tmp_path}"
    for depth in ("2", "3", "2"):
        assert cli.main([*command.split(), "--depth", depth]) == 0
    depths = [row["depth"] for row in read_rows(tmp_path / "gradient-norms.csv")]
    assert depths == 6 * ["2"] + 6 * ["3"]


@pytest.mark.parametrize("options", [{}, {"kernel_initializer": "lecun_uniform"}])
def test_first_losses_are_of_scaled_held_out_images_and_the_start_asked_for(options, noise):
    kernel = options.get("kernel_initializer")
    (loss,) = first_losses.first_losses("mnist-highway-32", kernel, 0.5, seeds=1, limit=6)
    images = data.load("mnist", validation=0.1)
    x = data.preprocessor(("scale",), images.x_train)(images.x_val) / 2
    keras.utils.set_random_seed(0)
    rows = keras.ops.convert_to_numpy(models.create("mnist-highway-32", **options)(x))
    assert loss == pytest.approx(-np.log(rows[np.arange(6), images.y_val]).mean(), rel=1e-4)


@pytest.mark.parametrize(("option", "value"), [("seeds", 0), ("limit", 7)])
def test_first_losses_need_seeds_and_images(option, value, noise, tmp_path, capsys):
    command = f"reproduce first-losses --{option} {value} --out {tmp_path / 'none'}"
    assert cli.main(command.split()) == 2 and f"`{option}`" in capsys.readouterr().err
    assert not any((tmp_path / "none").glob("*"))
