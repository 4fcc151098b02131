"""The house: which room may import which, how long files and functions are, what a face holds."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
# The rooms from the ground floor up. A room imports from those before it; rooms of one line do not
# import one another.
FLOORS = [
    {"faces", "extras", "checks", "text", "notices", "memory", "ops", "results", "version"},
    {"files", "pictures", "backends", "initializers"},
    {"optimizers", "depth_loop", "data", "locks"},
    {"layers"},
    {"convert", "models", "runs"},
    {"analysis"},
    {"training"},
    {"export", "tuning"},
    {"paper"},
    {"cli"},
]
FOLDERS = {
    "models": "models",
    "results": "results",
    "tuning": "tuning",
}  # others: highway_keras/


def room_files(room):
    folder = ROOT / FOLDERS.get(room, f"highway_keras/{room}")
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def imported_rooms(file):
    """The rooms that a file imports from, wherever in it."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "highway_keras" and rest:
                yield rest.split(".")[0]


def known_rooms():
    inside = {p.stem for p in (ROOT / "highway_keras").iterdir() if p.suffix in ("", ".py")}
    return (inside | {*FOLDERS}) - {"__init__", "__main__", "__pycache__", "highway_keras"}


def test_every_room_has_its_floor():
    assert known_rooms() == set().union(*FLOORS)


@pytest.mark.parametrize("room", sorted(set().union(*FLOORS)))
def test_imports_point_downwards(room):
    floor = next(i for i, rooms in enumerate(FLOORS) if room in rooms)
    allowed = set().union(*FLOORS[:floor]) | {room}
    found = {(file.name, other) for file in room_files(room) for other in imported_rooms(file)}
    assert {pair for pair in found if pair[1] not in allowed} == set()


def test_contributors_see_the_rooms_from_the_ground_up():
    table = re.findall(r"^\| (`.*?) \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.M)
    cells = [[pathlib.PurePath(path).stem for path in re.findall("`(.*?)`", c)] for c in table]
    rooms = [room for cell in cells for room in cell]
    assert sorted(rooms) == sorted(known_rooms())
    for place, cell in enumerate(cells):
        above = {room for earlier in cells[:place] for room in earlier} | set(cell)
        for room in cell:
            others = {other for file in room_files(room) for other in imported_rooms(file)}
            assert others <= above, room


WRITTEN = ("highway_keras", "models", "results", "tuning", "tools", "benchmarks", "examples")
FILES = sorted(file for folder in WRITTEN for file in (ROOT / folder).rglob("*.py"))


def lines_of_code(function):
    """The lines of a function, from `def` on, without its docstring."""
    docstring = function.body[0] if ast.get_docstring(function) is not None else None
    lines = function.end_lineno - function.lineno + 1
    return lines - (docstring.end_lineno - docstring.lineno + 1 if docstring else 0)


def test_files_and_functions_are_short():
    """Up to 300 lines a file, and 40 of code a function."""
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        assert text.count("\n") <= 300, file
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert lines_of_code(node) <= 40, f"{file}: {node.name}"


def test_a_face_defines_nothing():
    """The `__init__` of a package imports and lists names; its only condition is TYPE_CHECKING."""
    faces = [file for file in FILES if file.name == "__init__.py"]
    for file in faces:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            assert is_of_a_face(node), f"{file}: line {node.lineno}"


def is_of_a_face(node):
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.Assign):
        names = [name.id for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)]
        return all(name.isupper() or name.startswith("__") for name in names)
    return isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)
