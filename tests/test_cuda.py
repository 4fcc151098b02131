"""Every compiled program lowered for CUDA, which JAX does on a machine without a GPU as well.

TensorFlow cannot lower for a device that is not there, but what it compiles is written in the same
`keras.ops`.
"""

import functools

import keras
import numpy as np
import pytest
from keras import ops, tree
from selection import all_but

from highway_keras import data, models, training
from highway_keras.analysis.lesion_model import LesionedChain
from highway_keras.depth_loop import scan
from highway_keras.layers import HighwayStack
from highway_keras.training.batches import array_batches as batches
from highway_keras.training.engines import jax as epoch_loop
from highway_keras.training.evaluation import compile_classifier
from highway_keras.training.optimizer import from_recipe

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="only JAX lowers for a device that is not there"
)
DEPTH, ROWS, WIDTH, TRIALS, STEPS, BATCH = 3, 4, 5, 2, 2, 2
QUICK = ("mnist-highway-16",)
CONVOLUTIONAL = all_but(QUICK, [n for n in models.list_models() if not n.startswith("thin-")])


def lower(program, *arguments):
    """The text of `program`, a function of trees of arrays, lowered for CUDA."""
    import jax

    return jax.export.export(jax.jit(program), platforms=["cuda"])(*arguments).mlir_module()


# The depth loop


def weights(branches, lead=()):
    """Input, kernel and bias of a chain."""
    shapes = (ROWS, WIDTH), (WIDTH, branches * WIDTH), (branches * WIDTH,)
    depths = (), (DEPTH,), (DEPTH,)
    return [np.ones((*d, *lead, *s), "float32") for d, s in zip(depths, shapes, strict=True)]


LOOPS = {
    "coupled": (weights(2), {}),
    "learned": (weights(3), {"carry": "learned"}),
    "plain": (weights(1), {"kind": "plain"}),
    "residual": (weights(1), {"kind": "residual"}),
    "rematerialized": (weights(2), {"activation": "gelu", "rematerialize": True}),
    "sequence-and-gates": (weights(2), {"return_sequence": True, "return_gate": True}),
    "trials": (weights(2, (TRIALS,)), {"activation": np.ones((TRIALS, 1, 1), "float32")}),
}


@pytest.mark.parametrize("arrays, options", LOOPS.values(), ids=LOOPS)
def test_depth_loop(arrays, options):
    import jax

    def total(*arrays):
        return sum(ops.sum(y) for y in tree.flatten(scan(*arrays, **options)))

    assert lower(functools.partial(scan, **options), *arrays).count("stablehlo.while") == 1
    assert lower(jax.grad(total, (0, 1, 2)), *arrays).count("stablehlo.while") == 2


def test_lesioned_chain():
    stack = HighwayStack(DEPTH)
    stack.build((None, WIDTH))
    lesions = LesionedChain([stack])
    assert lower(lesions, np.ones((ROWS, WIDTH), "float32")).count("stablehlo.while") == 2


# The population


@pytest.mark.parametrize("kind", ["highway", "plain", "residual"])
def test_population(kind):
    from highway_keras.tuning import HighwayHyperModel
    from highway_keras.tuning.population import Images, Population
    from highway_keras.tuning.weights import draw

    hypermodel = HighwayHyperModel(DEPTH + 1, kind, input_shape=(2, 2, 1), units=WIDTH)
    values = {"activation": "relu", "transform_bias": -1.0, "one_minus_momentum": 0.1}
    values = [{**values, "learning_rate": 0.1, "decay": 0.9}] * TRIALS
    weights = [draw(hypermodel, v, [0]) for v in values]
    (population,) = Population(kind, values, weights, size=TRIALS).cohorts
    images = Images(*pictures(STEPS * BATCH, (2, 2, 1)), BATCH)
    settings = {**population.settings, "rate": np.ones(TRIALS, "float32")}
    fed = settings, images.x, images.y, *images.batches()
    arguments = {
        "train": (population.state, *fed),
        "measure": (population.state["weights"], *fed),
        "keep": (population.best, population.state["weights"], np.ones(TRIALS, "float32")),
    }
    # Over batches, and within a step over the blocks, forward and backward.
    for program, loops in {"train": 3, "measure": 2, "keep": 0}.items():
        text = lower(population.programs[program], *arguments[program])
        assert text.count("stablehlo.while") == loops


# Images


def pictures(count, shape):
    rng = np.random.default_rng(0)
    return rng.random((count, *shape), "float32"), np.arange(count) % 10


class Lowered(BaseException):
    pass


def lower_epoch(model, x, y):
    """The text of the epoch loop that `fit` would run."""
    epoch_loop.install_train_function(model, x, y, (STEPS, BATCH, 0))
    epoch = model.train_function

    def train_function(state, batches):
        raise Lowered(lower(lambda state: epoch(state, None), state))

    model.train_function = train_function
    with pytest.raises(Lowered) as lowered:
        model.fit(
            batches(x, y, STEPS, BATCH, seed=0), steps_per_epoch=STEPS, shuffle=False, verbose=0
        )
    return lowered.value.args[0]


@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_epoch_loop(name, monkeypatch):
    monkeypatch.setattr(epoch_loop, "slow_in_a_loop", lambda model: False)
    card = models.get(name)
    recipe, network = training.get_recipe(card.recipe), card.build()
    augment = data.augmenter(recipe.augmentation, card.input_shape, seed=0)
    model = keras.Sequential([augment, network]) if augment else network
    compile_classifier(model, from_recipe(recipe, STEPS), STEPS)
    text = lower_epoch(model, *pictures(STEPS * BATCH, card.input_shape))
    # Each convolution, and its gradients with respect to kernel and input; the images need none.
    convolutions = sum(len(w.shape) == 4 for w in network.trainable_weights)
    assert text.count("stablehlo.convolution") >= 2 * convolutions
    assert "stablehlo.while" in text


# What must not pass


def test_what_only_a_cpu_can_run_is_refused():
    import jax

    def on_the_host(z):
        return jax.pure_callback(np.tanh, jax.ShapeDtypeStruct(z.shape, z.dtype), z)

    x, kernel, bias = weights(1)
    with pytest.raises((NotImplementedError, ValueError), match="platform cuda"):
        lower(lambda *a: scan(*a, kind="plain", activation=on_the_host), x, kernel, bias)
