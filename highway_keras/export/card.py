"""What an export says about itself: class names, inputs and outputs, and where it comes from."""

import json

import keras

import highway_keras
from highway_keras import io
from highway_keras.messages import printable

CARD = "model_card.json"  # among the assets of a SavedModel


def model_card(saved, class_names, format, quantize):
    """Return the model card of a `SavedNetwork`, a dictionary.

    Under `training` it has the run's settings and results as `run.json` has them.
    """
    model = saved.model
    outputs = {"probabilities": f"float32 (batch, {len(class_names)})"}
    if format != "keras":  # that is the model itself
        outputs["class_id"] = "int64 (batch)"
    return {
        "name": model.name,
        "format": format,
        "quantize": quantize,
        "parameters": model.count_params(),
        "inputs": {"images": f"uint8 (batch, {', '.join(map(str, model.input_shape[1:]))})"},
        "outputs": outputs,
        "class_names": class_names,
        "versions": {"highway-keras": highway_keras.__version__, "keras": keras.__version__},
        "paper": "Srivastava et al., Training Very Deep Networks, arXiv:1507.06228",
        "training": {k: v for k, v in saved.settings.items() if k != "class_names"},
    }


def is_card(path):
    """Return whether a file is a model card that `export` wrote."""
    if not path.is_file():  # a pipe would be waited for
        return False
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, RecursionError, ValueError):
        return False
    return isinstance(card, dict) and {"format", "inputs", "outputs", "class_names"} <= card.keys()


def write_card(card, card_path, names_path):
    """Write the card as JSON, and the class names as text, one per line."""
    io.write_json(card_path, card)
    names = "".join(f"{printable(name)}\n" for name in card["class_names"])
    io.write_text(names_path, names)


def write_card_beside(path, card):
    """Write both next to a file, under its name."""
    write_card(card, path.with_suffix(".json"), path.with_suffix(".txt"))
