"""The card of an export: what a client has to know, as JSON."""

import hashlib

import keras

from highway_keras.data.pictures import MODES
from highway_keras.version import __version__

# How `data.read_image` makes an image of a picture file with 8 bits a channel
PICTURE_CODE = """\
import numpy as np
from PIL import Image, ImageOps

picture = Image.open(file)
picture = picture if picture.format == "PNG" else ImageOps.exif_transpose(picture)
layer = picture.convert("RGBA")
picture = Image.new("RGB", layer.size, "white")
picture.paste(layer, mask=layer)
picture = picture.convert("{mode}").resize(({width}, {height}), Image.Resampling.BILINEAR)
images = np.asarray(picture, "uint8").reshape(1, {height}, {width}, {channels})
"""


def picture_code(input_shape):
    """Return the lines of Pillow that make `images` of a picture file, gray or RGB."""
    height, width, channels = input_shape
    size = {"height": height, "width": width, "channels": channels}
    return PICTURE_CODE.format(mode=MODES[channels], **size)


def describe(model, path, format, quantize, class_names):
    """Return the card of the export of a model, a dictionary."""
    height, width, channels = model.input_shape[1:]
    inputs = {"images": f"uint8 (batch, {height}, {width}, {channels}), 0 to 255"}
    outputs = {"probabilities": f"float32 (batch, {len(class_names)})"}
    if format != "keras":
        outputs["class_id"] = "int64 (batch)"
    if format == "saved_model":
        outputs["class_name"] = "string (batch)"
    card = {
        "name": model.name,
        "format": format,
        "quantize": quantize,
        "parameters": model.count_params(),
        "class_names": class_names,
        "inputs": inputs,
        "outputs": outputs,
        "versions": {"highway-keras": __version__, "keras": keras.__version__},
    }
    if channels in MODES:
        card["images_from_a_picture"] = picture_code(model.input_shape[1:]).splitlines()
        if format == "saved_model":
            encoded = {"encoded": "string (batch), PNG or JPEG files as bytes"}
            card["signatures"] = {"serving_default": inputs, "encoded": encoded}
    root = path if path.is_dir() else path.parent
    card["sha256"] = {
        file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files_below(root)
    }
    return card


def files_below(folder):
    return sorted(file for file in folder.rglob("*") if file.is_file())


def path_of(export, format):
    """Return the path of the card of an export."""
    if format == "saved_model":
        return export / "assets" / "model_card.json"
    return export.with_name(f"{export.name}.json")
