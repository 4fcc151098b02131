"""Run the notebooks of `docs/notebooks/`: `python -m tools.notebooks [NAME ...]`.

It runs each from top to bottom, and writes it with its new outputs. They run in a temporary folder,
so what they write is gone afterwards. It needs the extra `test`.
"""

import pathlib
import sys
import tempfile

import nbclient
import nbformat

FOLDER = pathlib.Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def execute(path):
    """Return a notebook after all its cells have run in a new process.

    What differs between runs and machines without meaning anything is left out: execution times,
    the version of Python, and what libraries log.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        options = {"timeout": 300, "record_timing": False}  # seconds a cell
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, resources=resources, **options).execute()
    notebook.metadata.language_info = nbformat.from_dict({"name": "python"})
    for cell in notebook.cells:
        if cell.cell_type == "code":  # TensorFlow also logs to stdout
            cell.outputs = [
                output
                for output in cell.outputs
                if output.get("name") != "stderr"
                and not output.get("text", "").startswith("WARNING:tensorflow:")
            ]
    return notebook


def main():
    """Run the named notebooks, or all, and write them."""
    names = sys.argv[1:]
    for path in NOTEBOOKS:
        if not names or path.stem in names:
            nbformat.write(execute(path), path)
            print(path.name)


if __name__ == "__main__":
    main()
