"""Count what the house weighs: `python -m tools.house [CLONE]`.

For each room: lines of Python, and the rooms that it imports from. Then the longest chain of rooms.
A room is a folder of code, or a module directly in the package.
"""

import argparse
import ast
import collections
import functools
import pathlib

PACKAGE = "highway_keras"
BESIDE = ("models", "tuning", "results")  # install as rooms of the package
OUTSIDE = ("benchmarks", "tools", "examples", "tests")


def read_files(root):
    """Yield room, module as it installs, and text of each Python file of a clone."""
    for top in (PACKAGE, *BESIDE, *OUTSIDE):
        for path in sorted((root / top).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if top in BESIDE:
                parts = (PACKAGE, *parts)
            inside = parts[1:] if parts[0] == PACKAGE else parts
            room = ".".join(inside[:-1]) or inside[0].replace("__init__", PACKAGE)
            yield room, ".".join(parts).removesuffix(".__init__"), path.read_text("utf-8")


def imported_names(tree):
    """Yield the full name of each import, those for type checkers left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body.clear()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def longest_chain(arrows):
    """Return the longest chain of rooms in which each imports from the next."""

    @functools.cache
    def chain(room, above):
        below = sorted(arrows[room] - above)
        return (room, *max((chain(other, above | {other}) for other in below), key=len, default=()))

    return max((chain(room, frozenset({room})) for room in arrows), key=len)


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("clone", nargs="?", type=pathlib.Path, default=pathlib.Path())
    files = list(read_files(parser.parse_args().clone))
    rooms = {module: room for room, module, _ in files}
    lines = collections.Counter()
    arrows = {room: set() for room, _, _ in files}
    for room, _, text in files:
        lines[room] += text.count("\n")
        for name in imported_names(ast.parse(text)):
            arrows[room].add(rooms.get(name) or rooms.get(name.rpartition(".")[0], room))
        arrows[room] -= {room, PACKAGE}
    del arrows["tests"]

    print(f"{'room':18}{'lines':>9}  imports from")
    for room in sorted(arrows):
        print(f"{room:18}{lines[room]:9,}  {' '.join(sorted(arrows[room]))}")
    print(f"{'tests':18}{lines['tests']:9,}")
    print(f"{'all but tests':18}{lines.total() - lines['tests']:9,}")
    package = {room: to for room, to in arrows.items() if not room.startswith(OUTSIDE)}
    chain = longest_chain(package)
    count = sum(map(len, package.values()))
    print(f"\nThe package: {len(package)} rooms, {count} arrows, {len(chain)} floors:")
    print(" > ".join(chain))


if __name__ == "__main__":
    main()
