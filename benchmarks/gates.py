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

from benchmarks import measurements
from highway_keras import ConvHighway2D, data, models, results, training
from highway_keras.layers import Maxout
from highway_keras.models.parts import AUTHORS_KERNEL

TRAINING = {11: (25_000, 8), 32: (10_000, 4)}  # images and epochs
WIDER = {16: 22, 32: 44, 64: 88}  # maps of the convolutions
SEEDS = (0, 1, 2)
REACHED = ("loss", "accuracy", "val_accuracy")


def main(arguments=None):
    parser = measurements.parser("benchmarks.gates", __doc__)
    parser.add_argument("--layers", type=int, choices=NETWORKS, default=11, help="default: 11")
    parser.add_argument("--runs", default="runs/gates", help="folder of the trainings")
    options = parser.parse_args(arguments)
    networks, (limit, _) = NETWORKS[options.layers], TRAINING[options.layers]
    images = data.load("cifar10", validation=0.2, limit=limit)
    first, rates = next(iter(networks)), {}
    for name in networks:
        if name == first or not name.startswith("highway"):
            rates[name] = best_rate(lambda rate, name=name: train(name, images, 0, rate, options))
    for seed in SEEDS:
        for name in networks:
            train(name, images, seed, rates.get(name, rates[first]), options)


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
    registered = f"gates-{layers}-{name.replace(', ', '-').replace(' ', '-')}"
    models.register(registered, NETWORKS[layers][name], "cifar10", (32, 32, 3), 10)
    folder = pathlib.Path(options.runs) / f"{layers}-{name}-{rate}-{seed}"
    settings = {"learning_rate": rate, "epochs": epochs, "dtype_policy": "mixed_bfloat16"}
    settings |= {"seed": seed, "resume": True, "verbose": 2}
    try:
        result = training.fit(registered, images, "modern-cifar", out=folder, **settings)
        reached = {key: round(result.history[-1][key], 4) for key in REACHED}
    except training.TrainingDiverged:
        reached = dict.fromkeys(REACHED, results.DIVERGED)
    row = {"layers": layers, "network": name, "learning_rate": rate, "seed": seed, "n": 1}
    row["parameters"] = models.create(registered).count_params()
    row |= {"images": len(images.x_train), "epochs": epochs, **reached}
    row |= measurements.of_runs(f"python -m benchmarks.gates --layers {layers}", folder)
    print(row, flush=True)
    if options.out:
        results.update_rows(options.out, [row], ("layers", "network", "learning_rate", "seed"))
    return 0.0 if reached["val_accuracy"] == results.DIVERGED else reached["val_accuracy"]


# Networks


def registered_network(name, **options):
    """Return the factory of a network of the zoo, with the arguments on its card."""
    card = models.get(name)
    return functools.partial(card.factory, **{**card.arguments, **options})


def twin(replacement, of="highway-a", widths=None, **options):
    """Return a factory of a network with other layers in the place of its highway layers.

    `widths` maps the maps of its convolutions to others.
    """
    widths = widths or {}

    def other(layer):
        config = layer.get_config()
        if "filters" in config:
            config["filters"] = widths.get(config["filters"], config["filters"])
        if isinstance(layer, ConvHighway2D):
            return replacement(layer, config["filters"], **options)
        return type(layer).from_config(config)

    def factory(input_shape, classes, name):
        build = registered_network(of)
        network = build(input_shape=input_shape, classes=classes, name=name)
        return keras.models.clone_model(network, clone_function=other)

    return factory


def plain(layer, filters, kernel=AUTHORS_KERNEL):
    """Return a highway layer with its gates open, T = 1, as a plain layer."""
    options = {"activation": "relu", "kernel_initializer": kernel, "name": layer.name}
    return keras.layers.Conv2D(filters, layer.kernel_size, padding="same", **options)


def residual(layer, filters, layers):
    """Return x + H(x), one of `layers`, where H(x) starts at a share of 1 / layers of a plain H."""
    inputs = keras.Input(layer.input.shape[1:])
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


# By layers and by name in the rows: the factory of a network. Each kind trains at its own best
# rate, highway networks at the best rate of the first.
NETWORKS = {
    11: {
        "highway, bias -1": registered_network("highway-a", transform_bias=-1.0),
        "plain": twin(plain),
        "plain, wider": twin(plain, widths=WIDER),
        "residual": twin(residual, layers=6),
        "maxout": twin(maxout),
        "highway, bias 0": registered_network("highway-a", transform_bias=0.0),
        "highway, bias -2": registered_network("highway-a", transform_bias=-2.0),
        "highway, bias -3": registered_network("highway-a", transform_bias=-3.0),
        "highway, zero gate kernels": twin(zero_gate_kernels),
    },
    32: {
        "highway, bias -3": registered_network("highway-c", transform_bias=-3.0),
        "plain": twin(plain, "highway-c"),
        "residual": twin(residual, "highway-c", layers=27),
    },
}


if __name__ == "__main__":
    main()
