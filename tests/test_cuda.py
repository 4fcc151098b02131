"""Every compiled program lowered for CUDA, which JAX does on a machine without a GPU as well.

TensorFlow cannot lower for a device that is not there, but what it compiles is written in the same
`keras.ops`.
"""

import functools

import keras
import numpy as np
import pytest
from keras import ops, tree
from test_depth_loop import WIDTH, weights

from highway_keras.layers.depth_loop import apply_blocks

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="only JAX lowers for a device that is not there"
)
DEPTH, TRIALS, STEPS, BATCH = 3, 2, 2, 2


def lower(program, *arguments):
    """The text of `program`, a function of trees of arrays, lowered for CUDA."""
    import jax

    return jax.export.export(jax.jit(program), platforms=["cuda"])(*arguments).mlir_module()


COUPLED, PLAIN = weights(DEPTH, "coupled"), weights(DEPTH, "plain")
LOOPS = {
    "coupled": (COUPLED, {}),
    "plain": (PLAIN, {"kind": "plain"}),
    "rematerialized": (COUPLED, {"activation": "gelu", "rematerialize": True}),
    "gates": (COUPLED, {"return_gate": True}),
}


@pytest.mark.parametrize("arrays, options", LOOPS.values(), ids=LOOPS)
def test_depth_loop(arrays, options):
    import jax

    def total(*arrays):
        return sum(ops.sum(y) for y in tree.flatten(apply_blocks(*arrays, **options)))

    assert lower(functools.partial(apply_blocks, **options), *arrays).count("stablehlo.while") == 1
    assert lower(jax.grad(total, (0, 1, 2)), *arrays).count("stablehlo.while") == 2


@pytest.mark.parametrize("kind", ["highway", "plain"])
def test_population(kind):
    from highway_keras.tuning import HighwayHyperModel
    from highway_keras.tuning.population import Images, Population
    from highway_keras.tuning.weights import draw, initial_state, stacked

    hypermodel = HighwayHyperModel(DEPTH + 1, kind, input_shape=(2, 2, 1), units=WIDTH)
    values = {"activation": "relu", "transform_bias": -1.0, "one_minus_momentum": 0.1}
    values = [{**values, "learning_rate": 0.1, "decay": 0.9}] * TRIALS
    states = [initial_state(draw(hypermodel, v, [0])) for v in values]
    (population,) = Population(kind, values, stacked(states), cohort_size=TRIALS).cohorts
    x = np.random.default_rng(0).random((STEPS * BATCH, 2, 2, 1), "float32")
    images = Images(x, np.arange(len(x)) % 10, BATCH)
    settings = {**population.settings, "rate": np.ones(TRIALS, "float32")}
    fed = settings, images.x, images.y, *images.batches()
    arguments = {"train": (population.state, *fed), "measure": (population.state["weights"], *fed)}
    # Over batches, and within a step over the blocks, forward and backward.
    for program, loops in {"train": 3, "measure": 2}.items():
        text = lower(population.programs[program], *arguments[program])
        assert text.count("stablehlo.while") == loops
