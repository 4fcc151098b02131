"""Pictures, the page and the callback."""

import html
import re

import keras
import numpy as np
import pytest
from PIL import Image

from highway_keras import HighwayStack, analysis, plots
from highway_keras.results import read_rows

pytestmark = pytest.mark.usefixtures("untraced")


def network():
    stack = HighwayStack(5, activation="tanh", transform_bias_initializer=-1.0, name="highway_x5")
    top = keras.layers.Dense(3, "softmax")
    return keras.Sequential([keras.Input((8,)), stack, top])


def samples():
    random = np.random.default_rng(0)
    return random.standard_normal((40, 8)).astype("float32"), random.integers(0, 3, 40)


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    keras.utils.set_random_seed(0)
    out = tmp_path_factory.mktemp("page")
    return analysis.analyze(network(), *samples(), out, title="<thin> & small", verbose=0)


def test_the_page_loads_nothing(analysed):
    page = analysed.page.read_text("utf-8")
    sources = re.findall(r'(?:src|href)="?([^"> ]+)', page)
    assert [source[:27] for source in sources] == ["data:image/png;base64,iVBOR"] * 3
    text = html.unescape(page)
    assert "<thin> & small" in text and "<thin>" not in page and str(analysed.needed) in text
    lesions, worst = analysed.lesions, int(np.argmax(analysed.lesions.error))
    assert f"error {100 * lesions.intact_error:.2f} %, loss {lesions.intact_loss:.4f} nats" in text
    assert f"Layer {worst + 1} ({lesions.layers[worst]}) is worth most" in text
    assert f"error is {100 * lesions.error[worst]:.2f} %" in text


def test_the_folder_has_pictures_and_a_row_a_layer(analysed):
    for name in ("figure2", "figure3", "figure4"):
        pixels = np.asarray(Image.open(analysed.page.with_name(f"{name}.png")).convert("RGB"))
        assert min(pixels.shape[:2]) > 200 and (pixels != 255).any(-1).mean() > 0.02
    rows = read_rows(analysed.page.with_name("layers.csv"))
    assert [row["layer"] for row in rows] == list(analysed.lesions.layers)
    np.testing.assert_allclose([float(row["lesion_error"]) for row in rows], analysed.lesions.error)
    np.testing.assert_allclose([float(row["mean_bias"]) for row in rows], -1.0)
    means = stacked(analysed.mean.overall).mean(1)
    for column, values in (("lesion_loss", analysed.lesions.loss), ("mean_gate", means)):
        np.testing.assert_allclose([float(row[column]) for row in rows], values, rtol=1e-6)
    assert sum(int(row["matters"]) for row in rows) == len(analysed.needed.layers)


def test_lesion_plot(analysed):
    (axis,) = analysis.plot_lesions(analysed.lesions, analysed.needed).axes
    curve, intact, threshold = axis.get_lines()
    np.testing.assert_allclose(curve.get_ydata(), 100 * analysed.lesions.error)
    assert intact.get_linestyle() == "--"
    np.testing.assert_allclose(intact.get_ydata()[0], 100 * analysed.lesions.intact_error)
    assert threshold.get_ydata()[0] > intact.get_ydata()[0]


def test_a_lesion_plot_of_few_errors():
    """Where the axis is logarithmic, 0 is drawn at half a sample."""

    def drawn(*wrong):
        lesions = analysis.Lesions(("a", "b"), np.zeros(2), np.array(wrong), 0.0, 0, 100)
        (axis,) = analysis.plot_lesions(lesions, analysis.needed_layers(lesions)).axes
        return axis.get_yscale(), list(axis.get_lines()[0].get_ydata())

    assert drawn(0, 0) == ("linear", [0, 0])
    assert drawn(0, 50) == ("log", [0.5, 50])


def images(figure):
    """The images that a figure shows, by their titles."""
    shown = [axis for axis in figure.axes if axis.get_images()]
    return {axis.get_title(): axis.get_images()[0] for axis in shown}


def stacked(by_block):
    """The array `(blocks, units)` of a dictionary."""
    return np.stack(list(by_block.values()))


def test_gate_plot_shows_what_it_is_given(analysed):
    sample = np.arange(5 * 4 * 3).reshape(5, 4, 3)
    maps = analysed.biases, analysed.mean.overall, analysed.gates, analysed.outputs
    shown = images(analysis.plot_gates(*maps, sample=sample))
    pixels = shown.pop("The sample").get_array()
    np.testing.assert_allclose(pixels, sample / sample.max(), atol=1e-6)
    biases, mean, gates, outputs = map(stacked, maps)
    expected = (biases, mean, gates[:, 0], outputs[:, 0])
    for image, values in zip(shown.values(), expected, strict=True):
        np.testing.assert_array_equal(image.get_array(), values)


def test_routing_plot_shows_the_classes_asked_for(analysed):
    names = ("zero", "one", "two")
    shown = images(analysis.plot_routing(analysed.mean.by_class, classes=[2, 0], class_names=names))
    assert list(shown) == ["two", "zero"]
    lowest, highest = shown["two"].get_clim()
    assert lowest == -highest
    for title, number in (("two", 2), ("zero", 0)):
        expected = stacked(analysed.mean.by_class[number])
        np.testing.assert_array_equal(shown[title].get_array(), expected)


def test_the_confusion_is_shown_as_shares_of_the_true_class():
    axes, _ = plots.plot_confusion(np.array([[3, 1], [0, 0]]), ["a", "b"]).axes
    (image,) = axes.get_images()
    np.testing.assert_array_equal(image.get_array(), [[0.75, 0.25], [0, 0]])


def fitted(folder, epochs=2, initial_epoch=0):
    """A network that was trained with its gates watched, and the rows that were written."""
    x, y = samples()
    model = network()
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy")
    monitor = analysis.GateMonitor(x[:16], folder)
    model.fit(x, y, epochs=epochs, initial_epoch=initial_epoch, verbose=0, callbacks=[monitor])
    return model, read_rows(folder / "gates.csv")


def test_monitor_logs_what_the_gates_do(tmp_path):
    folder = tmp_path / "new" / "folder"
    model, rows = fitted(folder)
    assert [int(row["epoch"]) for row in rows] == [0] * 5 + [1] * 5 + [2] * 5
    np.testing.assert_allclose([float(row["mean_bias"]) for row in rows[:5]], -1.0)
    gates = stacked(analysis.gates(model, samples()[0][:16]))
    biases = stacked(analysis.transform_biases(model))
    last = {key: [float(row[key]) for row in rows[-5:]] for key in list(rows[0])[2:]}
    np.testing.assert_allclose(last["mean_gate"], gates.mean((1, 2)), atol=1e-6)
    np.testing.assert_allclose(last["open_gates"], (gates > 0.5).mean((1, 2)), atol=1e-6)
    np.testing.assert_allclose(last["mean_bias"], biases.mean(1), atol=1e-6)
    assert last["mean_bias"] != [-1.0] * 5

    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder)).Reload()
    kinds = ("mean_gate", "open_gates", "mean_bias")
    tags = {f"{kind}/highway_{i}" for kind in kinds for i in range(5)}
    assert set(events.Tags()["tensors"]) == tags
    assert [event.step for event in events.Tensors("mean_gate/highway_0")] == [0, 1, 2]


def test_monitor_goes_on_with_a_run_that_resumes(tmp_path):
    fitted(tmp_path, epochs=1)
    for first, epochs in ((0, [0, 1]), (1, [0, 1, 2]), (2, [0, 1, 2])):
        _, rows = fitted(tmp_path, epochs=min(first + 1, 2), initial_epoch=first)
        assert [int(row["epoch"]) for row in rows[::5]] == epochs  # the last call trains nothing


def test_arguments_are_checked_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(keras.Model, "predict_on_batch", None)
    for options in ({"class_names": list("abcd")}, {"threshold": 1.5}):
        with pytest.raises(ValueError, match=f"`{next(iter(options))}`"):
            analysis.analyze(network(), *samples(), tmp_path, verbose=0, **options)
