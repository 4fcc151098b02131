"""Model cards: what to know about trained weights, as Markdown, from their entry in the index."""

from highway_keras import results
from highway_keras.models import registry, shipped

# What the Hugging Face Hub calls a data set, where its images come from, and what a network trained
# on them is not fit for.
_CIFAR = (
    "uoft-cs/cifar{0}",
    "CIFAR-{0} (Krizhevsky, 2009): 50,000 training and 10,000 test images in {0} classes. Its "
    "authors ask to be cited and name no license.",
    "Pictures of 32x32 pixels with one of {1} kinds of things in the middle. Any other picture is "
    "given one of these classes too, often with a high probability.",
)
DATA = {
    "mnist": (
        "ylecun/mnist",
        "MNIST (LeCun, Cortes, Burges): 60,000 training and 10,000 test images of handwritten "
        "digits. Its terms are stated differently in different places, often as CC BY-SA 3.0.",
        "Light digits on a dark ground, centered and scaled as MNIST's are. Any other picture is "
        "given a digit too, often with a high probability.",
    ),
    "cifar10": [text.format("10", "ten") for text in _CIFAR],
    "cifar100": [text.format("100", "a hundred") for text in _CIFAR],
}
# What each step of the preprocessing does to an image.
STEPS = {
    "scale": "`scale` (gray levels / 256)",
    "gcn": "`gcn` (mean 0 and standard deviation 1 per image)",
    "mean": "`mean` (minus the mean training image)",
    "half": "`half` (times 1/2)",
}
# What the hub reads.
HUB_HEAD = """---
library_name: keras
license: {licence}
pipeline_tag: image-classification
tags:
- highway-network
datasets:
- {dataset}
model-index:
- name: {name}
  results:
  - task:
      type: image-classification
    dataset:
      type: {dataset}
      name: {dataset}
    metrics:
    - type: accuracy
      value: {accuracy:.4f}
---
"""


def card_text(name, dataset):
    """Return the model card of weights that come with the package, as Markdown.

    It begins with the YAML that the Hugging Face Hub reads from a `README.md`.

    Args:
        name: Registered name.
        dataset: What the weights were trained on, one of `models.get(name).weights`.

    Raises:
        ValueError: If there are no such weights.

    Examples:
        >>> from highway_keras import models
        >>> print(models.card_text("thin-highway-10", "mnist").splitlines()[1])
        library_name: keras
    """
    card, entry = registry.get(name), shipped.find_entry(name, dataset)
    hub_name, source, limits = DATA.get(dataset, (dataset, dataset, ""))
    steps = ", ".join(STEPS.get(step, f"`{step}`") for step in entry["preprocessing"])
    images = f"{entry['images']:,} training images, preprocessed by {steps}"
    if entry["held_out"]:
        images += f"; {entry['held_out']:,} others held out to choose the epoch by"
    recipe = f"`{entry['recipe']}`, {entry['epochs']} epoch{'s' if entry['epochs'] != 1 else ''}"
    if entry["dtype_policy"] != "float32":
        recipe += f", in `{entry['dtype_policy']}`"
    before = f"{100 * entry['accuracy_before']:.2f} % before the weights were rounded"
    accuracy = f"{100 * entry['accuracy']:.2f} % ({before} to {entry['dtype']})"
    runs = results.spread([100 * accuracy for accuracy in entry["accuracies"]])
    spread = str(runs["n"])
    if runs["n"] > 1:
        spread += f" (seeds {', '.join(map(str, entry['seeds']))}): "
        spread += f"{runs['mean']:.2f} ± {runs['std']:.2f} %, best {runs['best']:.2f} %"
    rows = {
        "Network": f"{name}, {card.layers} layers, {card.parameters:,} parameters, "
        f"{card.multiplications:,} multiplications an image, from the experiments of "
        "[Srivastava et al., 2015](https://arxiv.org/abs/1507.06228)",
        "Origin": card.origin,
        "Data": f"{source} None of the images are in this package.",
        "Trained on": images,
        "Recipe": recipe,
        "Test accuracy": accuracy,
        "The paper's, %": card.paper or "not given",
        "Runs": f"{spread}. These weights are of seed {entry['seeds'][0]}",
        "Hardware": entry["hardware"] or "not recorded",
        "Versions": entry["versions"] or "not recorded",
        "File": f"`{entry['file']}`, {entry['bytes']:,} bytes, {entry['dtype']}",
        "SHA-256": f"`{entry['sha256']}`",
        "License": f"{entry['licence']}, as the package",
        "Limits": limits,
    }
    table = "\n".join(f"| {key} | {value} |" for key, value in rows.items() if value)
    head = HUB_HEAD.format(
        licence=entry["licence"].lower(),
        dataset=hub_name,
        name=name,
        accuracy=entry["accuracy"],
    )
    return (
        f"{head}# {name}, trained on {dataset}\n\n| | |\n|---|---|\n{table}\n\n```\n"
        f"highway-keras evaluate {name} --weights {dataset}\n"
        f"highway-keras predict {name} picture.png --weights {dataset}\n```\n\n"
        "```python\nimport keras\nfrom highway_keras import models\n\n"
        f'file = models.get("{name}").weights_file("{dataset}")\n'
        "model = keras.models.load_model(file)  # takes pixels, 0 to 255\n```\n"
    )
