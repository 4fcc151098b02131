"""Count what the house weighs: `python -m tools.house [CLONE]`.

For each room: lines, lines of code (without docstrings, comments and blank lines), `raise`
statements, and the rooms that it imports from. Then the longest chain of rooms. A room is a folder
of code, or a module directly in the package.
"""

import argparse
import ast
import collections
import functools
import io
import pathlib
import tokenize

PACKAGE = "highway_keras"
BESIDE = ("models", "tuning", "results")  # install as rooms of the package
OUTSIDE = ("benchmarks", "tools", "examples", "tests")
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


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


def code_lines(text, tree):
    """Return the number of lines with code."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT | {tokenize.ENDMARKER}:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


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
    counts = collections.defaultdict(collections.Counter)
    arrows = {room: set() for room, _, _ in files}
    for room, _, text in files:
        tree = ast.parse(text)
        raises = sum(isinstance(node, ast.Raise) for node in ast.walk(tree))
        weight = {"lines": text.count("\n"), "code": code_lines(text, tree), "raises": raises}
        counts[room].update(weight)
        if room != "tests":
            counts["all but tests"].update(weight)
        for name in imported_names(tree):
            arrows[room].add(rooms.get(name) or rooms.get(name.rpartition(".")[0], room))
        arrows[room] -= {room, PACKAGE}
    del arrows["tests"]

    print(f"{'room':18}{'lines':>9}{'code':>9}{'raises':>9}  imports from")
    for room in (*sorted(arrows), "tests", "all but tests"):
        numbers = "".join(f"{counts[room][name]:9,}" for name in ("lines", "code", "raises"))
        print(f"{room:18}{numbers}  {' '.join(sorted(arrows.get(room, ())))}")
    package = {room: to for room, to in arrows.items() if not room.startswith(OUTSIDE)}
    chain = longest_chain(package)
    count = sum(map(len, package.values()))
    print(f"\nThe package: {len(package)} rooms, {count} arrows, {len(chain)} floors:")
    print(" > ".join(chain))


if __name__ == "__main__":
    main()
