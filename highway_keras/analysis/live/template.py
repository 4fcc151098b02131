"""Put the page together from its frame, scripts and style."""

import html
import importlib.resources
import json
import string

import keras

_SCRIPTS = "elements weights operations network colours pad maps chart sentences page controls"
SCRIPTS = tuple(f"{name}.js" for name in _SCRIPTS.split())


def texts(graph, shape, names, title, weights):
    """Return what the page says about this network, as HTML."""
    learned = any(call.layer.learned_carry for call in graph.gated)
    carried = "<i>C</i> · <i>x</i>" if learned else "(1 &minus; <i>T</i>) · <i>x</i>"
    spatial = any(len(keras.tree.flatten(call.outputs)[0].shape) == 4 for call in graph.gated)
    return {
        "title": html.escape(title),
        "heading": _heading(shape, names),
        "depth": len(graph.blocks),
        "cells": "feature maps, shown as a small image" if spatial else "units",
        "formula": f"<i>y</i> = <i>T</i> · <i>H</i>(<i>x</i>) + {carried}",
        "outputs_note": ""
        if spatial
        else "Stripes from top to bottom are values that layers carry unchanged.",
        "footer": f"{weights.count:,} weights in this file, computed in this page.",
    }


def _heading(shape, names):
    if shape[2] == 3:
        return "Paint over a picture, watch the gates"
    return f"Draw a {'digit' if all(map(str.isdigit, names)) else 'picture'}, watch the gates"


def fill(said, description, numbers):
    """Return the page, filled with the texts and data of a network."""
    folder = importlib.resources.files(__package__)
    read = {
        name: (folder / name).read_text("utf-8") for name in ("page.html", "style.css", *SCRIPTS)
    }
    scripts = "\n".join(f"<script>\n{read[name]}</script>" for name in SCRIPTS)
    return string.Template(read["page.html"]).substitute(
        said,
        style=read["style.css"],
        description=_json(description),
        weights=numbers,
        scripts=scripts,
    )


def _json(content):
    """Return JSON that is safe inside a `<script>`."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")
