"""Every compiled program lowered for CUDA, which JAX does on a machine without a GPU as well.

`KERAS_BACKEND=jax pytest -v -m "slow or not slow" tests/test_cuda.py` lists the programs.
TensorFlow cannot lower for a device that is not there, but what it compiles is written in the same
`keras.ops`.
"""

import functools
import os
import subprocess
import sys

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

ON_JAX = keras.backend.backend() == "jax"
on_jax = pytest.mark.skipif(not ON_JAX, reason="only JAX lowers for a device that is not there")
DEPTH, ROWS, WIDTH, TRIALS, STEPS, BATCH = 3, 4, 5, 2, 2, 2
QUICK = ("mnist-highway-16",)
CONVOLUTIONAL = all_but(QUICK, [n for n in models.list_models() if not n.startswith("thin-")])


@pytest.mark.slow
@pytest.mark.skipif(ON_JAX, reason="runs here already")
def test_this_file_on_jax():
    pytest.importorskip("jax")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-n", "0", "-m", "slow or not slow", __file__],
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    print(done.stdout)
    assert done.returncode == 0 and " passed" in done.stdout


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


@on_jax
@pytest.mark.parametrize("arrays, options", LOOPS.values(), ids=LOOPS)
def test_depth_loop(arrays, options):
    import jax

    def total(*arrays):
        return sum(ops.sum(y) for y in tree.flatten(scan(*arrays, **options)))

    assert lower(functools.partial(scan, **options), *arrays).count("stablehlo.while") == 1
    assert lower(jax.grad(total, (0, 1, 2)), *arrays).count("stablehlo.while") == 2


@on_jax
def test_lesioned_chain():
    stack = HighwayStack(DEPTH)
    stack.build((None, WIDTH))
    lesions = LesionedChain([stack])
    assert lower(lesions, np.ones((ROWS, WIDTH), "float32")).count("stablehlo.while") == 2


# The population


@on_jax
@pytest.mark.parametrize("program", ["train", "measure", "keep"])
@pytest.mark.parametrize("kind", ["highway", "plain", "residual"])
def test_population(kind, program):
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
    }[program]
    text = lower(population.programs[program], *arguments)
    # Over batches, and within a step over the blocks, forward and backward.
    assert text.count("stablehlo.while") == {"train": 3, "measure": 2, "keep": 0}[program]


# Images


def pictures(count, shape):
    rng = np.random.default_rng(0)
    return rng.random((count, *shape), "float32"), np.arange(count) % 10


@on_jax
@pytest.mark.parametrize("steps", [("crop8",), ("mirror",), ("crop8", "mirror")])
def test_augmentation(steps):
    augment = data.augmenter(steps, (32, 32, 3), seed=0)

    def program(states, images):
        return augment.stateless_call([], states, images, training=True)

    states = [v.value for v in augment.non_trainable_variables]
    lower(program, states, pictures(BATCH, (32, 32, 3))[0])


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


@on_jax
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


def only_on_a_cpu():
    """An activation that JAX can lower for no other device."""
    import jax
    from jax.extend import core
    from jax.interpreters import mlir

    primitive = core.Primitive("only_on_a_cpu")
    primitive.def_abstract_eval(lambda z: z)
    mlir.register_lowering(primitive, lambda context, z: [z], platform="cpu")
    assert jax.export.export(jax.jit(primitive.bind), platforms=["cpu"])(np.ones(2, "float32"))
    return primitive.bind


def on_the_host():
    """An activation in Python."""
    import jax

    return lambda z: jax.pure_callback(np.tanh, jax.ShapeDtypeStruct(z.shape, z.dtype), z)


@on_jax
@pytest.mark.parametrize(
    ("activation", "message"),
    [(only_on_a_cpu, "only_on_a_cpu' not found for platform cuda"), (on_the_host, "platform cuda")],
)
def test_what_only_a_cpu_can_run_is_refused(activation, message):
    x, kernel, bias = weights(1)
    with pytest.raises((NotImplementedError, ValueError), match=message):
        lower(lambda *a: scan(*a, kind="plain", activation=activation()), x, kernel, bias)
