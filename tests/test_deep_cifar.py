"""Highway110 and ResNet110: sizes, start, the solver, and analyses beside an independent NumPy."""

import keras
import numpy as np
import pytest
from keras import ops
from numpy_highway import ACTIVATIONS, convolve
from test_analysis import scores

from highway_keras import analysis, models
from highway_keras.analysis import blocks
from highway_keras.layers import HighwayWrapper, MatchSize
from highway_keras.optimizers import CaffeSGD
from highway_keras.training import get_recipe
from highway_keras.training.recipe_optimizer import from_recipe

SIZES = {"highway110": 2_649_918, "resnet110": 1_727_962}
BLOCKS = {"highway110": 51, "resnet110": 0}  # that the analyses see


def every_layer(model):
    """Yield the layers of a model, of models within it and of wrapped ones."""
    for layer in model.layers:
        if isinstance(layer, HighwayWrapper):
            for part in layer.parts():
                yield from every_layer(part)
        elif isinstance(layer, keras.Model):
            yield from every_layer(layer)
        else:
            yield layer


def small(name, **options):
    keras.utils.set_random_seed(0)
    return models.create(name, blocks=2, **options)


@pytest.mark.parametrize("name", SIZES)
def test_a_network_has_the_sizes_of_2025(name):
    card, model = models.get(name), models.create(name)
    trainable = sum(np.prod(weight.shape) for weight in model.trainable_weights)
    assert trainable == card.parameters == SIZES[name]
    assert (card.dataset, card.classes, card.layers) == ("cifar10", 10, 110)
    assert model.input_shape == (None, 32, 32, 3) and model.output_shape == (None, 10)
    layers = list(every_layer(model))
    kernels = [layer for layer in layers if isinstance(layer, keras.layers.Conv2D)]
    starts = [k.kernel_initializer.get_config() for k in kernels]
    assert {(s["scale"], s["mode"], s["distribution"]) for s in starts} == {
        (2.0, "fan_in", "untruncated_normal")
    }
    products = [np.prod(k.kernel.shape) * np.prod(k.output.shape[1:3]) for k in kernels]
    products.append(np.prod(model.get_layer("predictions").kernel.shape))
    assert sum(products) == card.multiplications
    # On the longest path; a gate is beside its block, a normalized shortcut beside both.
    three = [k for k in kernels if k.kernel_size == (3, 3)]
    assert len(three) + 1 == (2 * 108 + 2 if name == "highway110" else 110)
    assert len(list(blocks.gated_layers(model))) == BLOCKS[name]
    norms = [x for x in layers if isinstance(x, keras.layers.BatchNormalization)]
    assert {(x.momentum, x.epsilon) for x in norms} == {(0.9, 1e-5)}
    assert [x.strides for x in layers if isinstance(x, MatchSize)] == [2, 2] * (not BLOCKS[name])


def give_weights(layer, module):
    """Give the weights of a Keras layer to a module of PyTorch."""
    import torch

    weights = [ops.convert_to_numpy(weight) for weight in layer.trainable_weights]
    axes = {4: (3, 2, 0, 1), 2: (1, 0), 1: (0,)}  # of a convolution, a product, anything else
    for parameter, weight in zip(module.parameters(), weights, strict=True):
        parameter.data = torch.from_numpy(weight.transpose(axes[weight.ndim]).copy())


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("name", SIZES)
def test_a_network_trains_as_in_pytorch(name):
    """The losses of six steps from the same weights, beside the peer of the benchmarks."""
    torch = pytest.importorskip("torch")
    from benchmarks.peers import with_torch

    model, peer = small(name), with_torch.CONVOLUTIONAL[name](blocks=2)
    kinds = torch.nn.Conv2d, torch.nn.BatchNorm2d, torch.nn.Linear
    modules = [module for module in peer.modules() if isinstance(module, kinds)]
    layers = [layer for layer in every_layer(model) if layer.trainable_weights]
    for layer, module in zip(layers, modules, strict=True):
        give_weights(layer, module)
    recipe = get_recipe("skip-2025").override(learning_rate=0.01)
    model.compile(from_recipe(recipe, 1), "sparse_categorical_crossentropy", jit_compile=False)
    settings = {"momentum": 0.9, "weight_decay": 1e-4}
    optimizer = torch.optim.SGD(peer.parameters(), 0.01, **settings)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((16, 32, 32, 3), "float32"), np.arange(16) % 10
    for _ in range(6):
        model.reset_metrics()
        optimizer.zero_grad()
        outputs = peer(torch.from_numpy(x).movedim(-1, 1))
        loss = torch.nn.functional.cross_entropy(outputs, torch.from_numpy(y))
        loss.backward()
        optimizer.step()
        assert model.train_on_batch(x, y) == pytest.approx(loss.item(), rel=1e-4)


@pytest.mark.parametrize("name", SIZES)
def test_the_loss_before_the_first_step_is_near_that_of_chance(name):
    model = small(name)
    x = np.random.default_rng(0).standard_normal((50, 32, 32, 3), "float32")
    outputs = ops.convert_to_numpy(model(x, training=True))
    np.testing.assert_allclose(outputs.sum(-1), 1, rtol=1e-5)
    loss = -np.log(outputs[np.arange(50), np.arange(50) % 10]).mean()
    assert np.log(10) - 0.5 < loss < np.log(10) + 1.5
    other = models.create(name, blocks=1, input_shape=(20, 20, 1), classes=3)
    assert other.output_shape == (None, 3)


def test_gates_start_at_the_beta_of_their_last_normalization():
    biases = analysis.transform_biases(small("highway110"))
    assert list(biases) == [f"stage{n}_highway1" for n in (1, 2, 3)]
    assert all((bias == -6).all() for bias in biases.values())
    opened = analysis.transform_biases(small("highway110", transform_bias=-1.0))
    assert all((bias == -1).all() for bias in opened.values())


def test_gates_compute_in_float32_under_bfloat16():
    model = small("highway110", dtype="mixed_bfloat16")
    wrapper = model.get_layer("stage2_highway1")
    assert wrapper.compute_dtype == "bfloat16" == wrapper.transform.layers[-2].compute_dtype
    assert wrapper.transform.layers[-1].compute_dtype == "float32"


# Beside NumPy


relu, sigmoid = ACTIVATIONS["relu"], ACTIVATIONS["sigmoid"]


def normalize(x, gamma, beta, mean, variance):
    return gamma * (x - mean) / np.sqrt(variance + 1e-5) + beta


class ByHand:
    """The forward pass from a list of weights, in the order in which the layers were called."""

    def __init__(self, model, closed=()):
        self.model, self.closed, self.gates = model, closed, {}

    def weights(self, name):
        layer = self.model.get_layer(name)
        parts = layer.parts() if isinstance(layer, HighwayWrapper) else [layer]
        return [[np.asarray(w, "float64") for w in part.get_weights()] for part in parts]

    def two(self, x, weights, strides=1):
        kernels = weights[0], weights[5]
        norms = weights[1:5], weights[6:10]
        x = relu(normalize(convolve(x, kernels[0])[:, ::strides, ::strides], *norms[0]))
        return normalize(convolve(x, kernels[1]), *norms[1])

    def __call__(self, x):
        (stem,), (norm,) = self.weights("stem"), self.weights("stem_normalization")
        x = relu(normalize(convolve(x, *stem), *norm))
        x = self.highway(x) if self.model.name == "highway110" else self.residual(x)
        kernel, bias = self.weights("predictions")[0]
        z = x.mean(axis=(1, 2)) @ kernel + bias
        z = np.exp(z - z.max(axis=-1, keepdims=True))
        return z / z.sum(axis=-1, keepdims=True)

    def highway(self, x):
        for stage in (1, 2, 3):
            strides, prefix = 1 if stage == 1 else 2, f"stage{stage}_change"
            h = relu(self.two(x, *self.weights(f"{prefix}_block"), strides))
            t = sigmoid(self.two(x, *self.weights(f"{prefix}_transform"), strides))
            ((kernel, *norm),) = self.weights(f"{prefix}_carry")
            x = normalize(convolve(x, kernel)[:, ::strides, ::strides], *norm)
            x = h * t + x * (1 - t)
            name = f"stage{stage}_highway1"
            of_h, of_t = self.weights(name)
            t = sigmoid(self.two(x, of_t)) * (name not in self.closed)
            self.gates[name] = t
            x = relu(self.two(x, of_h)) * t + x * (1 - t)
        return x

    def residual(self, x):
        for stage in (1, 2, 3):
            for index in (0, 1):
                strides, block = 2 if stage > 1 and index == 0 else 1, f"stage{stage}_block{index}"
                h = self.two(x, *self.weights(f"{block}_residual"), strides)
                x = x[:, ::strides, ::strides]
                missing = h.shape[-1] - x.shape[-1]
                x = relu(np.pad(x, ((0, 0), (0, 0), (0, 0), (0, missing))) + h)
        return x


def drawn(name):
    """A small network with gates half open, and normalizations that are not trivial."""
    model = small(name, input_shape=(8, 8, 3), classes=3)
    rng = np.random.default_rng(1)
    for layer in every_layer(model):
        if isinstance(layer, keras.layers.BatchNormalization):
            shape = layer.gamma.shape
            layer.gamma.assign(rng.uniform(0.5, 1.0, shape))
            layer.beta.assign(rng.normal(0, 0.5, shape))
            layer.moving_mean.assign(rng.normal(0, 0.5, shape))
            layer.moving_variance.assign(rng.uniform(0.5, 2.0, shape))
    x = rng.standard_normal((12, 8, 8, 3), "float32")
    return model, x, rng.integers(0, 3, 12)


@pytest.mark.parametrize("name", SIZES)
def test_a_network_computes_what_numpy_computes(name):
    model, x, _ = drawn(name)
    np.testing.assert_allclose(model.predict(x, verbose=0), ByHand(model)(x), atol=1e-5)


@pytest.mark.usefixtures("untraced")
def test_analyses_see_what_numpy_computes():
    model, x, y = drawn("highway110")
    by_hand, names = ByHand(model), [f"stage{n}_highway1" for n in (1, 2, 3)]
    intact = scores(by_hand(x), y)
    gates = analysis.gates(model, x, per_position=True)
    biases = analysis.transform_biases(model)
    for name, gate in by_hand.gates.items():
        np.testing.assert_allclose(gates[name], gate, atol=1e-5)
        np.testing.assert_allclose(biases[name], by_hand.weights(name)[1][7], rtol=1e-6)
    lesions = analysis.lesions(model, x, y, verbose=0)
    assert lesions.layers == tuple(names)
    measured = lesions.intact_loss, lesions.intact_error
    np.testing.assert_allclose(measured, intact, atol=1e-5)
    for number, name in enumerate(names):
        expected = scores(ByHand(model, {name})(x), y)
        measured = lesions.loss[number], lesions.error[number]
        np.testing.assert_allclose(measured, expected, atol=1e-5)
    compacted = analysis.compact(model, x, y, layers=1, verbose=0)
    closed = ByHand(model, set(compacted.closed))(x)
    np.testing.assert_allclose(compacted.model.predict(x, verbose=0), closed, atol=1e-5)
    assert compacted.model.count_params() == compacted.curve[-1]["parameters"]


# The solver of the comparison of 2025


def test_the_penalty_is_of_all_weights_beta_too():
    recipe = get_recipe("skip-2025")
    model = small("highway110", input_shape=(8, 8, 3))
    before = model.get_layer("stage1_highway1").transform.layers[-2].beta.numpy()
    variables = model.trainable_variables
    values = [ops.convert_to_numpy(v) for v in variables]
    optimizer = from_recipe(recipe, steps=10)
    stored = keras.optimizers.serialize(optimizer)
    assert isinstance(keras.optimizers.deserialize(stored), CaffeSGD)
    optimizer.apply([ops.zeros(v.shape) for v in variables], variables)
    for variable, value in zip(variables, values, strict=True):
        np.testing.assert_allclose(variable, (1 - 0.1 * 1e-4) * value, rtol=1e-6)
    assert (before == -6).all()
