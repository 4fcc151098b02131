"""Is it the gates? Highway A, B and C beside twins: plain, residual, maxout, or with other biases.

    python -m benchmarks.gates
    python -m benchmarks.gates --layers 19
    python -m benchmarks.gates --layers 32

A twin has other layers where Highway A (11 layers) or C (32) has highway layers; all else is the
same. Highway B (19) has other biases only. `plain` is what remains if T = 1, `residual` adds its
input to that; with wider stages, both have 7 % more weights than Highway A; `maxout` has as many.
All train on images of CIFAR-10 and are measured on 10,000 others of its training set. The learning
rate of each kind is chosen on these, too, with the first seed. Trainings stay in a folder: called
again, the benchmark resumes where it stopped.
"""

import functools
import pathlib

import keras

from benchmarks import measurements
from highway_keras import ConvHighway2D, data, models, results, training
from highway_keras.layers import Maxout
from highway_keras.models.parts import AUTHORS_KERNEL

TRAINING = {11: (25_000, 8), 19: (10_000, 4), 32: (10_000, 4)}  # images and epochs
WIDER = {16: 22, 32: 44, 64: 88}  # maps of the convolutions
SEEDS = (0, 1, 2)
REACHED = ("loss", "accuracy", "val_accuracy")


def main(arguments=None):
    parser = measurements.parser("benchmarks.gates", __doc__)
    parser.add_argument("--layers", type=int, choices=NETWORKS, default=11, help="default: 11")
    parser.add_argument("--runs", default="runs/gates", help="folder of the trainings")
    options = parser.parse_args(arguments)
    keras.config.set_dtype_policy("mixed_bfloat16")
    limit, _ = TRAINING[options.layers]
    images = data.load("cifar10", validation=0.2, limit=limit)
    rates = {}
    for name in NETWORKS[options.layers]:
        if name.startswith("highway") and rates:
            rates[name] = next(iter(rates.values()))
        else:
            rates[name] = best_rate(lambda rate, name=name: train(name, images, 0, rate, options))
        for seed in SEEDS:
            train(name, images, seed, rates[name], options)


def best_rate(measure):
    """Return the rate that does best: half of it and twice as much do worse, or diverge."""
    reached = {rate: measure(rate) for rate in (0.2, 0.1)}
    # Of equals the lower, where a network trains that diverges at all others.
    while True:
        best = max(sorted(reached), key=reached.get)
        if min(reached) < best < max(reached) or best < 1e-4:
            return best
        rate = best / 2 if best == min(reached) else best * 2
        reached[rate] = measure(rate)


def train(name, images, seed, rate, options):
    """Train a network unless the folder has it; return its held-out accuracy, 0 if it diverges."""
    layers, (_, epochs) = options.layers, TRAINING[options.layers]
    keras.utils.set_random_seed(seed)
    network = NETWORKS[layers][name]()
    folder = pathlib.Path(options.runs) / f"{layers}-{name}-{rate}-{seed}"
    settings = {"learning_rate": rate, "epochs": epochs, "seed": seed, "resume": True, "verbose": 2}
    try:
        result = training.fit(network, images, "modern-cifar", out=folder, **settings)
        reached = {key: round(result.history[-1][key], 4) for key in REACHED}
    except training.TrainingDiverged:
        reached = dict.fromkeys(REACHED, results.DIVERGED)
    row = {"layers": layers, "network": name, "learning_rate": rate, "seed": seed, "n": 1}
    row |= {"parameters": network.count_params(), "images": len(images.x_train), "epochs": epochs}
    command = f"python -m benchmarks.gates --layers {layers}"
    row |= {**reached, **measurements.of_runs(command, folder)}
    print(row, flush=True)
    if options.out:
        results.update_rows(options.out, [row], ("layers", "network", "learning_rate", "seed"))
    return 0.0 if reached["val_accuracy"] == results.DIVERGED else reached["val_accuracy"]


# Networks


def twin(network, replacement, widths=None):
    """Return a network with other layers in the place of its highway layers.

    `widths` maps the maps of its convolutions to others.
    """

    def other(layer):
        config = layer.get_config()
        if widths and "filters" in config:
            config["filters"] = widths.get(config["filters"], config["filters"])
        if isinstance(layer, ConvHighway2D):
            return replacement(layer, config["filters"])
        return type(layer).from_config(config)

    return keras.models.clone_model(network, clone_function=other)


def plain(layer, filters, kernel=AUTHORS_KERNEL):
    """Return a highway layer with its gates open, T = 1, as a plain layer."""
    options = {"activation": "relu", "kernel_initializer": kernel, "name": layer.name}
    return keras.layers.Conv2D(filters, layer.kernel_size, padding="same", **options)


def residual(layer, filters, layers):
    """Return x + H(x), one of `layers`, where H(x) starts at a share of 1 / layers of a plain H."""
    inputs = keras.Input((*layer.input.shape[1:-1], filters))
    kernel = keras.initializers.VarianceScaling(2 / layers**2, "fan_in", "untruncated_normal")
    outputs = keras.layers.add([inputs, plain(layer, filters, kernel)(inputs)])
    return keras.Model(inputs, outputs, name=layer.name)


def maxout(layer, filters):
    """Return a maxout layer with as many weights as a highway layer; it starts as Fitnets do."""
    options = {"padding": "same", "kernel_initializer": "lecun_uniform"}
    convolution = keras.layers.Conv2D(2 * filters, layer.kernel_size, **options)
    return keras.Sequential([convolution, Maxout(2)], name=layer.name)


def zero_gate_kernels(layer, filters):
    """Return the highway layer with gates that are the sigmoid of their biases at first."""
    return type(layer).from_config({**layer.get_config(), "transform_kernel_initializer": "zeros"})


highway_a = functools.partial(models.create, "highway-a", dropout=0.0)  # as the recipe's
highway_b = functools.partial(models.create, "highway-b", dropout=0.0)
highway_c = functools.partial(models.create, "highway-c", dropout=0.0)
# By layers and by name in the rows. Each kind trains at its own best rate, highway networks at the
# best rate of the first.
NETWORKS = {
    11: {
        "highway, bias -1": lambda: highway_a(transform_bias=-1.0),
        "plain": lambda: twin(highway_a(), plain),
        "plain, wider": lambda: twin(highway_a(), plain, WIDER),
        "residual": lambda: twin(highway_a(), functools.partial(residual, layers=6)),
        "residual, wider": lambda: twin(highway_a(), functools.partial(residual, layers=6), WIDER),
        "maxout": lambda: twin(highway_a(), maxout),
        "highway, bias 0": lambda: highway_a(transform_bias=0.0),
        "highway, bias -2": lambda: highway_a(transform_bias=-2.0),
        "highway, bias -3": lambda: highway_a(transform_bias=-3.0),
        "highway, zero gate kernels": lambda: twin(highway_a(), zero_gate_kernels),
    },
    19: {
        "highway, bias -2": lambda: highway_b(transform_bias=-2.0),
        "highway, bias -1": lambda: highway_b(transform_bias=-1.0),
        "highway, bias -3": lambda: highway_b(transform_bias=-3.0),
    },
    32: {
        "highway, bias -3": lambda: highway_c(transform_bias=-3.0),
        "plain": lambda: twin(highway_c(), plain),
        "residual": lambda: twin(highway_c(), functools.partial(residual, layers=27)),
        "highway, bias -1": lambda: highway_c(transform_bias=-1.0),
        "highway, bias -2": lambda: highway_c(transform_bias=-2.0),
    },
}


if __name__ == "__main__":
    main()
