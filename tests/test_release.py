"""What a release says of itself is said once, and agrees."""

import configparser
import pathlib
import re

import pytest

import highway_keras
from tools import release

ROOT = pathlib.Path(__file__).parents[1]
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_version_stands_in_one_place():
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    assert parser["metadata"]["version"] == "attr: highway_keras.version.__version__"
    version, _, _ = highway_keras.__version__.partition(".dev")
    for file in ("pyproject.toml", "CITATION.cff", "properdocs.yml", "README.md"):
        assert version not in (ROOT / file).read_text(encoding="utf-8")
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)


def test_changes_have_versions_and_dates():
    heads = re.findall(r"^## (.*)$", CHANGES, re.MULTILINE)
    first, *released = heads
    version, _, development = highway_keras.__version__.partition(".dev")
    assert first.startswith(f"{version}, ")
    assert (first == f"{version}, unreleased") == bool(development)
    assert released
    for head in released:
        assert re.fullmatch(r"\d+\.\d+\.\d+, \d{4}-\d\d-\d\d", head), head


def test_a_release_says_where_the_project_is():
    text = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    parser = configparser.ConfigParser()
    parser.read_string(release.setup(text, "https://host/us/it", "v1.0"))
    lines = parser["metadata"]["project_urls"].strip().splitlines()
    urls = dict(line.split(" = ") for line in lines)
    assert urls["Source"] == "https://host/us/it" and urls["Issues"] == "https://host/us/it/issues"
    assert urls["Paper"] == "https://arxiv.org/abs/1507.06228"
    for name in ("Documentation", "Changelog"):
        place, _, file = urls[name].partition("/blob/v1.0/")
        assert place == "https://host/us/it" and (ROOT / file).is_file()


def test_a_release_needs_a_place_for_its_addresses():
    with pytest.raises(ValueError, match="must have one `project_urls`"):
        release.setup("[metadata]\n", "https://host/us/it", "v1.0")
