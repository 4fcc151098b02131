"""The live page: its numbers beside Keras's, what its controls do, and what it refuses."""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess

import keras
import numpy as np
import pytest
from harness import shaken

from highway_keras import ConvHighway2D, Highway, HighwayStack, analysis, data
from highway_keras.analysis.blocks import observe
from highway_keras.live import live_page
from highway_keras.live import page as examples

pytestmark = pytest.mark.usefixtures("untraced")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
in_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium to run the page")
NODE = shutil.which("node")
in_node = pytest.mark.skipif(NODE is None, reason="needs Node.js to run the page's scripts")
PASSES = """
const html = require("fs").readFileSync(process.argv[1], "utf8");
const run = require("vm").runInThisContext;
const text = (id) => html.match(new RegExp(`id="${id}">([^]*?)</script>`))[1];
const scripts = [...html.matchAll(/<script>([^]*?)<.script>/g)].map((found) => found[1]);
scripts.slice(0, -1).forEach((script) => run(script)); // the last one connects the controls
run(`const description = ${text("description")}, examples = decodeExamples(description);
const network = new Network(description);`);
const pass = run(`(index, closed) => {
  const { probabilities, blocks } = network.run(examples[index].pixels, new Set(closed));
  return [probabilities, ...["gate", "output"].map((kind) => blocks.map((b) => b[kind].values))];
}`);
const plain = (key, value) => (value instanceof Float32Array ? [...value] : value);
console.log(JSON.stringify(JSON.parse(process.argv[2]).map((one) => pass(...one)), plain));
"""


def thin():
    stack = HighwayStack(9, name="highway_x9")
    layers = [
        keras.layers.Rescaling(1 / 255),
        keras.layers.Flatten(),
        keras.layers.Dense(50, "relu"),
    ]
    return shaken(as_network(*layers, stack, keras.layers.Dense(10, "softmax")))


def convolutional():
    """A network inside a network, after its preprocessing."""
    gated = [ConvHighway2D(8, 3, name=f"stage{i}_highway1") for i in (1, 2)]
    stem = keras.layers.Conv2D(8, 5, activation="relu")
    pools = [keras.layers.MaxPooling2D(3, 2) for _ in gated]
    layers = [stem, gated[0], pools[0], gated[1], pools[1], keras.layers.Dropout(0.5)]
    top = [keras.layers.Flatten(), keras.layers.Dense(10, "softmax")]
    return shaken(as_network(keras.layers.Rescaling(1 / 255), as_network(*layers, *top)))


def as_network(*layers):
    return keras.Sequential([keras.Input((28, 28, 1)), *layers])


def every_option():
    """Every kind of layer and option that the page knows and the other networks do not use."""
    layers, learned = keras.layers, {"carry": "learned", "activation": "tanh"}
    return keras.Sequential(
        [
            keras.Input((15, 13, 3)),
            data.preprocessor(("gcn", "mean"), pictures((15, 13, 3))[0]),
            layers.Rescaling(1 / 2, offset=-1.0),
            data.Mirror(),
            layers.Conv2D(6, (3, 5), strides=2, padding="same", activation="sigmoid"),
            ConvHighway2D(6, (3, 1), transform_kernel_size=(1, 3), **learned),
            ConvHighway2D(6, 3, dilation_rate=2, use_bias=False),
            layers.AveragePooling2D(3, 2, padding="same"),
            layers.Conv2D(5, 2, dilation_rate=2, use_bias=False),
            layers.Activation("relu"),
            ConvHighway2D(5, 1, activation="linear"),
            layers.GlobalMaxPooling2D(keepdims=True),
            layers.GlobalAveragePooling2D(),
            Highway(**learned),
            HighwayStack(3, use_bias=False),
            layers.Dense(4),
            layers.Activation("softmax"),
        ]
    )


def pictures(shape, classes=4):
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (24, *shape)).astype("uint8")
    return images, random.integers(0, classes, 24)


def digits():
    """Images like those of MNIST: strokes in the middle of a dark square."""
    images, labels = pictures((28, 28, 1), classes=10)
    images[:, :4] = images[:, 24:] = images[:, :, :5] = images[:, :, 22:] = 0
    return images, labels


NETWORKS = {
    "convolutional": (convolutional, digits),
    "every option": (lambda: shaken(every_option()), lambda: pictures((15, 13, 3))),
}


@pytest.fixture(scope="module", params=NETWORKS)
def opened(request, tmp_path_factory):
    """A network, images, and its page."""
    keras.utils.set_random_seed(0)
    make_network, make_images = NETWORKS[request.param]
    network, (images, labels) = make_network(), make_images()
    path = tmp_path_factory.mktemp("live") / "live.html"
    live_page(network, images, labels, path)
    return network, images[examples.choose(labels)], path


def in_page(path, *passes):
    """What the page finds for each (number of an image, closed): probabilities, gates, outputs."""
    call = [NODE, "-e", PASSES, path, json.dumps(passes)]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@in_node
def test_values_are_keras_s(opened):
    network, images, path = opened
    some = images[:3]
    probabilities = network.predict(some, verbose=0)
    gates = list(analysis.gates(network, some, per_position=True).values())
    outputs = list(analysis.block_outputs(network, some, per_position=True).values())
    for index, found in enumerate(in_page(path, *((index, []) for index in range(3)))):
        np.testing.assert_allclose(found[0], probabilities[index], atol=1e-4, rtol=0)
        for ours, keras_s in zip(found[1:], (gates, outputs), strict=True):
            for block, expected in zip(ours, keras_s, strict=True):
                np.testing.assert_allclose(block, expected[index].ravel(), atol=1e-4, rtol=0)


@in_node
def test_closed_layers_are_layers_whose_gate_is_0(opened):
    network, images, path = opened
    depth = len(analysis.transform_biases(network))
    closed = {0, depth - 2, depth - 1}
    with contextlib.ExitStack() as lesions:
        for block in (observe(network)[1][number] for number in closed):
            lesions.enter_context(analysis.closed(block.layer, block.index))
        (expected,) = network.predict(images[:1], verbose=0)
    ((probabilities, gates, _),) = in_page(path, (0, sorted(closed)))
    np.testing.assert_allclose(probabilities, expected, atol=1e-4, rtol=0)
    assert {n for n, gate in enumerate(gates) if not any(gate)} >= closed


FITTED = """
const run = require("vm").runInThisContext;
run(require("fs").readFileSync(process.argv[1], "utf8"));
const fitted = run("(fields) => Object.assign(Object.create(Pad.prototype), fields).fitted()");
console.log(JSON.stringify([...fitted(JSON.parse(process.argv[2]))]));
"""


@in_node
def test_a_drawing_on_white_paper_is_the_negative_of_one_on_black():
    drawn = np.zeros((12, 12), int)
    drawn[1:4, 2] = drawn[3, 2:5] = 250
    seen = []
    for paper in (0, 255):
        fields = {"height": 12, "width": 12, "channels": 1, "guide": [2, 2, 10, 10]}
        fields |= {"paper": paper, "pixels": np.abs(paper - drawn).ravel().tolist()}
        script = pathlib.Path(examples.__file__).with_name("pad.js")
        done = subprocess.run([NODE, "-e", FITTED, script, json.dumps(fields)], capture_output=True)
        seen.append(np.abs(paper - np.array(json.loads(done.stdout))).reshape(12, 12))
    assert np.ptp(np.argwhere(seen[0] > 100), axis=0).max() == 7
    np.testing.assert_allclose(*seen, atol=1)


# The page as one uses it


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=CHROMIUM)


@pytest.fixture
def tab(chromium):
    """A tab whose scripts raise no errors and which logs none."""
    tab, errors = chromium.new_page(), []
    tab.on("pageerror", lambda error: errors.append(error))
    tab.on("console", lambda entry: errors.append(entry) if entry.type == "error" else None)
    yield tab
    assert errors == []


@in_chromium
def test_a_page_opens(opened, tab):
    tab.goto(opened[2].as_uri())
    assert value(tab, "page.found.blocks.length") == len(analysis.transform_biases(opened[0]))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    images, labels = digits()
    live_page(thin(), images, labels, folder / "live.html")
    return folder / "live.html"


@pytest.fixture
def live(tab, page):
    """The tab with a page in it."""
    tab.goto(page.as_uri())
    return tab


FRAME = "new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"


def value(live, expression):
    """The value of a JavaScript expression once all that has changed is drawn."""
    live.evaluate(FRAME)
    return live.evaluate(expression)


def text(live, id):
    return value(live, f"document.getElementById('{id}').textContent")


def draw(live, *points):
    """Draw a line through points of the pad, given as shares of its width and height."""
    box = live.locator("#pad").bounding_box()
    for number, (x, y) in enumerate(points):
        live.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        if not number:
            live.mouse.down()
    live.mouse.up()


@in_chromium
def test_a_finger_reads_a_cell_before_it_closes_a_row(chromium, page):
    tab = chromium.new_page(has_touch=True)
    tab.goto(page.as_uri())
    y = value(tab, "(row => row.top + row.height / 2)(page.maps[0].rows[1])")
    for closed in ([], [1], []):
        tab.tap("#outputs", position={"x": 50, "y": y})
        assert value(tab, "page.selected?.layer") == 1
        assert value(tab, "[...page.closed]") == closed


@in_chromium
def test_a_drawing_is_seen_as_the_data_set_is_made(live):
    """Scaled to the box of the digits, 20 pixels high, with its center of mass in the middle."""
    before = text(live, "chart"), value(live, "[...page.found.blocks[0].gate.values]")
    live.click("#clear")
    assert text(live, "caption") == "Draw here: fill the box."
    assert value(live, "page.pad.isEmpty") and not value(live, "page.intact")
    draw(live, (0.1, 0.1), (0.1, 0.3), (0.2, 0.3))
    assert text(live, "caption").startswith("Your drawing")
    assert text(live, "chart") != before[0]
    assert value(live, "[...page.found.blocks[0].gate.values]") != before[1]
    drawn = np.array(value(live, "[...page.pad.pixels]")).reshape(28, 28)
    seen = np.array(value(live, "[...page.pad.fitted()]")).reshape(28, 28)
    assert np.ptp(np.argwhere(drawn > 100), axis=0).max() < 10
    assert 17 <= np.ptp(np.argwhere(seen > 100), axis=0).max() <= 21
    rows, columns = np.indices((28, 28)) + 0.5
    middle = [(seen * place).sum() / seen.sum() for place in (rows, columns)]
    np.testing.assert_allclose(middle, 14, atol=0.5)
    answer = value(live, "[...page.found.probabilities]")
    by_hand = value(live, "[...page.network.run(page.pad.fitted()).probabilities]")
    assert answer == by_hand
    live.click("#center")
    np.testing.assert_array_equal(value(live, "[...page.pad.pixels]"), seen.ravel())
    live.keyboard.press("Delete")
    draw(live, (0.3, 0.5), (0.7, 0.5))
    live.keyboard.press("e")
    draw(live, (0.2, 0.47), (0.8, 0.47), (0.8, 0.53), (0.2, 0.53))
    assert value(live, "page.pad.isEmpty")


@in_chromium
def test_keys(live):
    for key, number in (("ArrowRight", 2), ("ArrowLeft", 1), ("ArrowLeft", 20)):
        live.keyboard.press(key)
        assert text(live, "caption").startswith(f"Image {number} of 20")
    live.focus("#gates")
    for key in ("ArrowDown", "ArrowDown", "Alt+ArrowUp", "Enter"):
        live.keyboard.press(key)
    assert value(live, "[...page.closed]") == [2]
    assert text(live, "readout").startswith("Layer 3 (highway_2), closed")
    live.keyboard.press("o")
    assert value(live, "page.closed.size") == 0


@in_chromium
def test_closing_layers(live):
    live.fill("#closing", "3")
    assert sorted(value(live, "[...page.closed]")) == [6, 7, 8]
    assert text(live, "closed-count") == "3 of 9 closed"
    assert text(live, "summary").startswith("With 3 layers closed the network says")
    y = value(live, "(row => row.top + row.height / 2)(page.maps[0].rows[1])")
    for closed in ([1, 6, 7, 8], [6, 7, 8]):
        live.click("#outputs", position={"x": 50, "y": y})
        assert sorted(value(live, "[...page.closed]")) == closed
    live.click("#open")
    assert text(live, "closed-count") == "0 of 9 closed"


# What is written


def description(page):
    found = re.search(r'id="description">(.*?)</script>', page.read_text(encoding="utf-8"))
    return json.loads(found[1])


def test_the_page_loads_nothing(page):
    content = page.read_text(encoding="utf-8")
    assert not re.search(r"\b(src|href)=|url\(|@import|https?:", content)
    assert "default-src 'none'" in content


def test_names_cannot_break_the_page(tmp_path):
    names = ["</script><b>"] + [f"class {i}" for i in range(1, 10)]
    images, labels = digits()
    file = tmp_path / "live.html"
    live_page(thin(), images, labels, file, names, "<title> & $co")
    assert description(file)["classes"] == names
    assert "&lt;title&gt; &amp; $co" in file.read_text(encoding="utf-8")


def test_the_box_of_the_digits_and_the_scales(page, tmp_path):
    assert (description(page)["guide"], description(page)["paper"]) == ([4, 5, 24, 22], 0)
    (images, labels), path = digits(), tmp_path / "live.html"
    live_page(thin(), 255 - images, labels, path)
    assert (description(path)["guide"], description(path)["paper"]) == ([4, 5, 24, 22], 255)
    assert examples.drawn_box(np.zeros((2, 8, 8, 1))) is None
    assert examples.drawn_box(np.zeros((2, 8, 8, 3))) is None
    assert examples.scale([np.full(1000, 0.01)], reach=1) == {"reach": 1, "power": 0.3}
    assert examples.scale([np.linspace(-3, 3, 1001)])["reach"] == 3
    assert examples.scale([np.zeros(5)]) == {"reach": 1, "power": 1}


# What is refused


def classifier(*layers):
    top = [keras.layers.Dense(5), Highway(), keras.layers.Dense(10, activation="softmax")]
    return keras.Sequential([keras.Input((8, 8, 1)), *layers, keras.layers.Flatten(), *top])


def branched():
    x = inputs = keras.Input((8, 8, 1))
    x = keras.layers.Dense(5)(keras.layers.Flatten()(x))
    x = keras.layers.Add(name="sum")([x, Highway()(x)])
    return keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(x))


def relu(x):  # a user's function with the name of Keras's
    return keras.ops.maximum(x, -1.0)


def quantized():
    model = classifier()
    model.quantize("int8")
    return model


def top(units):
    return keras.layers.Dense(units, activation="softmax")


FIRST = {"data_format": "channels_first"}
REFUSED = {
    "layer": (lambda: classifier(keras.layers.BatchNormalization(name="norm")), "'norm'"),
    "own": (lambda: classifier(keras.layers.Dense(2, relu, name="own")), "'relu'.*'own'"),
    "channels": (lambda: classifier(keras.layers.Flatten(**FIRST)), "channels_first.*'flatten"),
    "quantized": (quantized, "quantized"),
    "branches": (branched, "chains.*'sum'"),
    "no softmax": (lambda: as_network(keras.layers.Flatten(), Highway()), "softmax.*'highway"),
    "large": (lambda: as_network(keras.layers.Flatten(), top(2000), top(10)), "4 MiB"),
}


def refused(message, model, path, x=None, y=(0, 1), **options):
    x = np.zeros((2, *model.input_shape[1:]), "uint8") if x is None else x
    with pytest.raises(ValueError, match=message):
        live_page(model, x, np.array(y), path / "live.html", **options)
    assert not list(path.iterdir())


@pytest.mark.filterwarnings("ignore:.* does not have a `quantize` method")
@pytest.mark.parametrize("name", REFUSED)
def test_networks_that_are_refused(tmp_path, name):
    make, message = REFUSED[name]
    refused(message, make(), tmp_path)


def test_names_and_labels_of_other_classes(tmp_path):
    refused("`class_names`", classifier(), tmp_path, class_names=[*"abcdefgha", " "])
    refused("`y`", classifier(), tmp_path, y=[3, 10])


def test_images_that_are_no_gray_levels_are_refused(tmp_path):
    images, labels = pictures((8, 8, 1), classes=3)
    images[0, 0, 0] = 255
    model, path = classifier(), tmp_path / "live.html"
    scaled = images / 256, images > 99, np.where(images > 99, np.nan, images)
    for x in (*scaled, images.astype("int32") + 1):
        refused("`x` of a live page must hold gray levels", model, tmp_path, x, labels)
    live_page(model, images.astype("float32"), labels, path)
    as_floats = path.read_bytes()
    live_page(model, images, labels, path)
    assert path.read_bytes() == as_floats
