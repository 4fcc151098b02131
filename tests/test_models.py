"""The zoo: its names, sizes and shapes as the paper and the authors' definitions state them."""

import functools

import keras
import numpy as np
import pytest

from highway_keras import models
from highway_keras.layers import ConvHighway2D, Highway, HighwayStack

# The weighted layers in order: P plain, H highway. A thin net counts its hidden layers alone.
KINDS = {f"thin-highway-{depth}": f"P{(depth - 1) * 'H'}P" for depth in (10, 20, 50, 100)}
KINDS |= {f"thin-plain-{depth}": (depth + 1) * "P" for depth in (10, 20, 50, 100)}
KINDS |= {f"thin-residual-{depth}": (depth + 1) * "P" for depth in (10, 20, 50, 100)}
KINDS |= {f"mnist-highway-{width}": "P HH HHH HHH P" for width in (16, 32)}
STAGES_B = "PHHHH PHHHHH PHHHHH"
KINDS |= {
    "highway-a": "PHH PHH PHH PP",
    "highway-b": f"{STAGES_B} PP",
    "highway-c": 3 * f"P{9 * 'H'} " + "PP",
    "highway-gap-10": f"{STAGES_B} PP",
    "highway-gap-100": f"{STAGES_B} PP",
    "fitnet-a": 11 * "P",
    "fitnet-b": 19 * "P",
}
BIASES = {"mnist-highway-16": -1, "mnist-highway-32": -1, "highway-a": -1, "highway-b": -2}
BIASES |= {"highway-c": -3, "highway-gap-10": -2, "highway-gap-100": -2}
DEEP = ["highway110", "resnet110"]  # in test_deep_cifar.py
# One of each factory and kind, for what need not be asked of every depth.
QUICK = ["thin-highway-10", "thin-residual-10", "mnist-highway-16", "highway-a", "fitnet-a"]
GATED = (Highway, HighwayStack, ConvHighway2D)


@functools.cache
def network(name):
    return models.create(name)


def layers_of(model, *classes):
    return [layer for layer in model.layers if isinstance(layer, classes)]


def multiplications(model):
    """Every weight of a kernel multiplies once at each position of the layer's output."""
    count = 0
    for layer in model.layers:
        positions = np.prod(layer.output.shape[1:-1], dtype=int)
        kernels = [w for w in layer.weights if w.path.endswith("kernel")]
        count += positions * sum(np.prod(kernel.shape) for kernel in kernels)
    return count


@pytest.mark.parametrize("name", KINDS)
def test_a_network_is_what_its_card_says(name):
    card, model = models.get(name), network(name)
    assert model.count_params() == card.parameters
    weighted = layers_of(model, keras.layers.Dense, keras.layers.Conv2D, *GATED)
    kinds = "".join(
        getattr(layer, "depth", 1) * "H" if isinstance(layer, GATED) else "P" for layer in weighted
    )
    assert kinds == KINDS[name].replace(" ", "")
    assert card.layers == len(kinds) - name.startswith("thin")
    sums = layers_of(model, keras.layers.Add)
    assert len(sums) == name.startswith("thin-residual") * (card.layers - 1)
    assert model.input_shape == (None, *card.input_shape)
    assert model.output_shape == (None, card.classes)
    assert model.name == card.name == name and not model.compiled
    assert multiplications(model) == card.multiplications
    bias = BIASES.get(name, -np.log(card.layers))
    for layer in layers_of(model, *GATED):
        np.testing.assert_allclose(layer.transform_bias, bias, rtol=1e-6)
    family = name.split("-")[0]
    assert card.recipe == ("cifar" if family == "highway" else family)
    assert card.dataset == ("mnist" if family in ("thin", "mnist") else f"cifar{card.classes}")


@pytest.mark.parametrize("name", QUICK)
def test_outputs_are_probabilities_and_names_of_layers_stable(name):
    model = network(name)
    images = np.random.default_rng(0).standard_normal((2, *model.input_shape[1:]))
    outputs = keras.ops.convert_to_numpy(model(images.astype("float32")))
    assert outputs.shape == (2, 10) and (outputs >= 0).all()
    np.testing.assert_allclose(outputs.sum(-1), 1, rtol=1e-5)
    names = [layer.name for layer in model.layers]
    assert names[0] == "images" and names[-1] == "predictions"
    shape = (8, 8, 1) if name.startswith("thin") else (40, 36, 2)
    other = models.create(name, input_shape=shape, classes=3)
    assert other.input_shape == (None, *shape) and other.output_shape == (None, 3)
    assert [layer.name for layer in other.layers] == names


def test_table_1_is_the_authors_definition():
    model = network("mnist-highway-16")
    dropouts = layers_of(model, keras.layers.Dropout)
    assert [layer.rate for layer in dropouts] == [0.2, 0.3, 0.4, 0.5]
    pools = layers_of(model, keras.layers.MaxPooling2D)
    assert [pool.output.shape[1:] for pool in pools] == [(12, 12, 16), (6, 6, 16), (3, 3, 16)]
    assert [pool.pool_size for pool in pools] == [(3, 3), (3, 3), (2, 2)]
    assert model.get_layer("plain").output.shape[1:] == (24, 24, 16)
    assert model.get_layer("predictions").kernel_initializer.stddev == 0.1
    kind = {"scale": 2.0, "mode": "fan_in", "distribution": "untruncated_normal"}
    for name in ("plain", "stage3_highway3"):
        assert model.get_layer(name).kernel_initializer.get_config().items() >= kind.items()


def test_table_3_is_the_authors_definition():
    for name in ("highway-gap-10", "highway-a", "fitnet-a"):  # Table 2 takes it over
        rates = [layer.rate for layer in layers_of(network(name), keras.layers.Dropout)]
        assert rates == 4 * [0.2]
    model = network("highway-gap-10")
    assert model.get_layer("head").output.shape[1:] == (8, 8, 100)
    assert model.get_layer("head").activation is keras.activations.relu
    assert model.get_layer("predictions").kernel_initializer.stddev == 0.05
    assert model.get_layer("stage1_plain").kernel_initializer.stddev == 1.0
    hundred = network("highway-gap-100").get_layer("predictions")
    gated = model.get_layer("stage3_highway1")
    layers = (model.get_layer("stage2_plain"), model.get_layer("head"), hundred, gated.transform)
    for layer in layers:
        start = layer.kernel_initializer.get_config()
        kind = {"scale": 2.0, "mode": "fan_in", "distribution": "untruncated_normal"}
        assert start.items() >= kind.items()


def test_highway_c_alternates_its_kernels():
    model = network("highway-c")
    kernels = [model.get_layer(f"stage2_highway{i}").kernel.shape[:2] for i in range(1, 10)]
    assert kernels == [(1, 1), (3, 3)] * 4 + [(1, 1)]


def test_a_fitnets_start_keeps_the_size_of_a_signal():
    images = np.random.default_rng(0).standard_normal((4, 32, 32, 3), "float32")
    for kernel, factor in (("lecun_uniform", 1), ("he_normal", 2)):
        model = models.create("fitnet-a", kernel_initializer=kernel)
        maps = keras.Model(model.input, model.get_layer("stage1_maxout3").output)(images)
        # Without the border, where the zeros of the padding are.
        moment = float(keras.ops.mean(keras.ops.square(maps[:, 3:-3, 3:-3])))
        assert factor**3 / 2 < moment < factor**3 * 2


@pytest.mark.parametrize("name", QUICK)
def test_activation_and_start_of_kernels_are_arguments(name):
    activation = {} if name == "fitnet-a" else {"activation": "tanh"}
    model = models.create(name, kernel_initializer="zeros", **activation)
    activations = [getattr(layer, "activation", None) for layer in model.layers[:-1]]
    names = {function.__name__ for function in activations if function}
    assert names == ({"tanh"} if activation else {"linear"})
    started = {
        weight.path.split("/")[-2]
        for weight in model.trainable_weights
        if weight.path.endswith("/kernel") and np.any(weight)
    }
    # The authors start this one in a way of their own; of a thin network the paper varies H alone.
    assert started == (set() if name in ("highway-a", "fitnet-a") else {"predictions"})
    gates = [np.any(layer.transform_kernel) for layer in layers_of(model, *GATED)]
    assert set(gates) <= {name.startswith("thin")}


def drawn(shape, dtype=None):
    return keras.random.normal(shape, stddev=0.01, dtype=dtype)


@pytest.mark.parametrize("start", [keras.initializers.RandomNormal(), drawn])
def test_every_kernel_has_its_own_draw(start):
    model = models.create("mnist-highway-16", kernel_initializer=start)
    layers = layers_of(model, ConvHighway2D)[:2]
    kernels = [np.asarray(k) for layer in layers for k in (layer.kernel, layer.transform_kernel)]
    assert len({kernel.tobytes() for kernel in kernels}) == 4


# Arguments


def test_dtype_is_the_policy_of_one_network():
    model = models.create("thin-highway-10", dtype="mixed_bfloat16")
    assert model.get_layer("plain").compute_dtype == "bfloat16"
    assert model.output.dtype == "float32"
    assert keras.config.dtype_policy().name == "float32"
    with pytest.raises(TypeError):  # whatever happens
        models.create("thin-highway-10", dtype="mixed_bfloat16", activaton="tanh")
    assert keras.config.dtype_policy().name == "float32"


def test_average_pooling_takes_images_of_any_size():
    model = models.create("highway-gap-10", input_shape=(None, None, 3))
    assert model(np.zeros((1, 40, 33, 3), "float32")).shape == (1, 10)


def test_depth_ten_is_a_stack_and_less_is_a_chain():
    assert len(layers_of(models.thin_mlp(9), Highway)) == 8
    (stack,) = layers_of(models.thin_mlp(10), HighwayStack)
    assert (stack.name, stack.depth) == ("highway_x9", 9)


# A user's own networks


def small(name, input_shape, classes, units=20, layers=3):
    images = keras.Input(input_shape)
    x = keras.layers.Dense(units)(keras.layers.Flatten()(images))
    for index in range(layers):
        x = Highway(transform_bias_initializer=-1.0, name=f"highway_{index}")(x)
    return keras.Model(images, keras.layers.Dense(classes, "softmax")(x), name=name)


OWN = {"dataset": "digits", "input_shape": (8, 8, 1), "classes": 10, "recipe": "digits"}


def test_an_own_network_is_listed_and_created():
    models.register("own", small, **OWN, layers=2)
    card = models.register("own", small, **OWN, layers=4)  # in its place
    assert models.list_models() == [*KINDS, *DEEP, "own"] and models.get("own") is card
    assert (card.dataset, card.recipe, card.weights) == ("digits", "digits", ())
    assert models.create("own").count_params() == 65 * 20 + 4 * 2 * 420 + 210
    other = models.create("own", layers=1, classes=3, input_shape=(4, 4, 1))
    assert other.output_shape == (None, 3) and len(layers_of(other, Highway)) == 1


# Mistakes


def of(name, **options):
    return lambda: models.create(name, **options)


MISTAKES = [
    (of("thin-highway-11"), ValueError, "Did you mean 'thin-highway-1"),
    (of("vgg16"), ValueError, "thin-highway-10, thin-highway-20,.* fitnet-b"),
    (of("highway-a", dropout=-0.5), ValueError, "dropout"),
    (lambda: models.thin_mlp(0), ValueError, "depth"),
    (lambda: models.thin_mlp(2, "dense"), ValueError, "kind"),
    (lambda: models.thin_mlp(2, "plain", transform_bias=-1.0), ValueError, "transform_bias"),
    (lambda: models.register("thin-plain-10", small, **OWN), ValueError, "name"),
]


@pytest.mark.parametrize(("call", "error", "argument"), MISTAKES)
def test_mistake(call, error, argument):
    with pytest.raises(error, match=argument):
        call()


def test_images_have_their_channels_last(monkeypatch):
    """A convolution would take the height for the channels, without an error."""
    monkeypatch.setattr(keras.config, "image_data_format", lambda: "channels_first")
    with pytest.raises(ValueError, match="image_data_format"):
        models.create("highway-gap-10")
