"""Write a whole recipe as options of `fit`, and read it back.

It names every value, so a command stays true when the recipe of that name changes.
"""

import shlex

FLAGS = ("epochs", "batch_size", "learning_rate", "dtype_policy")  # have an option of their own


def options(recipe):
    """Return the options that set the values of a recipe, a dictionary."""
    flags = [f"{_flag(key)} {recipe[key]}" for key in FLAGS]
    rest = {key: value for key, value in recipe.items() if key not in FLAGS}
    return " ".join([*flags, f"--set {pairs(rest)}"])


def values(command):
    """Return the values of the recipe in a command, as text."""
    words = shlex.split(command)
    found = dict(word.split("=", 1) for word in words[words.index("--set") :] if "=" in word)
    return found | {key: words[words.index(_flag(key)) + 1] for key in FLAGS}


def is_limited(command):
    """Return whether a command trains on some of the training images only."""
    return "--limit " in command


def pairs(settings):
    """Return `KEY=VALUE` of a dictionary, quoted where a shell would interpret a value."""
    found = (f"{key}={text(value)}" for key, value in settings.items())
    return " ".join(f'"{pair}"' if "(" in pair else pair for pair in found)


def text(value):
    """Return a value as the command line takes it; JSON stores tuples as lists."""
    return str(tuple(value) if isinstance(value, list) else value).replace(", ", ",")


def _flag(key):
    return f"--{key.replace('_', '-')}"
