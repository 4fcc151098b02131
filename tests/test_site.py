"""What a reader copies runs: the code of the guides, and the notebooks from top to bottom.

Numbers and pixels of a notebook may differ from machine to machine: they are not compared.
"""

import pathlib
import re

import keras
import nbformat
import pytest
from helpers import all_but

from tools.notebooks import FOLDER, NOTEBOOKS, execute

ROOT = pathlib.Path(__file__).parents[1]
GUIDES = ("zoo/index", "../README")


def python_blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("guide", all_but(GUIDES, (*GUIDES, "search", "own-network", "transfer")))
def test_the_code_of_a_guide_runs(guide, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / f"{guide}.md").read_text(encoding="utf-8")
    names = {}
    blocks = python_blocks(text)
    assert blocks
    for block in blocks:
        exec(compile(block, f"{guide}.md", "exec"), names)
    if guide == "transfer":
        assert names["accuracy"] > 0.8  # the features of MNIST's digits are worth something here


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_a_loop_in_another_library_learns(backend, tmp_path, monkeypatch):
    if keras.backend.backend() != backend:
        pytest.skip("`.ci/backends` runs it")
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks((ROOT / "docs" / "modules.md").read_text(encoding="utf-8"))
    (block,) = [block for block in blocks if f'KERAS_BACKEND"] = "{backend}"' in block]
    names = {}
    exec(compile(block, "modules.md", "exec"), names)
    assert names["losses"][-1] < 0.7 * names["losses"][0]


def shown(notebook):
    """What each code cell shows: its values and pictures by type, its words with # for a number."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            kinds = {kind for output in cell.outputs for kind in output.get("data", ())}
            text = "".join(output.text for output in cell.outputs if "text" in output)
            yield kinds, re.sub(r"-?\d[\d.,]*", "#", text).split()


@pytest.mark.slow
@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS])
def test_a_notebook_shows_what_it_is_committed_with(name, tmp_path, monkeypatch):
    path = FOLDER / f"{name}.ipynb"
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
    found, committed = (list(shown(n)) for n in (execute(path), nbformat.read(path, as_version=4)))
    if name == "look-inside":  # which says that it did not find MNIST
        found, committed = ([kinds for kinds, _ in cells] for cells in (found, committed))
    assert found == committed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_listed_and_tidy(path):
    nbformat.validate(nbformat.read(path, as_version=4))
    text = path.read_text(encoding="utf-8")
    assert len(text) < 300_000 and "You will see" in text
    assert "/tmp" not in text and "stderr" not in text and '"execution"' not in text
    assert f"]({path.name})" in (FOLDER / "index.md").read_text(encoding="utf-8")
    assert f"notebooks/{path.name}" in (ROOT / "properdocs.yml").read_text(encoding="utf-8")
