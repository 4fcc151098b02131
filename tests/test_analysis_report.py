"""Pictures, the page, the command and the callback."""

import copy
import html
import re

import keras
import numpy as np
import pytest
from helpers import read_rows
from PIL import Image

from highway_keras import ConvHighway2D, Highway, HighwayStack, HighwayWrapper, analysis, models
from highway_keras.analysis import plots
from highway_keras.analysis.gating import block_starts
from highway_keras.analysis.graph import Graph
from highway_keras.util.messages import Notice

pytestmark = pytest.mark.usefixtures("untraced")


def network():
    options = {"activation": "tanh", "transform_bias": -1.0, "implementation": "stack"}
    return models.thin_mlp(depth=6, input_shape=(8,), classes=3, **options)


def samples():
    random = np.random.default_rng(0)
    return random.standard_normal((40, 8)).astype("float32"), random.integers(0, 3, 40)


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    keras.utils.set_random_seed(0)
    out = tmp_path_factory.mktemp("page")
    return analysis.analyze(network(), *samples(), out, title="<thin> & small", verbose=0)


def test_samples_may_be_a_list_of_arrays(tmp_path):
    x, y = samples()
    ends = [keras.Input((8,)), keras.Input((8,))]
    top = keras.layers.Dense(3, activation="softmax")(Highway()(keras.layers.add(ends)))
    found = analysis.analyze(keras.Model(ends, top), [x, x], y, tmp_path, verbose=0)
    assert found.gates.values.shape == (1, 1, 8) and found.page.exists()
    assert "from one image" in found.no_live


def test_open_gates_are_counted_at_every_position(tmp_path):
    keras.utils.set_random_seed(0)
    gated, end = ConvHighway2D(4, 3), keras.layers.Dense(10, activation="softmax")
    x = np.random.default_rng(0).normal(0, 9, (20, 6, 6, 4))
    model = keras.Sequential([keras.Input((6, 6, 4)), gated, keras.layers.Flatten(), end])
    found = analysis.analyze(model, x, np.arange(20) % 10, tmp_path, verbose=0)
    gates = analysis.gates(model, x[:1], per_position=True).values()
    share = np.concatenate([gate.ravel() > 0.5 for gate in gates]).mean()
    assert share and share != (found.gates.values > 0.5).mean()
    assert f"{share:.0%} of the gates are open" in found.page.read_text("utf-8")


def test_gates_without_biases_still_have_a_figure(tmp_path):
    gate = keras.layers.Dense(8, "sigmoid", use_bias=False)
    gated = HighwayWrapper(keras.layers.Dense(8), transform=gate)
    model = keras.Sequential([keras.Input((8,)), gated, keras.layers.Dense(3, "softmax")])
    page = analysis.analyze(model, *samples(), tmp_path, verbose=0).page.read_text("utf-8")
    assert page.count("data:image/png") == 3 and "biases" not in page
    assert "nan" not in re.sub(r"base64,[^\"]*", "", page)


def test_the_page_loads_nothing(analysed):
    page = analysed.page.read_text("utf-8")
    sources = re.findall(r'(?:src|href)="?([^"> ]+)', page)
    assert [source[:27] for source in sources] == ["data:image/png;base64,iVBOR"] * 3
    text = html.unescape(page)
    assert "<thin> & small" in text and "<thin>" not in page and str(analysed.needed) in text
    assert "below their start -1" in text


class OwnGate(keras.layers.Layer):
    """A gate that does not say how its bias starts."""

    def build(self, shape):
        self.bias = self.add_weight(shape=shape[-1:])

    def call(self, x):
        return keras.ops.sigmoid(x + self.bias)


def test_the_starts_of_layers_that_differ():
    layers = [Highway(transform_bias_initializer=start) for start in (-1.0, 2.0, "zeros")]
    layers.append(HighwayWrapper(keras.layers.Dense(8), transform_bias_initializer="ones"))
    layers.append(Highway(transform_bias_initializer=keras.initializers.RandomNormal()))
    layers.append(HighwayWrapper(keras.layers.Dense(8), transform=OwnGate()))
    graph = Graph(keras.Sequential([keras.Input((8,)), *layers]))
    np.testing.assert_array_equal(block_starts(graph), [-1, 2, 0, 1, np.nan, np.nan])
    stack = HighwayStack.from_layers(layers[:3])
    for same in ([stack], stack.unstack()):
        graph = Graph(keras.Sequential([keras.Input((8,)), *same]))
        np.testing.assert_array_equal(block_starts(graph), [-1, 2, 0])


def test_the_folder_has_pictures_and_a_row_a_layer(analysed):
    for name in ("figure2", "figure3", "figure4"):
        pixels = np.asarray(Image.open(analysed.page.with_name(f"{name}.png")).convert("RGB"))
        assert min(pixels.shape[:2]) > 200 and (pixels != 255).any(-1).mean() > 0.02
    rows = read_rows(analysed.page.with_name("layers.csv"))
    assert [row["layer"] for row in rows] == list(analysed.lesions.layers)
    np.testing.assert_allclose([float(row["lesion_error"]) for row in rows], analysed.lesions.error)
    np.testing.assert_allclose([float(row["mean_bias"]) for row in rows], -1.0)
    assert sum(int(row["matters"]) for row in rows) == len(analysed.needed.layers)


def test_lesion_plot(analysed):
    (axis,) = analysis.plot_lesions(analysed.lesions).axes
    curve, intact, threshold = axis.get_lines()
    np.testing.assert_allclose(curve.get_ydata(), 100 * analysed.lesions.error)
    assert intact.get_linestyle() == "--"
    np.testing.assert_allclose(intact.get_ydata()[0], 100 * analysed.lesions.intact_error)
    assert threshold.get_ydata()[0] > intact.get_ydata()[0]


def test_a_lesion_plot_of_few_errors():
    """Where the axis is logarithmic, 0 is drawn at half a sample."""

    def drawn(*wrong):
        lesions = analysis.Lesions(("a", "b"), np.zeros(2), np.array(wrong), 0.0, 0, 100)
        (axis,) = analysis.plot_lesions(lesions).axes
        return axis.get_yscale(), list(axis.get_lines()[0].get_ydata())

    assert drawn(0, 0) == ("linear", [0, 0])
    assert drawn(0, 50) == ("log", [0.5, 50])


def test_one_layer_has_a_whole_number():
    lesions = analysis.Lesions(("a",), np.zeros(1), np.ones(1), 0.0, 0, 100)
    (axis,) = analysis.plot_lesions(lesions).axes
    assert all(tick == round(tick) for tick in axis.get_xticks())


def images(figure):
    """The images that a figure shows, by their titles."""
    shown = [axis for axis in figure.axes if axis.get_images()]
    return {axis.get_title(): axis.get_images()[0] for axis in shown}


def test_gate_plot_shows_what_it_is_given(analysed):
    sample = np.arange(5 * 4 * 3).reshape(5, 4, 3)
    maps = analysed.biases, analysed.mean.overall, analysed.gates, analysed.outputs
    shown = images(analysis.plot_gates(*maps, sample=sample))
    found = shown.pop("The sample").get_array()
    np.testing.assert_allclose(found, sample / sample.max(), atol=1e-6)
    expected = (maps[0].values, maps[1].values, maps[2].values[0], maps[3].values[0])
    for image, values in zip(shown.values(), expected, strict=True):
        np.testing.assert_array_equal(image.get_array(), values)


def test_routing_plot_shows_the_classes_asked_for(analysed):
    names = ("zero", "one", "two")
    shown = images(analysis.plot_routing(analysed.mean.by_class, classes=[2, 0], class_names=names))
    assert list(shown) == ["two", "zero"]
    lowest, highest = shown["two"].get_clim()
    assert lowest == -highest
    by_class = copy.deepcopy(analysed.mean.by_class)
    by_class.values[0, 0, 0], by_class.values[-1] = -9, 0  # beyond the colors, in the first class
    bar = images(analysis.plot_routing(by_class))["Class 2"].colorbar
    assert bar.extend in ("min", "both")


def fitted(folder, epochs=2, initial_epoch=0, **arguments):
    """A network that was trained with its gates watched, and the rows that were written."""
    x, y = samples()
    model = network()
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy")
    monitor = analysis.GateMonitor(x[:16], folder, **arguments)
    model.fit(x, y, epochs=epochs, initial_epoch=initial_epoch, verbose=0, callbacks=[monitor])
    return model, read_rows(folder / "gates.csv")


def test_monitor_logs_what_the_gates_do(tmp_path):
    folder = tmp_path / "new" / "folder"
    model, written = fitted(folder)
    assert [int(row["epoch"]) for row in written] == [0] * 5 + [1] * 5 + [2] * 5
    np.testing.assert_allclose([float(row["mean_bias"]) for row in written[:5]], -1.0)
    gates = analysis.gates(model, samples()[0][:16]).values
    biases = analysis.transform_biases(model).values
    last = {key: [float(row[key]) for row in written[-5:]] for key in list(written[0])[2:]}
    np.testing.assert_allclose(last["mean_gate"], gates.mean((0, 2)), atol=1e-6)
    np.testing.assert_allclose(last["open_gates"], (gates > 0.5).mean((0, 2)), atol=1e-6)
    np.testing.assert_allclose(last["mean_bias"], biases.mean(1), atol=1e-6)
    assert last["mean_bias"] != [-1.0] * 5

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    kinds = ("mean_gate", "open_gates", "mean_bias")
    tags = {f"{kind}/highway_{i}" for kind in kinds for i in range(5)}
    assert set(events.Tags()["tensors"]) == tags
    assert [event.step for event in events.Tensors("mean_gate/highway_0")] == [0, 1, 2]

    with pytest.raises(ValueError, match="`folder` must not hold the gates of another run"):
        fitted(folder)
    assert read_rows(folder / "gates.csv") == written
    _, written = fitted(folder, epochs=1, append=True)
    assert [int(row["epoch"]) for row in written[-10:]] == [2] * 5 + [1] * 5


def test_monitor_goes_on_with_a_run_that_resumes(tmp_path):
    fitted(tmp_path, epochs=1)
    rows = (tmp_path / "gates.csv").read_text().splitlines(keepends=True)
    (tmp_path / "gates.csv").write_text("".join(rows[:6]))  # killed in the first epoch
    for first, rows in ((0, [0, 1]), (1, [0, 1, 2]), (2, [0, 1, 2])):  # the last trains nothing
        _, written = fitted(tmp_path, epochs=min(first + 1, 2), initial_epoch=first)
        assert [int(row["epoch"]) for row in written[::5]] == rows


# What fails late costs nothing but itself


def broken(*arguments, **options):
    raise RuntimeError("no fonts\n  here: ...")


def test_an_analysis_without_a_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "plot_routing", broken)
    with pytest.warns(Notice, match=r"figure3.png could not be drawn: no fonts$"):
        found = analysis.analyze(network(), *samples(), tmp_path, verbose=0)
    assert (tmp_path / "layers.csv").exists() and (tmp_path / "figure4.png").exists()
    page = found.page.read_text(encoding="utf-8")
    assert page.count("data:image/png") == 2 and "This picture could not be drawn." in page


@pytest.mark.parametrize("name", ["index.html", "figure2.png", "layers.csv"])
def test_another_file_is_not_overwritten(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=f"`out`.*{name} is something else"):
        analysis.analyze(network(), *samples(), tmp_path, verbose=0)
    assert (tmp_path / name).read_text() == "mine"


def test_arguments_are_checked_before_the_work(tmp_path, monkeypatch):
    for work in ("lesioning.by_batch", "gating.mean_gates"):
        monkeypatch.setattr(f"highway_keras.analysis.{work}", broken)
    for names in (list("abcd"), "abc", {"a", "b", "c"}, [0, 1, 2], 5):
        with pytest.raises(ValueError, match="`class_names`"):
            analysis.analyze(network(), *samples(), tmp_path, class_names=names)
    with pytest.raises(ValueError, match="`threshold`"):
        analysis.analyze(network(), *samples(), tmp_path, threshold=1.5)
    with pytest.raises(ValueError, match="`y`"):
        analysis.analyze(network(), samples()[0], samples()[1] + 1, tmp_path)
    with pytest.raises(ValueError, match="one class for each sample"):
        top = keras.layers.Dense(3, "softmax")
        steps = keras.Sequential([keras.Input((4, 6)), Highway(), top])
        analysis.analyze(steps, np.zeros((2, 4, 6)), np.zeros((2, 4), int), tmp_path)
    with pytest.raises(ValueError, match="`model` must return one prediction"):
        whole = network()
        analysis.analyze(keras.Model(whole.inputs, 2 * whole.outputs), *samples(), tmp_path)
