"""Model cards: what to know about trained weights, as Markdown, from their entry in the index."""

from highway_keras import results
from highway_keras.models import registry, shipped

# Where the images come from, and what a network trained on them is not fit for.
DATA = {
    "mnist": (
        "MNIST (LeCun, Cortes, Burges): 60,000 training and 10,000 test images of handwritten "
        "digits. Its terms are stated differently in different places, often as CC BY-SA 3.0.",
        "Light digits on a dark ground, centred and scaled as MNIST's are. Any other picture is "
        "given a digit too, often with a high probability.",
    ),
    "cifar10": (
        "CIFAR-10 (Krizhevsky, 2009): 50,000 training and 10,000 test images in 10 classes. Its "
        "authors ask to be cited and name no licence.",
        "Pictures of 32x32 pixels with one of ten kinds of things in the middle. Any other picture "
        "is given one of these classes too, often with a high probability.",
    ),
    "cifar100": (
        "CIFAR-100 (Krizhevsky, 2009): 50,000 training and 10,000 test images in 100 classes. Its "
        "authors ask to be cited and name no licence.",
        "Pictures of 32x32 pixels with one of a hundred kinds of things in the middle. Any other "
        "picture is given one of these classes too, often with a high probability.",
    ),
}

# What each step of the preprocessing does to an image.
STEPS = {
    "scale": "`scale` (gray levels / 256)",
    "gcn": "`gcn` (mean 0 and standard deviation 1 per image)",
    "mean": "`mean` (minus the mean training image)",
    "half": "`half` (times 1/2)",
}


def card_text(name, dataset):
    """Return the model card of weights that come with the package, as Markdown.

    Args:
        name: Registered name.
        dataset: What the weights were trained on, one of `models.get(name).weights`.

    Raises:
        ValueError: If there are no such weights.

    Example:

    >>> from highway_keras import models
    >>> print(models.card_text("thin-highway-10", "mnist").splitlines()[0])
    # thin-highway-10, trained on mnist
    """
    card, entry = registry.get(name), shipped.find_entry(name, dataset)
    source, limits = DATA.get(dataset, (dataset, ""))
    rows = {
        "Network": f"{name}, {card.layers} layers, {card.parameters:,} parameters, "
        f"{card.multiplications:,} multiplications an image, from the experiments of "
        "[Srivastava et al., 2015](https://arxiv.org/abs/1507.06228)",
        "Origin": card.origin,
        "Data": f"{source} None of the images are in this package.",
        "Trained on": _images(entry),
        "Recipe": _recipe(entry),
        "Test accuracy": _accuracy(entry),
        "The paper's, %": card.paper or "not given",
        "Runs": f"{_runs(entry)}. These weights are of seed {entry['seeds'][0]}",
        "Hardware": entry["hardware"] or "not recorded",
        "Versions": entry["versions"] or "not recorded",
        "File": f"`{entry['file']}`, {entry['bytes']:,} bytes, {entry['dtype']}",
        "SHA-256": f"`{entry['sha256']}`",
        "Licence": f"{entry['licence']}, as the package",
        "Limits": limits,
    }
    table = "\n".join(f"| {key} | {value} |" for key, value in rows.items() if value)
    return f"# {name}, trained on {dataset}\n\n| | |\n|---|---|\n{table}\n\n{_usage(name, dataset)}"


def _images(entry):
    steps = ", ".join(STEPS[step] for step in entry["preprocessing"])
    text = f"{entry['images']:,} training images, preprocessed by {steps}"
    if entry["held_out"]:
        text += f"; {entry['held_out']:,} others held out to choose the epoch by"
    return text


def _recipe(entry):
    epochs, policy = entry["epochs"], entry["dtype_policy"]
    text = f"`{entry['recipe']}`, {epochs} epoch{'s' if epochs != 1 else ''}"
    return text if policy == "float32" else f"{text}, in `{policy}`"


def _accuracy(entry):
    before, after = 100 * entry["accuracy_before"], 100 * entry["accuracy"]
    text = f"{after:.2f} %"
    if entry["dtype"] != "float32":
        text += f" ({before:.2f} % before the weights were rounded to {entry['dtype']})"
    return text


def _runs(entry):
    row = results.spread([100 * accuracy for accuracy in entry["accuracies"]])
    if row["n"] == 1:
        return "1"
    seeds = ", ".join(map(str, entry["seeds"]))
    return (
        f"{row['n']} (seeds {seeds}): {row['mean']:.2f} ± {row['std']:.2f} %, "
        f"best {row['best']:.2f} %"
    )


def _usage(name, dataset):
    return (
        "```\n"
        f"highway-keras evaluate {name} --weights {dataset}\n"
        f"highway-keras predict {name} picture.png --weights {dataset}\n"
        "```\n"
    )
