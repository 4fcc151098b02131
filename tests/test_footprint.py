"""What an installation weighs, as `tools.footprint` measures it."""

import csv
import sys

import pytest

from tools import footprint
from tools.numbers import footprint as numbers


def test_packages_and_bytes_of_a_folder(tmp_path):
    for name in ("one-1.0.dist-info", "one", "two-2.0.dist-info"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"x" * 100)
    assert footprint.weigh(tmp_path) == (2, 300)


def test_imports_take_turns_and_the_first_does_not_count(monkeypatch):
    asked = []
    run = footprint.subprocess.run

    def note(command, **options):
        asked.append(command[-1])
        return run(command, **options)

    monkeypatch.setattr(footprint.subprocess, "run", note)
    found = footprint.import_seconds(sys.executable, ("json", "csv"), 2)
    assert [("json" in code, "csv" in code) for code in asked] == 3 * [(True, False), (False, True)]
    assert {name: len(seconds) for name, seconds in found.items()} == {"json": 2, "csv": 2}
    assert all(second > 0 for seconds in found.values() for second in seconds)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Rows of environments that are not really installed."""
    (tmp_path / "lib/python3/site-packages/some.dist-info").mkdir(parents=True)
    monkeypatch.setattr(footprint, "_build", lambda folder: "some.whl")
    monkeypatch.setattr(footprint, "_install", lambda requirement, folder: sys.executable)
    monkeypatch.setattr(footprint, "weigh", lambda folder: (7, 2_500_000))
    monkeypatch.setattr(footprint, "MODULES", ("json", "csv"))
    monkeypatch.setattr(footprint, "next", lambda found: tmp_path, raising=False)
    footprint.main(["--turns", "2", "--out", str(tmp_path / "rows.csv")])
    with (tmp_path / "rows.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_rows(made):
    core, cpu = made
    assert (core["environment"], core["packages"], core["megabytes"]) == ("core", "7", "2.5")
    assert core["json_s"] == "" and float(cpu["json_s_low"]) <= float(cpu["json_s_high"])
    assert cpu["n"] == "2" and cpu["command"] == "python -m tools.footprint --turns 2"


def test_the_table(monkeypatch):
    spread = {f"{m}_s{end}": "1.25" for m in footprint.MODULES for end in ("", "_low", "_high")}
    rows = [
        {"environment": "core", "packages": "18", "megabytes": "61.4", **dict.fromkeys(spread, "")},
        {"environment": "cpu", "packages": "80", "megabytes": "1234.5", **spread},
    ]
    monkeypatch.setattr(numbers, "rows", lambda name: rows)
    core, cpu = numbers.footprint().strip().splitlines()[2:]
    assert core == "| `pip install -e .` | 18 | 61 | needs a backend | needs a backend |"
    assert cpu.split(" | ")[1:4] == ["80", "1,234", "1.2 (1.2 to 1.2)"]
