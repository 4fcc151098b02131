"""Is it the gates? Highway A beside twins: plain, maxout, and with gates that start otherwise.

    python -m benchmarks.gates

A twin has other layers where Highway A has highway layers; all else is the same. `plain` is what
remains if T = 1; `plain, wider` has wider stages and 7 % more weights than Highway A; `maxout` has
as many. All train on 25,000 images of CIFAR-10 and are measured on 10,000 others of its training
set. The learning rate of each kind is chosen on these, too, with the first seed. Trainings stay in
a folder: called again, the benchmark resumes where it stopped.
"""

import pathlib

import keras

from benchmarks import rows
from highway_keras import ConvHighway2D, models, training
from highway_keras.layers import Maxout
from highway_keras.models.cifar import HIGHWAY_A, cifar_network
from highway_keras.models.parts import AUTHORS_KERNEL

NETWORKS = {  # by name in the rows: the registered network and arguments of its factory
    "highway, bias -1": ("highway-a", {"transform_bias": -1.0}),
    "plain": ("highway-a-plain", {}),
    "plain, wider": ("highway-a-plain-wider", {}),
    "maxout": ("highway-a-maxout", {}),
    "highway, bias 0": ("highway-a", {"transform_bias": 0.0}),
    "highway, bias -2": ("highway-a", {"transform_bias": -2.0}),
    "highway, bias -3": ("highway-a", {"transform_bias": -3.0}),
    "highway, zero gate kernels": ("highway-a-zero", {}),
}
KINDS = list(NETWORKS)[:4]  # each at its own best rate, the other networks at that of bias -1
WIDER = ((22,) * 3, (44,) * 3, (88,) * 3)
SEEDS = (0, 1, 2)
IMAGES, EPOCHS = 25_000, 8


def main(arguments=None):
    parser = rows.parser("benchmarks.gates", __doc__, data=True, file=rows.RESULTS / "gates.csv")
    parser.add_argument("--runs", default="runs/gates", help="folder of the trainings")
    options = parser.parse_args(arguments)
    twins = {"plain": twin(plain), "plain-wider": twin(plain, WIDER)}
    twins |= {"maxout": twin(maxout), "zero": twin(zero_gate_kernels)}
    for name, factory in twins.items():
        models.register(f"highway-a-{name}", factory, "cifar10", (32, 32, 3), 10)
    rates = {}
    for name in KINDS:
        rates[name] = best_rate(lambda rate, name=name: train(name, rate, SEEDS[0], options))
    for seed in SEEDS:
        for name in NETWORKS:
            train(name, rates.get(name, rates[KINDS[0]]), seed, options)


def best_rate(measure):
    """Return the rate that does best: half of it and twice as much do worse."""
    found = {rate: measure(rate) for rate in (0.2, 0.1)}
    while (best := max(found, key=found.get)) in (min(found), max(found)):
        rate = best / 2 if best == min(found) else best * 2
        found[rate] = measure(rate)
    return best


def twin(replacement, widths=HIGHWAY_A):
    """Return a factory of Highway A with other layers in the place of its highway layers."""

    def other(layer):
        is_highway = isinstance(layer, ConvHighway2D)
        return replacement(layer) if is_highway else type(layer).from_config(layer.get_config())

    def factory(input_shape, classes, name):
        options = {"input_shape": input_shape, "classes": classes, "name": name}
        network = cifar_network(name, widths, 250, -1.0, **options)
        return keras.models.clone_model(network, clone_function=other)

    return factory


def plain(layer):
    """Return the layer that a highway layer is if its gates are open, T = 1."""
    options = {"activation": "relu", "kernel_initializer": AUTHORS_KERNEL, "name": layer.name}
    return keras.layers.Conv2D(layer.filters, layer.kernel_size, padding="same", **options)


def maxout(layer):
    """Return a maxout layer with as many weights as a highway layer; it starts as Fitnets do."""
    options = {"padding": "same", "kernel_initializer": "lecun_uniform"}
    convolution = keras.layers.Conv2D(2 * layer.filters, layer.kernel_size, **options)
    return keras.Sequential([convolution, Maxout(2)], name=layer.name)


def zero_gate_kernels(layer):
    """Return the highway layer with gates that are the sigmoid of their biases at first."""
    return type(layer).from_config({**layer.get_config(), "transform_kernel_initializer": "zeros"})


def train(name, rate, seed, options):
    """Train a network unless the folder has it; record and return its held-out accuracy."""
    model, model_options = NETWORKS[name]
    try:
        result = training.fit(
            model,
            recipe="modern-cifar",
            out=pathlib.Path(options.runs) / f"{name}-{rate}-{seed}",
            resume=True,
            seed=seed,
            data_dir=options.data_dir,
            limit=IMAGES,
            model_options=model_options,
            learning_rate=rate,
            epochs=EPOCHS,
            validation=0.2,
            dtype_policy="mixed_bfloat16",
            verbose=2,
        )
    except training.TrainingDiverged:
        return 0.0
    reached = result.history[-1]
    row = {
        "network": name,
        "learning_rate": rate,
        "seed": seed,
        "n": 1,
        "parameters": models.create(model, **model_options).count_params(),
        "images": IMAGES,
        "epochs": EPOCHS,
        **{key: round(reached[key], 4) for key in ("loss", "accuracy", "val_accuracy")},
    }
    keys = ("network", "learning_rate", "seed")
    rows.record([row], keys, options.out, "benchmarks.gates", runs=[result.folder])
    return reached["val_accuracy"]


if __name__ == "__main__":
    main()
