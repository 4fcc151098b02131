"""Is it the gates? Highway A and C beside twins: plain, residual, maxout, or with other biases.

    python -m benchmarks.gates
    python -m benchmarks.gates --layers 32

A twin has other layers where Highway A (11 layers) or C (32) has highway layers; all else is the
same. `plain` is what remains if T = 1, `residual` adds its input to that; `plain, wider` has wider
stages and 7 % more weights than Highway A; `maxout` has as many. All train on images of CIFAR-10
and are measured on 10,000 others of its training set. The learning rate of each kind is chosen on
these, too, with the first seed. Trainings stay in a folder: called again, the benchmark resumes
where it stopped.
"""

import functools
import pathlib

import keras

from benchmarks import rows
from highway_keras import ConvHighway2D, models, training
from highway_keras.layers import Maxout
from highway_keras.models.cifar import cifar_network
from highway_keras.models.parts import AUTHORS_KERNEL
from highway_keras.results import DIVERGED

TRAINING = {11: (25_000, 8), 32: (10_000, 4)}  # images and epochs
WIDER = ((22,) * 3, (44,) * 3, (88,) * 3)
SEEDS = (0, 1, 2)
REACHED = ("loss", "accuracy", "val_accuracy")


def main(arguments=None):
    parser = rows.parser("benchmarks.gates", __doc__, data=True, file=rows.RESULTS / "gates.csv")
    parser.add_argument("--layers", type=int, choices=NETWORKS, default=11, help="default: 11")
    parser.add_argument("--runs", default="runs/gates", help="folder of the trainings")
    options = parser.parse_args(arguments)
    networks = NETWORKS[options.layers]
    for name, made in networks.values():
        if callable(made):
            models.register(name, made, "cifar10", (32, 32, 3), 10)
    first, rates = next(iter(networks)), {}
    for name in networks:
        if name == first or not name.startswith("highway"):
            rates[name] = best_rate(lambda rate, name=name: train(name, rate, SEEDS[0], options))
    for seed in SEEDS:
        for name in networks:
            train(name, rates.get(name, rates[first]), seed, options)


def best_rate(measure):
    """Return the rate that does best: half of it and twice as much do worse, or diverge."""
    found = {rate: measure(rate) for rate in (0.2, 0.1)}
    # Of equals the lower, where a network trains that diverges at all others.
    while (best := max(sorted(found), key=found.get)) in (min(found), max(found)) and best > 1e-4:
        rate = best / 2 if best == min(found) else best * 2
        found[rate] = measure(rate)
    return best


def twin(replacement, build=models.highway_a, **options):
    """Return a factory of a network with other layers in the place of its highway layers."""

    def other(layer):
        if isinstance(layer, ConvHighway2D):
            return replacement(layer, **options)
        return type(layer).from_config(layer.get_config())

    def factory(input_shape, classes, name):
        network = build(input_shape=input_shape, classes=classes, name=name)
        return keras.models.clone_model(network, clone_function=other)

    return factory


def plain(layer, kernel=AUTHORS_KERNEL):
    """Return the layer that a highway layer is if its gates are open, T = 1."""
    options = {"activation": "relu", "kernel_initializer": kernel, "name": layer.name}
    return keras.layers.Conv2D(layer.filters, layer.kernel_size, padding="same", **options)


def residual(layer, layers):
    """Return x + H(x), one of `layers`, where H(x) starts at a share of 1 / layers of a plain H."""
    inputs = keras.Input(layer.input.shape[1:])
    kernel = keras.initializers.VarianceScaling(2 / layers**2, "fan_in", "untruncated_normal")
    outputs = keras.layers.add([inputs, plain(layer, kernel)(inputs)])
    return keras.Model(inputs, outputs, name=layer.name)


def maxout(layer):
    """Return a maxout layer with as many weights as a highway layer; it starts as Fitnets do."""
    options = {"padding": "same", "kernel_initializer": "lecun_uniform"}
    convolution = keras.layers.Conv2D(2 * layer.filters, layer.kernel_size, **options)
    return keras.Sequential([convolution, Maxout(2)], name=layer.name)


def zero_gate_kernels(layer):
    """Return the highway layer with gates that are the sigmoid of their biases at first."""
    return type(layer).from_config({**layer.get_config(), "transform_kernel_initializer": "zeros"})


wider = functools.partial(cifar_network, "wider", WIDER, 250, -1.0)
# By layers and by name in the rows: the registered network, and arguments of its factory or, of a
# twin, its factory. Each kind trains at its own best rate, highway networks at that of the first.
NETWORKS = {
    11: {
        "highway, bias -1": ("highway-a", {"transform_bias": -1.0}),
        "plain": ("highway-a-plain", twin(plain)),
        "plain, wider": ("highway-a-plain-wider", twin(plain, wider)),
        "residual": ("highway-a-residual", twin(residual, layers=6)),
        "maxout": ("highway-a-maxout", twin(maxout)),
        "highway, bias 0": ("highway-a", {"transform_bias": 0.0}),
        "highway, bias -2": ("highway-a", {"transform_bias": -2.0}),
        "highway, bias -3": ("highway-a", {"transform_bias": -3.0}),
        "highway, zero gate kernels": ("highway-a-zero", twin(zero_gate_kernels)),
    },
    32: {
        "highway, bias -3": ("highway-c", {"transform_bias": -3.0}),
        "plain": ("highway-c-plain", twin(plain, models.highway_c)),
        "residual": ("highway-c-residual", twin(residual, models.highway_c, layers=27)),
    },
}


def train(name, rate, seed, options):
    """Train a network unless the folder has it; record its held-out accuracy, 0 if it diverges."""
    model, made = NETWORKS[options.layers][name]
    model_options = {} if callable(made) else made
    images, epochs = TRAINING[options.layers]
    folder = training.RunFolder(
        pathlib.Path(options.runs) / f"{options.layers}-{name}-{rate}-{seed}"
    )
    try:
        result = training.fit(
            model,
            recipe="modern-cifar",
            out=folder.path,
            resume=True,
            seed=seed,
            data_dir=options.data_dir,
            limit=images,
            model_options=model_options,
            learning_rate=rate,
            epochs=epochs,
            validation=0.2,
            dtype_policy="mixed_bfloat16",
            verbose=2,
        )
        reached = {key: round(result.history[-1][key], 4) for key in REACHED}
    except training.TrainingDiverged:
        reached = dict.fromkeys(REACHED, DIVERGED)
    row = {
        "layers": options.layers,
        "network": name,
        "learning_rate": rate,
        "seed": seed,
        "n": 1,
        "parameters": models.create(model, **model_options).count_params(),
        "images": images,
        "epochs": epochs,
        **reached,
    }
    keys = ("layers", "network", "learning_rate", "seed")
    asked = {"runs": [folder], "layers": options.layers}
    rows.record([row], keys, options.out, "benchmarks.gates", **asked)
    return 0.0 if reached["val_accuracy"] == DIVERGED else reached["val_accuracy"]


if __name__ == "__main__":
    main()
