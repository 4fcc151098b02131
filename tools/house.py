"""Count what the house weighs: `python -m tools.house [CLONE]`.

For each room: lines, lines of code (without docstrings, comments and blank lines), `raise`
statements, underscore names of other libraries (uses, and methods that override one) and the
arguments of its longest public function. Then the rooms that each room imports from, and the
longest chain of them. A room is a folder of code, or a module directly in the package.
"""

import argparse
import ast
import collections
import dataclasses
import functools
import importlib
import importlib.util
import io
import pathlib
import tokenize

PACKAGE = "highway_keras"
BESIDE = ("models", "tuning", "results")  # install as rooms of the package
OUTSIDE = ("benchmarks", "tools", "examples")
LIBRARIES = ("keras", "keras_tuner")
PRIVATE_MODULES = ("keras.src", "tensorflow.python")
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


@dataclasses.dataclass(frozen=True)
class File:
    """A Python file: its room, its module as it installs, its text and its syntax tree."""

    room: str
    module: str
    text: str
    tree: ast.Module


def is_outside(room):
    """Whether a room is not installed with the package."""
    return room.partition(".")[0] in (*OUTSIDE, "tests")


def read_files(root):
    """Yield a `File` for each Python file of a clone."""
    for top in (PACKAGE, *BESIDE, *OUTSIDE, "tests"):
        for path in sorted((root / top).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            if top in BESIDE:
                parts = (PACKAGE, *parts)
            module = ".".join(parts).removesuffix(".__init__")
            inside = parts[1:] if parts[0] == PACKAGE else parts
            room = ".".join(inside[:-1]) or inside[0].replace("__init__", PACKAGE)
            text = path.read_text(encoding="utf-8")
            yield File(room, module, text, ast.parse(text))


def code_lines(file):
    """Return the number of lines with code."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
        if token.type not in LAYOUT:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Module | ast.ClassDef) or is_function(node):
            if ast.get_docstring(node):
                lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines - {file.text.count("\n") + 1})


def imported_names(tree):
    """Yield the full name of each import, those for type checkers left out."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        pending += ast.iter_child_nodes(node)


def rooms_imported(file, rooms):
    """Return the rooms that a file imports from; `rooms` has the room of each module."""
    names = imported_names(file.tree)
    modules = (name if name in rooms else name.rpartition(".")[0] for name in names)
    return {rooms.get(module) for module in modules} - {None, file.room, PACKAGE}


def is_private(name):
    return name.startswith("_") and not name.endswith("__")


def is_function(node):
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


@functools.cache
def library_names():
    """Return the underscore names of methods and attributes in the installed libraries."""
    names = set()
    for library in LIBRARIES:
        (folder,) = importlib.util.find_spec(library).submodule_search_locations
        for path in pathlib.Path(folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    names |= private_names(node)
    return names


def private_names(tree):
    """Return the underscore names that a tree defines as functions or sets as attributes."""
    names = set()
    for node in ast.walk(tree):
        if is_function(node):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return set(filter(is_private, names))


def borrowed_names(file):
    """Return the underscore names of other libraries in a file, one for each use."""
    own = private_names(file.tree)
    names = [name for name in imported_names(file.tree) if name.startswith(PRIVATE_MODULES)]
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if node.attr in library_names() and node.attr not in own:
                names.append(node.attr)
        elif isinstance(node, ast.ClassDef):
            methods = filter(is_private, (item.name for item in node.body if is_function(item)))
            bases = list(filter(None, map(library_class, node.bases)))
            names += [name for name in methods if any(hasattr(base, name) for base in bases)]
    return names


def library_class(base):
    """Return the class that an expression such as `keras.Layer` names, or `None`."""
    library, *names = ast.unparse(base).split(".")
    if library not in LIBRARIES:
        return None
    return functools.reduce(getattr, names, importlib.import_module(library))


def longest_function(tree):
    """Return (number of arguments, name) of the public function or class that has the most."""
    longest = (0, "")
    for node in tree.body:
        if not (isinstance(node, ast.ClassDef) or is_function(node)) or is_private(node.name):
            continue
        functions = [node]
        if isinstance(node, ast.ClassDef):
            functions = [item for item in node.body if is_function(item)]
        for function in functions:
            arguments = function.args
            names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            names += filter(None, (arguments.vararg, arguments.kwarg))
            count = sum(one.arg not in ("self", "cls") for one in names)
            name = node.name if function is node else f"{node.name}.{function.name}"
            if not is_private(function.name):
                longest = max(longest, (count, name))
    return longest


def longest_chain(arrows):
    """Return the longest chain of rooms in which each imports from the next."""

    @functools.cache
    def chain(room, above):
        below = sorted(arrows.get(room, set()) - above)
        return (room, *max((chain(other, above | {other}) for other in below), key=len, default=()))

    return max((chain(room, frozenset({room})) for room in sorted(arrows)), key=len)


def report(files):
    """Print the table, and what the rooms import from one another."""
    rooms = {file.module: file.room for file in files}
    totals = collections.defaultdict(collections.Counter)
    longest = collections.defaultdict(lambda: (0, ""))
    arrows = collections.defaultdict(set)
    borrowed = collections.Counter()
    for file in files:
        names = [] if is_outside(file.room) else borrowed_names(file)
        totals[file.room] += collections.Counter(
            files=1,
            lines=file.text.count("\n"),
            code=code_lines(file),
            raises=sum(isinstance(node, ast.Raise) for node in ast.walk(file.tree)),
            borrowed=len(names),
        )
        longest[file.room] = max(longest[file.room], longest_function(file.tree))
        borrowed.update(names)
        if file.room != "tests":
            arrows[file.room] |= rooms_imported(file, rooms)

    columns = ("files", "lines", "code", "raises", "borrowed")
    print(f"{'room':18}" + "".join(f"{name:>9}" for name in columns) + "  most arguments")
    totals["all but tests"] = collections.Counter()
    for room in sorted(arrows):
        totals["all but tests"].update(totals[room])
    for room in (*sorted(arrows), "tests", "all but tests"):
        numbers = "".join(f"{totals[room][name]:9,}" for name in columns)
        print(f"{room:18}{numbers}  {longest[room][0] or ''} {longest[room][1]}".rstrip())
    installed = {room: below for room, below in arrows.items() if not is_outside(room)}
    for name, part in (("the package", installed), ("with what is not installed", arrows)):
        chain = longest_chain(part)
        count = sum(map(len, part.values()))
        print(f"\n{name}: {len(part)} rooms, {count} arrows, {len(chain)} floors:")
        print(" > ".join(chain))
    print()
    for room in sorted(arrows):
        print(f"{room:18} {' '.join(sorted(arrows[room]))}")
    print("\nborrowed: " + ", ".join(f"{name} {uses}" for name, uses in borrowed.most_common()))


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("clone", nargs="?", type=pathlib.Path, default=pathlib.Path())
    report(list(read_files(parser.parse_args().clone)))


if __name__ == "__main__":
    main()
