"""Pages of the API: one for each room of the package, and one for the command."""

import contextlib
import importlib
import inspect
import io
import os
import re

ROOMS = (
    "layers",
    "ops",
    "initializers",
    "optimizers",
    "models",
    "data",
    "training",
    "tuning",
    "analysis",
    "export",
    "convert",
    "paper",
    "results",
    "depth_loop",
)
BESIDE = ("models", "results", "tuning")  # rooms in folders next to the package


def pages():
    """Return the text of each page by its path in the site."""
    made = {f"api/{room}.md": room_page(room) for room in ROOMS}
    return {"api/index.md": index(), **made, "api/command.md": command_page()}


def navigation():
    """Return the entries of the API for mkdocs's `nav`."""
    rooms = [{f"highway_keras.{room}": f"api/{room}.md"} for room in ROOMS]
    return [*rooms, {"Command": "api/command.md"}]


def link_source(root, folder):
    """Link the package into `folder` as it installs, for tools that read the source."""
    package = folder / "highway_keras"
    package.mkdir()
    inside = [path for path in (root / "highway_keras").iterdir() if path.name != "__pycache__"]
    for path in (*inside, *(root / room for room in BESIDE)):
        (package / path.name).symlink_to(path)


def index():
    """Return the list of rooms, each with the first sentence of its docstring."""
    rows = [
        f"| [`highway_keras.{room}`]({room}.md) | {_first_sentence(_module(room))} |"
        for room in ROOMS
    ]
    header = ["# API", "", "| room | what it holds |", "|---|---|"]
    return "\n".join([*header, *rows, "", "[The command](command.md) has a page of its own.", ""])


def room_page(room):
    """Return the page of a room: its docstring, then each public class and function."""
    module = f"highway_keras.{room}"
    options = ("members", "show_root_heading", "show_root_toc_entry")
    head = "\n".join([f"::: {module}", "    options:", *(f"      {o}: false" for o in options)])
    parts = [f"# {module}", head, *(f"::: {module}.{name}\n" for name in public_names(room))]
    return "\n\n".join(parts)


def public_names(room):
    """Return the public classes and functions of a room, in their order."""
    module = _module(room)
    names = getattr(module, "__all__", None) or [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__
    ]
    things = {name: getattr(module, name) for name in names}
    wanted = {name: thing for name, thing in things.items() if _has_docstring(thing)}
    # `ConvHighway` is `ConvHighway2D` by another name.
    return [name for name, thing in wanted.items() if thing.__name__ == name]


def command_page():
    """Return what `--help` prints, for each command."""
    overview = _help()
    names = re.findall(r"^ {4}(\w+)\b", overview, re.MULTILINE)  # a long one has its own line
    parts = ["# The command", f"```text\n{overview}```"]
    parts += [f"## `highway-keras {name}`\n\n```text\n{_help(name)}```" for name in names]
    return "\n\n".join(parts) + "\n"


def _help(*command):
    from highway_keras.cli.command import main

    printed, before = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "88"
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([*command, "--help"])
    finally:
        os.environ.pop("COLUMNS")
        os.environ.update({} if before is None else {"COLUMNS": before})
    return printed.getvalue()


def _module(room):
    return importlib.import_module(f"highway_keras.{room}")


def _has_docstring(thing):
    return (inspect.isclass(thing) or inspect.isfunction(thing)) and bool(thing.__doc__)


def _first_sentence(module):
    return " ".join(inspect.getdoc(module).split("\n\n")[0].split())
