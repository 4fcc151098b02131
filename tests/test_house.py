"""The house: which room may import which, how long files and functions are, what a face holds."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
# The rooms from the ground floor up. A room imports from those before it; rooms of one line do not
# import one another.
FLOORS = [
    {"faces", "checks", "text", "ops", "results"},
    {"files", "pictures", "backends", "initializers"},
    {"optimizers", "depth_loop", "data", "locks"},
    {"layers"},
    {"convert", "models"},
    {"training"},
    {"analysis", "export", "tuning"},
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
