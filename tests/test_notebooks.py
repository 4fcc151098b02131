"""The notebooks run from top to bottom, and show what they are committed with.

Numbers and pixels may differ from machine to machine: they are not compared.
"""

import copy
import re

import nbclient
import nbformat
import pytest
from selection import all_but

from tools import notebooks

LOGS = {"stderr"}
# The others do what the code of a page or a command does, and those are tested.
QUICK = [path for path in notebooks.notebooks() if path.stem == "first-layer"]
NOTEBOOKS = pytest.mark.parametrize("path", notebooks.notebooks(), ids=lambda path: path.stem)


def shown(notebook):
    """What each code cell shows: text, values and pictures by their types, without logs."""
    cells = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    return [{k for o in c for k in (o.get("name"), *o.get("data", ())) if k} - LOGS for c in cells]


def printed(notebook):
    """The words that each code cell prints, with # for a number and without logs."""
    cells = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    texts = ["".join(o.text for o in outputs if o.get("name") == "stdout") for outputs in cells]
    texts = [re.sub(r"^WARNING:tensorflow:.*\n?", "", text, flags=re.MULTILINE) for text in texts]
    return [re.sub(r"-?\d[\d.,]*", "#", text).split() for text in texts]


def test_there_are_four():
    names = [path.stem for path in notebooks.notebooks()]
    assert names == ["figure1", "fine-tune", "first-layer", "look-inside"]


@pytest.mark.parametrize("path", all_but(QUICK, notebooks.notebooks()), ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    found, committed = notebooks.execute(path), nbformat.read(path, as_version=4)
    assert shown(found) == shown(committed)
    if path.stem != "look-inside":  # says whether it found MNIST
        assert printed(found) == printed(committed)


@NOTEBOOKS
def test_a_notebook_is_tidy(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    tidied = copy.deepcopy(notebook)
    notebooks.tidy(tidied)
    assert tidied == notebook
    assert path.stat().st_size < 300_000
    assert "You will see" in notebook.cells[0].source
    outputs = [str(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]
    assert not any("/tmp" in text or str(notebooks.FOLDER.parent) in text for text in outputs)


def test_a_cell_that_fails_is_found(tmp_path):
    cells = [nbformat.v4.new_code_cell("1 / 0")]
    path = tmp_path / "broken.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        notebooks.execute(path)


@pytest.mark.parametrize("log", [("stderr", "said"), ("stdout", "WARNING:tensorflow:5 out of")])
def test_logs_are_not_committed(log):
    logged, text = (
        nbformat.v4.new_output("stream", name=name, text=text)
        for name, text in (log, ("stdout", "said"))
    )
    cell = nbformat.v4.new_code_cell("run()", outputs=[logged, text], metadata={"execution": {}})
    notebook = nbformat.v4.new_notebook(cells=[cell])
    notebooks.tidy(notebook)
    assert notebook.cells[0].outputs == [text] and notebook.cells[0].metadata == {}
