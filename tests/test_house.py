"""The rooms: imports point one way, and contributors see them from the ground floor up."""

import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).parents[1]


def test_a_room_imports_only_from_the_rooms_below_it(tmp_path):
    """The contract of pyproject.toml, for the package as it installs."""
    ignored = shutil.ignore_patterns("__pycache__", "weights", "*.csv")
    shutil.copytree(ROOT / "highway_keras", tmp_path / "highway_keras", ignore=ignored)
    for room in ("models", "results", "tuning"):
        shutil.copytree(ROOT / room, tmp_path / "highway_keras" / room, ignore=ignored)
    lint = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", lint, "--config", ROOT / "pyproject.toml", "--no-cache"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_contributors_see_the_rooms_in_the_order_of_the_contract():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    floors = [set(re.findall(r"\b(?<!\()\w+", floor)) for floor in contract["layers"][::-1]]
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.MULTILINE)
    rooms = [pathlib.PurePath(path).stem for row in rows for path in re.findall("`(.*?)`", row)]
    assert len(rooms) == len(set(rooms))
    for floor in floors:
        assert set(rooms[: len(floor)]) == floor
        del rooms[: len(floor)]
    assert not rooms
