"""A stack against the chain of `Highway` layers that it stands for."""

import keras
import numpy as np
import pytest
from harness import array, layer_gradients, standard_normal
from selection import all_but

from highway_keras import Highway, HighwayStack, data, models
from highway_keras.layers import MatchSize

OPTIONS = {
    "coupled": {},
    "learned": {"carry": "learned"},
    "tanh": {"activation": "tanh"},
    "tanh-learned": {"activation": "tanh", "carry": "learned"},
    "no-bias": {"use_bias": False},
    "rematerialize": {"rematerialize": True, "activation": "tanh"},
}


def built_stack(depth, width=6, **options):
    stack = HighwayStack(depth, **options)
    stack.build((None, width))
    for seed, weight in enumerate(stack.weights):
        weight.assign(weight + 0.2 * standard_normal(weight.shape, seed))
    return stack


def chain_gradients(stack, x, dy):
    chain = keras.Sequential([keras.Input(x.shape[1:], dtype=str(x.dtype)), *stack.unstack()])
    found = layer_gradients(chain, x, dy)
    by_weight = [found[i :: len(stack.weights)] for i in range(len(stack.weights))]
    per_layer, dx = [list(g)[: stack.depth] for g in by_weight], found[-1]
    return [np.stack(g) for g in per_layer], dx


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-10)])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_outputs_and_gradients_equal_the_chains(options, dtype, tolerance):
    if dtype == "float64" and keras.backend.backend() != "tensorflow":
        pytest.skip("Keras multiplies matrices in float32 on JAX and PyTorch")
    keras.config.set_dtype_policy(dtype)
    stack = built_stack(12, **options)
    x, dy = (standard_normal((5, 3, 6), seed).astype(dtype) for seed in (1, 2))
    chain = keras.Sequential([keras.Input(x.shape[1:], dtype=dtype), *stack.unstack()])
    np.testing.assert_allclose(array(stack(x)), array(chain(x)), rtol=tolerance, atol=tolerance)
    *found, dx = layer_gradients(stack, x, dy)
    expected, expected_dx = chain_gradients(stack, x, dy)
    for one, other in zip([*found, dx], [*expected, expected_dx], strict=True):
        scale = np.abs(other).max()
        np.testing.assert_allclose(one / scale, other / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_from_layers_and_unstack_are_each_others_inverse(options):
    stack = built_stack(4, **options)
    again = HighwayStack.from_layers(stack.unstack(), name="again")
    assert again.name == "again"
    for one, other in zip(again.weights, stack.weights, strict=True):
        np.testing.assert_array_equal(array(one), array(other))


@pytest.mark.parametrize("name", ["hard_sigmoid", "mine", "<lambda>"])
def test_an_activation_of_ones_own_stays_whatever_its_name(name):
    def own(x):
        return keras.ops.clip(0.2 * x + 0.5, 0.0, 1.0)  # Keras's of that name has the slope 1 / 6

    own.__name__ = name
    x = standard_normal((5, 6), 1)
    chain = [Highway(activation=own) for _ in range(3)]
    expected = array(keras.Sequential([keras.Input((6,)), *chain])(x))
    stack = HighwayStack.from_layers(chain)
    np.testing.assert_allclose(array(stack(x)), expected, atol=1e-6)
    again = keras.Sequential([keras.Input((6,)), *stack.unstack()])
    np.testing.assert_allclose(array(again(x)), expected, atol=1e-6)
    keras_own = Highway(activation=keras.activations.hard_sigmoid)
    keras_own.build((None, 6))
    with pytest.raises(ValueError, match="in activation"):
        HighwayStack.from_layers([*chain, keras_own])


def test_a_width_may_be_the_inputs_or_given():
    layers = [Highway(), Highway(5)]
    for layer in layers:
        layer.build((None, 5))
    assert HighwayStack.from_layers(layer for layer in layers).units == 5


def test_the_last_layer_has_the_penalty_on_the_output():
    stack = built_stack(2, activity_regularizer="l2")
    first, last = stack.unstack()
    again = HighwayStack.from_layers([first, last])
    penalties = [
        layer.get_config()["activity_regularizer"] for layer in (stack, first, last, again)
    ]
    assert penalties == [penalties[0], None, penalties[0], penalties[0]] and penalties[0]


def test_gates_are_those_of_the_chain():
    stack, x = built_stack(3), standard_normal((4, 6))
    _, gates = stack(x, return_gate=True)
    for layer, gate in zip(stack.unstack(), array(gates), strict=True):
        x, expected = (array(z) for z in layer(x, return_gate=True))
        np.testing.assert_allclose(gate, expected, atol=1e-6)


@pytest.mark.parametrize(
    "initializer", ["glorot_uniform", "he_normal", "lecun_uniform", "random_normal", "orthogonal"]
)
def test_every_layer_starts_as_a_layer_alone_does(initializer):
    stack = HighwayStack(6, kernel_initializer=initializer)
    stack.build((None, 64))
    alone = Highway(kernel_initializer=initializer)
    alone.build((None, 64))
    kernels = array(stack.kernel)
    for kernel in kernels:
        assert kernel.std() == pytest.approx(array(alone.kernel).std(), rel=0.1)
        if initializer == "orthogonal":
            np.testing.assert_allclose(kernel @ kernel.T, np.eye(64), atol=1e-5)
    assert len({float(kernel[0, 0]) for kernel in kernels}) == len(kernels)


def test_a_seeded_orthogonal_start_differs_by_layer():
    stack = HighwayStack(3, kernel_initializer=keras.initializers.Orthogonal(seed=1))
    stack.build((None, 4))
    assert len({float(kernel[0, 0]) for kernel in array(stack.kernel)}) == 3


def by_its_shape(shape, dtype=None):
    return keras.random.normal(shape, stddev=shape[0] ** -0.5, dtype=dtype)


@pytest.mark.parametrize(
    "initializer", ["lecun_normal", "he_uniform", keras.initializers.LecunNormal(1), by_its_shape]
)
def test_every_bias_starts_as_that_of_a_layer_alone(initializer):
    stack, alone = (
        HighwayStack(8, bias_initializer=initializer),
        Highway(bias_initializer=initializer),
    )
    for layer in (stack, alone):
        layer.build((None, 400))
    biases = array(stack.bias)
    np.testing.assert_allclose(biases.std(-1), array(alone.bias).std(), rtol=0.2)
    assert len({float(bias[0]) for bias in biases}) == len(biases)


def test_a_stack_takes_any_start_that_a_layer_takes():
    for start in (np.eye(4), lambda shape, dtype=None: keras.ops.eye(*shape, dtype=dtype)):
        stack = HighwayStack(3, kernel_initializer=start)
        stack.build((None, 4))
        np.testing.assert_array_equal(array(stack.kernel), [np.eye(4)] * 3)


@pytest.mark.parametrize("name", ["Orthogonal", "GlorotNormal", "TruncatedNormal"])
def test_a_seed_gives_the_same_stack_again(name):
    def kernels(seed):
        stack = HighwayStack(2, kernel_initializer=getattr(keras.initializers, name)(seed=seed))
        stack.build((None, 4))
        return array(stack.kernel)

    np.testing.assert_array_equal(kernels(1), kernels(1))
    first, second = kernels(keras.random.SeedGenerator(1))
    assert not np.array_equal(first, second)


def test_biases_by_layer():
    stack = HighwayStack(3, transform_bias_initializer=[-1, -2, -3])
    stack = HighwayStack.from_config(stack.get_config())
    stack.build((None, 4))
    np.testing.assert_array_equal(array(stack.transform_bias), [[-1] * 4, [-2] * 4, [-3] * 4])


# The start: a stack knows its depth.


@pytest.mark.parametrize("depth", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_stack_of_any_depth_learns_by_default(depth):
    digits = data.load("digits")
    x = digits.x_train.reshape(len(digits.x_train), -1).astype("float32") / 255
    model = keras.Sequential(
        [
            keras.Input(x.shape[1:]),
            keras.layers.Dense(32),
            HighwayStack(depth),
            keras.layers.Dense(digits.classes, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "sparse_categorical_crossentropy")
    losses = model.fit(x, digits.y_train, batch_size=64, epochs=4, verbose=0).history["loss"]
    assert losses[-1] < 0.6  # gates that start at sigmoid(-2) stay at the loss of chance, 2.30


@pytest.mark.parametrize("depth", [1, 9, 1000])
def test_gates_start_by_the_depth(depth):
    stack = HighwayStack(depth, transform_kernel_initializer="zeros")
    _, gates = stack(standard_normal((2, 3)), return_gate=True)
    np.testing.assert_allclose(array(gates), 1 / (depth + 2), rtol=1e-5)


def test_a_stack_starts_as_that_of_the_zoo():
    zoo = models.create("thin-highway-10").get_layer("highway_x9")
    stack = HighwayStack(zoo.depth)
    stack.build((None, 50))
    np.testing.assert_array_equal(array(stack.transform_bias), array(zoo.transform_bias))


def test_a_copy_of_another_depth_starts_by_that_depth():
    config = HighwayStack(5).get_config()
    assert config["transform_bias_initializer"] is None
    copy = HighwayStack.from_config({**config, "depth": 50})
    assert (
        copy.transform_bias_initializer.value == HighwayStack(50).transform_bias_initializer.value
    )


def test_a_start_that_is_given_stays():
    saved_by_0_1_0 = {
        "module": "highway_keras.initializers",
        "class_name": "TransformBias",
        "config": {"value": -2.0},
        "registered_name": "highway_keras>TransformBias",
    }
    for given in (-2.0, saved_by_0_1_0):
        stack = HighwayStack(100, transform_bias_initializer=given)
        stack = HighwayStack.from_config(stack.get_config())
        stack.build((None, 2))
        np.testing.assert_array_equal(array(stack.transform_bias), np.full((100, 2), -2.0))


def test_a_frozen_stack_gives_frozen_layers():
    stack = built_stack(3)
    stack.trainable = False
    layers = stack.unstack()
    assert not any(layer.trainable_weights for layer in layers)
    assert not HighwayStack.from_layers(layers).trainable_weights
    assert built_stack(3).unstack()[0].trainable_weights


def test_a_stack_without_weights_has_no_layers():
    with pytest.raises(ValueError, match=r"Only a built stack .* Received: 'unmade'"):
        HighwayStack(3, name="unmade").unstack()


@pytest.mark.parametrize("odd", [np.nan, np.inf, "low", [1.0], None])
def test_biases_by_layer_are_finite(odd):
    with pytest.raises(ValueError, match="A sequence of biases must have a finite number for"):
        HighwayStack(3, transform_bias_initializer=[-1.0, odd, -2.0])


# Options act on each layer.


def test_penalties_are_those_of_all_layers():
    options = {"kernel_regularizer": "l2", "transform_bias_regularizer": "l1"}
    stack = built_stack(4, **options)
    expected = sum(array(loss) for layer in stack.unstack() for loss in layer.losses)
    assert sum(array(loss) for loss in stack.losses) == pytest.approx(expected, rel=1e-5)


def test_constraints_hold_in_each_layer():
    stack = HighwayStack(3, kernel_constraint=keras.constraints.MaxNorm(0.5))
    model = keras.Sequential([keras.Input((6,)), stack])
    model.compile("sgd", "mse")
    x = standard_normal((8, 6))
    model.fit(x, x, verbose=0)
    norms = np.linalg.norm(array(stack.kernel), axis=1)
    assert norms.max() <= 0.5 + 1e-5
    assert (norms > 0.4).any()


@pytest.mark.parametrize("jit_compile", all_but([True], [False, True]))
def test_fit_equals_the_chains(jit_compile):
    stack, x = built_stack(5), standard_normal((32, 6))
    losses = []
    for layers in (stack.unstack(), [stack]):
        model = keras.Sequential([keras.Input((6,)), *layers])
        model.compile(keras.optimizers.SGD(0.1, 0.9), "mse", jit_compile=jit_compile)
        losses.append(model.fit(x, -x, epochs=3, shuffle=False, verbose=0).history["loss"])
    np.testing.assert_allclose(*losses, rtol=1e-5)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="SavedModel is TensorFlow's")
def test_saved_model(tmp_path):
    import tensorflow as tf

    model = keras.Sequential([keras.Input((6,)), built_stack(5)])
    model.export(tmp_path / "saved", verbose=False)
    x = standard_normal((3, 6))
    loaded = tf.saved_model.load(tmp_path / "saved")
    np.testing.assert_allclose(array(loaded.serve(x)), array(model(x)), atol=1e-6)


BAD = {
    "depth": (lambda: HighwayStack(0), "`depth` must be a positive integer"),
    "units": (
        lambda: HighwayStack(2, 5)(standard_normal((2, 6))),
        "`units` must equal the width of the input",
    ),
    "biases": (
        lambda: HighwayStack(2, transform_bias_initializer=[-1, -2, -3])(standard_normal((2, 6))),
        "must have a number for each layer. Received: 3 numbers for depth=2",
    ),
    "none": (lambda: HighwayStack.from_layers([]), "one or more built `Highway` layers"),
    "unbuilt": (lambda: HighwayStack.from_layers([Highway()]), "built `Highway` layers"),
    "other": (lambda: HighwayStack.from_layers([MatchSize()]), "built `Highway` layers"),
    "options": (
        lambda: HighwayStack.from_layers(
            built_stack(1).unstack() + built_stack(1, activation="tanh").unstack()
        ),
        "apart from initializers. Received: .*_0 differs from .*_0 in activation.$",
    ),
    "widths": (
        lambda: HighwayStack.from_layers(built_stack(1).unstack() + built_stack(1, 5).unstack()),
        "differs from .* in units.$",
    ),
    "penalties": (
        lambda: HighwayStack.from_layers(2 * built_stack(1, activity_regularizer="l2").unstack()),
        "Only the last of `layers` may have an `activity_regularizer`",
    ),
}


@pytest.mark.parametrize("call, message", BAD.values(), ids=BAD)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# The name: the one thing of its own that Keras shows of a layer.


def test_a_summary_shows_the_depth():
    lines = []
    models.create("thin-highway-50").summary(print_fn=lines.append)
    assert "highway_x49 (HighwayStack)" in "".join(lines)


def test_a_plot_shows_the_depth_and_the_activation():
    pytest.importorskip("pydot", reason="plot_model needs it")
    shown = {"show_shapes": True, "show_layer_names": True, "show_layer_activations": True}
    dot = keras.utils.model_to_dot(models.create("thin-highway-50"), **shown).to_string()
    assert "<b>highway_x49</b> (HighwayStack)" in dot and dot.count("Activation: <b>tanh</b>") == 2


def test_the_default_name_tells_the_depth_and_is_new_each_time():
    keras.utils.clear_session()
    inputs = keras.Input((4,))
    x = inputs
    for depth in (50, 50, 3):
        x = HighwayStack(depth)(x)
    names = [layer.name for layer in keras.Model(inputs, x).layers[1:]]
    assert names == ["highway_stack_x50", "highway_stack_x50_1", "highway_stack_x3"]
    assert HighwayStack(5, name="mine").name == "mine"


@pytest.mark.parametrize("name", [None, "highway", "highway_stack_1"])
def test_weights_load_whatever_the_stack_was_called(name, tmp_path):
    """Older versions named it without its depth."""

    def build(name, input_shape, classes, stack=None):
        layers = [keras.layers.Flatten(), HighwayStack(3, name=stack)]
        layers += [keras.layers.Dense(classes, "softmax")]
        return keras.Sequential([keras.Input(input_shape), *layers], name=name)

    stack = {None: None, "highway": "highway_x3"}.get(name)
    models.register("stacked", build, "digits", (2, 2, 1), 3, stack=stack)
    old = build("stacked", (2, 2, 1), 3, name)
    for suffix in (".keras", ".weights.h5"):
        path = tmp_path / f"old{suffix}"
        old.save_weights(path) if suffix == ".weights.h5" else old.save(path)
        new = models.create("stacked", weights=path)
        for one, other in zip(old.get_weights(), new.get_weights(), strict=True):
            np.testing.assert_array_equal(one, other)
