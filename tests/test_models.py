"""The zoo: its names, sizes and shapes as the paper and the authors' definitions state them."""

import functools
import random

import keras
import numpy as np
import pytest
from selection import all_but

from highway_keras import data, models
from highway_keras.cli import command as cli
from highway_keras.layers import ConvHighway2D, Highway, HighwayStack
from highway_keras.models import parts

# Parameters, and the weighted layers from first to last: P plain, H highway. The published sizes;
# for the thin nets (784 + 1) u + (depth - 1) g (u + 1) u + (u + 1) 10, units u = 50, g = 2 products
# a highway layer, and u = 71, g = 1 otherwise.
STAGES_B = "PHHHH PHHHHH PHHHHH"
NETWORKS = {
    "thin-highway-10": (85_660, "P" + 9 * "H" + "P"),
    "thin-highway-20": (136_660, "P" + 19 * "H" + "P"),
    "thin-highway-50": (289_660, "P" + 49 * "H" + "P"),
    "thin-highway-100": (544_660, "P" + 99 * "H" + "P"),
    "thin-plain-10": (102_463, 11 * "P"),
    "thin-plain-20": (153_583, 21 * "P"),
    "thin-plain-50": (306_943, 51 * "P"),
    "thin-plain-100": (562_543, 101 * "P"),
    "thin-residual-10": (102_463, 11 * "P"),
    "thin-residual-20": (153_583, 21 * "P"),
    "thin-residual-50": (306_943, 51 * "P"),
    "thin-residual-100": (562_543, 101 * "P"),
    "mnist-highway-16": (38_986, "P HH HHH HHH P"),
    "mnist-highway-32": (151_690, "P HH HHH HHH P"),
    "highway-a": (236_328, "PHH PHH PHH PP"),
    "highway-b": (2_312_438, f"{STAGES_B} PP"),
    "highway-c": (1_264_502, 3 * ("P" + 9 * "H") + "PP"),
    "highway-gap-10": (2_256_838, f"{STAGES_B} PP"),
    "highway-gap-100": (2_265_928, f"{STAGES_B} PP"),
    "fitnet-a": (251_194, 11 * "P"),
    "fitnet-b": (2_548_602, 19 * "P"),
}
PAPER = {
    "mnist-highway-16": "99.43 (99.40 ± 0.03)",
    "mnist-highway-32": "99.55 (99.54 ± 0.02)",
    "highway-a": "89.18",
    "highway-b": "92.46 (92.28 ± 0.16)",
    "highway-c": "91.20",
    "highway-gap-10": "92.40 (92.31 ± 0.12)",
    "highway-gap-100": "67.76 (67.61 ± 0.15)",
    "fitnet-a": "89.01 (with hints)",
    "fitnet-b": "91.61 (with hints)",
}
TRANSFORM_BIASES = {"mnist-highway-16": -1, "highway-a": -1, "highway-b": -2, "highway-c": -3}
TRANSFORM_BIASES |= {"highway-gap-10": -2}
TRANSFORM_BIASES |= {f"thin-highway-{n}": -np.log(n) for n in (10, 20, 50, 100)}
# One of each factory and kind, for what need not be asked of every depth.
SMALL = ["thin-highway-10", "thin-plain-10", "thin-residual-10", "mnist-highway-16", "highway-a"]
SMALL += ["highway-b", "highway-c", "highway-gap-10", "fitnet-a", "fitnet-b"]
QUICK = ["thin-highway-10", "thin-residual-10", "mnist-highway-16", "highway-a", "fitnet-a"]
GATED = (Highway, HighwayStack, ConvHighway2D)
CONVOLUTIONAL = [name for name in SMALL if not name.startswith("thin")]


@functools.cache
def network(name):
    return models.create(name)


def assert_equal(model, other):
    for one, weight in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(one, weight)


def layers_of(model, *classes):
    return [layer for layer in model.layers if isinstance(layer, classes)]


def test_the_registry_holds_the_fixed_names_in_order():
    assert models.list_models() == list(NETWORKS)


def multiplications(model):
    """Every weight of a kernel multiplies once at each position of the layer's output."""
    count = 0
    for layer in model.layers:
        positions = np.prod(layer.output.shape[1:-1], dtype=int)
        kernels = [w for w in layer.weights if w.path.endswith("kernel")]
        count += positions * sum(np.prod(kernel.shape) for kernel in kernels)
    return count


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_what_its_card_says(name):
    parameters, expected = NETWORKS[name]
    card, model = models.get(name), network(name)
    assert model.count_params() == card.parameters == parameters
    weighted = layers_of(model, keras.layers.Dense, keras.layers.Conv2D, *GATED)
    kinds = "".join(
        getattr(layer, "depth", 1) * "H" if isinstance(layer, GATED) else "P" for layer in weighted
    )
    assert kinds == expected.replace(" ", "")
    # The thin nets' depth is that of their hidden layers; the others count the softmax too.
    assert card.layers == len(kinds) - name.startswith("thin")
    assert model.input_shape == (None, *card.input_shape)
    assert model.output_shape == (None, card.classes)
    assert model.name == card.name == name and not model.compiled
    assert multiplications(model) == card.multiplications
    assert card.paper == PAPER.get(name, "")
    by_family = {"thin": "Figure 1", "mnist": "Table 1", "highway": "Table 2", "fitnet": "Table 2"}
    family, *others = name.split("-")
    table = "" if "residual" in others else "Table 3" if "gap" in others else by_family[family]
    assert card.table == table
    assert card.recipe == ("cifar" if family == "highway" else family)
    assert card.dataset == ("mnist" if family in ("thin", "mnist") else f"cifar{card.classes}")


def test_multiplications_compare_as_the_paper_says():
    """ "Numbers of parameters and operations comparable to those of fitnets", of ~30 M for A."""
    millions = {name: models.get(name).multiplications / 1e6 for name in NETWORKS}
    assert millions["fitnet-a"] == pytest.approx(30, rel=0.01)
    assert millions["highway-a"] == pytest.approx(millions["fitnet-a"], rel=0.05)
    assert millions["highway-c"] < millions["highway-b"] < millions["fitnet-b"]


@pytest.mark.parametrize("name", all_but(QUICK, SMALL))
def test_outputs_are_probabilities_and_names_of_layers_stable(name):
    model = network(name)
    images = np.random.default_rng(0).standard_normal((2, *model.input_shape[1:]))
    outputs = keras.ops.convert_to_numpy(model(images.astype("float32")))
    assert outputs.shape == (2, 10) and (outputs >= 0).all()
    np.testing.assert_allclose(outputs.sum(-1), 1, rtol=1e-5)
    names = [layer.name for layer in model.layers]
    assert [layer.name for layer in models.create(name).layers] == names
    assert names[0] == "images" and names[-1] == "predictions"


@pytest.mark.parametrize(("name", "bias"), TRANSFORM_BIASES.items())
def test_transform_biases_start_negative(name, bias):
    for layer in layers_of(network(name), *GATED):
        np.testing.assert_allclose(layer.transform_bias, bias, rtol=1e-6)


def test_table_1_is_the_authors_definition():
    model = network("mnist-highway-16")
    dropouts = layers_of(model, keras.layers.Dropout)
    assert [layer.rate for layer in dropouts] == [0.2, 0.3, 0.4, 0.5]
    pools = layers_of(model, keras.layers.MaxPooling2D)
    assert [pool.output.shape[1:] for pool in pools] == [(12, 12, 16), (6, 6, 16), (3, 3, 16)]
    assert [pool.pool_size for pool in pools] == [(3, 3), (3, 3), (2, 2)]
    assert model.get_layer("plain").output.shape[1:] == (24, 24, 16)
    assert model.get_layer("predictions").kernel_initializer.stddev == 0.1


def test_table_3_is_the_authors_definition():
    model = network("highway-gap-10")
    assert {layer.rate for layer in layers_of(model, keras.layers.Dropout)} == {0.2}
    assert model.get_layer("head").output.shape[1:] == (8, 8, 100)
    assert model.get_layer("head").activation is keras.activations.relu
    assert model.get_layer("predictions").kernel_initializer.stddev == 0.05
    assert model.get_layer("stage1_plain").kernel_initializer.stddev == 1.0
    hundred = network("highway-gap-100").get_layer("predictions")
    for layer in (model.get_layer("stage2_plain"), model.get_layer("head"), hundred):
        start = layer.kernel_initializer.get_config()
        kind = {"scale": 2.0, "mode": "fan_in", "distribution": "untruncated_normal"}
        assert start.items() >= kind.items()


def test_highway_c_alternates_its_kernels():
    model = network("highway-c")
    kernels = [model.get_layer(f"stage2_highway{i}").kernel.shape[:2] for i in range(1, 10)]
    assert kernels == [(1, 1), (3, 3)] * 4 + [(1, 1)]


@pytest.mark.parametrize("name", ["mnist-highway-32", "highway-b", "highway-gap-10"])
def test_the_authors_kernels_are_normal_with_variance_two_over_fan_in(name):
    layer = network(name).get_layer("stage3_highway1")
    for kernel in map(np.asarray, (layer.kernel, layer.transform_kernel)):
        deviation = np.sqrt(2 / np.prod(kernel.shape[:3]))
        assert kernel.std() == pytest.approx(deviation, rel=0.02)
        # A normal distribution's tails, which Keras's "he_normal" has not.
        assert (np.abs(kernel) > 2 * deviation).mean() == pytest.approx(0.0455, abs=0.006)
        assert np.abs(kernel).max() > 3 * deviation


@pytest.mark.parametrize("name", ["fitnet-a", "fitnet-b"])
def test_a_fitnets_start_keeps_the_size_of_a_signal(name):
    images = np.random.default_rng(0).standard_normal((4, 32, 32, 3), "float32")
    for kernel, factor in ((None, 1), ("he_normal", 2)):
        model = models.create(name, kernel_initializer=kernel)
        maps = keras.Model(model.input, model.get_layer("stage1_maxout3").output)(images)
        # Without the border, where the zeros of the padding are.
        moment = float(keras.ops.mean(keras.ops.square(maps[:, 3:-3, 3:-3])))
        assert factor**3 / 2 < moment < factor**3 * 2


@pytest.mark.parametrize("name", all_but(QUICK, SMALL))
def test_the_start_of_kernels_is_an_argument(name):
    model = models.create(name, kernel_initializer="zeros")
    # The authors start these in a way of their own; of a thin network the paper varies H alone.
    own = {"mnist-highway-16": {"predictions"}, "highway-gap-10": {"stage1_plain", "predictions"}}
    own |= {thin: {"predictions"} for thin in SMALL if thin.startswith("thin")}
    started = {
        weight.path.split("/")[-2]
        for weight in model.trainable_weights
        if weight.path.endswith("/kernel") and np.any(weight)
    }
    assert started == own.get(name, set())
    gates = [np.any(layer.transform_kernel) for layer in layers_of(model, *GATED)]
    assert set(gates) <= {name.startswith("thin")}


def drawn(shape, dtype=None):
    return keras.random.normal(shape, stddev=0.01, dtype=dtype)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("mnist-highway-16", keras.initializers.RandomNormal()),
        ("highway-a", drawn),
    ],
)
def test_every_kernel_has_its_own_draw(name, start):
    layers = layers_of(models.create(name, kernel_initializer=start), ConvHighway2D)[:2]
    kernels = [np.asarray(k) for layer in layers for k in (layer.kernel, layer.transform_kernel)]
    assert len({kernel.tobytes() for kernel in kernels}) == 4


def test_a_seed_draws_what_it_drew_in_earlier_versions():
    """Keras draws a seed where it reads a name: once. Rows name the seeds of their runs."""
    random.seed(0)
    keras.initializers.get("he_normal")
    once = random.getstate()
    random.seed(0)
    parts.unshared("he_normal")
    assert random.getstate() == once


@pytest.mark.parametrize(
    ("activation", "scale"),
    [("relu", 2 / 50), (keras.activations.relu, 2 / 50), ("tanh", 1 / 50)],
)
def test_thin_kernels_are_normalized_for_their_activation(activation, scale):
    layer = models.thin_mlp(2, activation=activation).get_layer("highway_1")
    for kernel in (layer.kernel, layer.transform_kernel):  # limit = sqrt(3 variance)
        assert 0.95 < np.abs(np.asarray(kernel)).max() / np.sqrt(3 * scale) <= 1


# Arguments


@pytest.mark.parametrize("name", all_but(QUICK, CONVOLUTIONAL))
def test_without_the_top(name):
    maps = models.create(name, include_top=False)
    assert len(maps.output_shape) == 4
    images = np.random.default_rng(0).random((2, *maps.input_shape[1:]), "float32")
    outputs = keras.ops.convert_to_numpy(maps(images))
    for pooling, pool in (("avg", np.mean), ("max", np.max)):
        pooled = models.create(name, include_top=False, pooling=pooling)
        pooled.set_weights(maps.get_weights())
        found = keras.ops.convert_to_numpy(pooled(images))
        np.testing.assert_allclose(found, pool(outputs, (1, 2)), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", SMALL)
def test_classes_and_input_shape(name):
    shape = (8, 8, 1) if name.startswith("thin") else (40, 36, 2)
    model = models.create(name, input_shape=shape, classes=3)
    assert model.input_shape == (None, *shape) and model.output_shape == (None, 3)
    assert models.thin_mlp(4, units=7, include_top=False).output_shape == (None, 7)


@pytest.mark.parametrize("name", ["thin-highway-10", "mnist-highway-16", "highway-a"])
def test_logits(name):
    logits, model = models.create(name, classifier_activation=None), network(name)
    logits.set_weights(model.get_weights())
    images = np.random.default_rng(0).random((2, *model.input_shape[1:]), "float32")
    softmax = keras.ops.softmax(logits(images))
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(softmax), keras.ops.convert_to_numpy(model(images)), rtol=1e-4
    )


def test_probabilities_stay_float32_under_mixed_precision():
    keras.config.set_dtype_policy("mixed_bfloat16")
    for softmax in ("softmax", keras.activations.softmax):
        model = models.thin_mlp(3, classifier_activation=softmax)
        assert model.get_layer("highway_1").compute_dtype == "bfloat16"
        assert model.output.dtype == "float32"


@pytest.mark.parametrize("name", all_but(QUICK, SMALL))
def test_weights_come_back_from_a_file(name, tmp_path):
    model = network(name)
    model.save(tmp_path / "saved.keras")
    model.save_weights(tmp_path / "saved.weights.h5")
    for file in tmp_path.iterdir():
        assert_equal(model, models.create(name, weights=file))


@pytest.mark.parametrize("name", ["thin-highway-10", "mnist-highway-16"])
def test_weights_come_back_from_a_network_behind_its_preprocessing(name, tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (20, *models.get(name).input_shape))
    preprocess = data.preprocessor(("scale", "gcn", "mean"), images.astype("uint8"))
    keras.Sequential([preprocess, network(name)]).save(tmp_path / "saved.keras")
    assert_equal(network(name), models.create(name, weights=tmp_path / "saved.keras"))
    with pytest.raises(ValueError, match="weights"):
        models.create("thin-plain-10", weights=tmp_path / "saved.keras")


# On a tensor of the user's, and images of any size, as in `keras.applications`


@pytest.mark.parametrize(
    ("name", "options"), [("thin-highway-10", {}), ("mnist-highway-16", {"include_top": False})]
)
def test_a_network_on_a_tensor_is_part_of_one_model(name, options):
    images = keras.Input((28, 28, 1), dtype="uint8")
    scaled = keras.layers.Rescaling(1 / 256, name="scaled")(images)
    model = models.create(name, weights="mnist", input_tensor=scaled, **options)
    assert model.input is images
    alone = models.create(name, weights="mnist", **options)
    assert [layer.name for layer in model.layers[1:]] == [
        "scaled",
        *(layer.name for layer in alone.layers[1:]),
    ]
    assert model.name == name
    mine = keras.Input((28, 28, 1), name="mine")
    assert models.create(name, input_tensor=mine, **options).input is mine
    x = np.random.default_rng(0).integers(0, 256, (2, 28, 28, 1)).astype("uint8")
    np.testing.assert_allclose(model(x), alone(x / np.float32(256)), rtol=1e-4, atol=1e-6)
    features = keras.Model(model.input, model.layers[3].output)
    assert features(x).shape == (2, *alone.layers[2].output.shape[1:])


@pytest.mark.parametrize(
    ("shape", "pooling"), [((None, None, 1), None), ((40, 36, 1), None), ((None, 28, 1), "avg")]
)
def test_weights_below_the_top_serve_images_of_any_size(shape, pooling):
    options = {"weights": "mnist", "include_top": False, "pooling": pooling}
    features = models.create("mnist-highway-16", input_shape=shape, **options)
    fixed = models.create("mnist-highway-16", **options)
    assert_equal(features, fixed)
    sides = [side or 28 for side in shape[:2]]
    x = np.random.default_rng(0).random((2, *sides, 1), "float32")
    assert features(x).shape[-1] == 16
    if sides == [28, 28]:
        np.testing.assert_allclose(features(x), fixed(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("include_top", [True, False])
def test_global_pooling_takes_images_of_any_size(include_top):
    options = {"pooling": None if include_top else "max", "include_top": include_top}
    model = models.create("highway-gap-10", input_shape=(None, None, 3), **options)
    assert model.input_shape == (None, None, None, 3)
    for sides in ((32, 32), (40, 33)):
        assert model(np.zeros((1, *sides, 3), "float32")).shape == (1, 10 if include_top else 128)


WRONG_INPUTS = [
    ("highway-a", {"input_shape": (None, None, 3)}, "input_shape.* include_top=False"),
    ("highway-a", {"input_shape": (28, 28, 1)}, "input_shape|32"),
    ("highway-gap-10", {"input_shape": (None, 16, 3)}, "32, or None.*input_shape"),
    ("mnist-highway-16", {"input_shape": (8, 8, 1)}, "input_shape.* 12"),
    ("mnist-highway-16", {"weights": "mnist", "input_shape": (30, 30, 1)}, "weights"),
    (
        "thin-highway-10",
        {"weights": "mnist", "include_top": False, "input_shape": (8, 8, 1)},
        "weights.* shapes",
    ),
]


@pytest.mark.parametrize(("name", "options", "message"), WRONG_INPUTS)
def test_mistakes_about_the_input(name, options, message):
    with pytest.raises(ValueError, match=message):
        models.create(name, **options)


def test_a_network_needs_a_floating_point_tensor():
    """It would compute with the gray levels of an integer one, which no weights expect."""
    with pytest.raises(TypeError, match="input_tensor"):
        models.create("highway-a", input_tensor=keras.Input((32, 32, 3), dtype="int8"))


# A user's own networks


def small(name, input_shape, classes, units=20, layers=3):
    images = keras.Input(input_shape)
    x = keras.layers.Dense(units)(keras.layers.Flatten()(images))
    for index in range(layers):
        x = Highway(transform_bias_initializer=-1.0, name=f"highway_{index}")(x)
    return keras.Model(images, keras.layers.Dense(classes, "softmax")(x), name=name)


def register(name="own", factory=small, **changes):
    described = {"dataset": "digits", "input_shape": (8, 8, 1), "classes": 10, "recipe": "digits"}
    return models.register(name, factory, **{**described, **changes})


def test_an_own_network_is_listed_and_created(capsys):
    register(layers=2)
    card = register(layers=4)  # in its place
    assert models.list_models() == [*NETWORKS, "own"] and models.get("own") is card
    assert cli.main(["list"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["own", "digits"]
    assert (card.dataset, card.recipe, card.weights) == ("digits", "digits", ())
    model = models.create("own")
    assert model.name == "own" and model.count_params() == 65 * 20 + 4 * 2 * 420 + 210
    other = models.create("own", layers=1, classes=3, input_shape=(4, 4, 1))
    assert other.output_shape == (None, 3) and len(layers_of(other, Highway)) == 1
    with pytest.raises(ValueError, match="Did you mean 'own"):
        models.create("onw")


@pytest.mark.parametrize(
    ("name", "error"), [("thin-plain-10", ValueError), ("my net", ValueError), (3, TypeError)]
)
def test_names_that_cannot_be_registered(name, error):
    with pytest.raises(error, match="name"):
        register(name=name)
    assert models.list_models() == list(NETWORKS)


def test_a_factory_must_return_a_model_that_can_be_trained():
    register(factory=lambda name, input_shape, classes: keras.layers.Dense(10))
    with pytest.raises(TypeError, match="factory"):
        models.create("own")


# Errors


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("thin-highway-11", "Received: name='thin-highway-11'. Did you mean 'thin-highway-1"),
        ("resnet50", "Known: thin-highway-10, thin-highway-20,.* fitnet-b"),
        (None, "must be a registered network. Received: name=None"),
    ],
)
@pytest.mark.parametrize("function", [models.get, models.create])
def test_unknown_name(function, name, message):
    with pytest.raises(ValueError, match=message):
        function(name)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: models.thin_mlp(0), "depth"),
        (lambda: models.thin_mlp(2, units=-1), "units"),
        (lambda: models.thin_mlp(2, "dense"), "kind"),
        (lambda: models.thin_mlp(2, classes=0), "classes"),
        (lambda: models.thin_mlp(2, include_top="no"), "include_top"),
        (lambda: models.mnist_highway(0), "width"),
        (lambda: models.mnist_highway(include_top=False, pooling="sum"), "pooling"),
        (lambda: models.highway_a(dropout_rate=1.5), "dropout_rate"),
        (lambda: models.highway_gap(kernel_initializer="he"), "initializer"),
    ],
)
def test_bad_arguments(make, argument):
    with pytest.raises(ValueError, match=argument):
        make()


@pytest.mark.parametrize("weights", [np.zeros(2), 5, ["mnist"], b"mnist"])
def test_weights_are_a_name_or_a_path(weights):
    with pytest.raises(TypeError, match="weights"):
        models.create("thin-highway-10", weights=weights)


@pytest.mark.filterwarnings("ignore:Skipping nested container")
@pytest.mark.parametrize("suffix", [".weights.h5", ".keras"])
def test_foreign_and_damaged_weights(suffix, tmp_path):
    def written(model):
        path = tmp_path / f"{model.name}-{model.count_params()}{suffix}"
        model.save(path) if suffix == ".keras" else model.save_weights(path)
        return path

    deeper = written(models.thin_mlp(12, "plain"))
    others = [deeper, written(models.thin_mlp(10, "plain", units=51))]
    others += [written(models.thin_mlp(9, "plain")), written(models.thin_mlp(10, "residual", 70))]
    (cut := tmp_path / f"cut{suffix}").write_bytes(deeper.read_bytes()[:1000])
    (text := tmp_path / f"text{suffix}").write_text("no weights")
    for path in (*others, cut, text):
        with pytest.raises(ValueError, match="weights"):
            models.create("thin-plain-10", weights=path)
    with pytest.raises(FileNotFoundError, match="weights"):
        models.create("thin-plain-10", weights=tmp_path / f"no{suffix}")
