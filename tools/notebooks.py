"""Run the notebooks of `docs/notebooks/`: `python -m tools.notebooks [NAME ...]`.

It runs each from top to bottom, writes it with its new outputs, and prints how long it took. They
run in a temporary folder, so what they write is gone afterwards. It needs the extra `test`.
"""

import argparse
import pathlib
import sys
import tempfile
import time

import nbformat

from highway_keras.io import write_text

FOLDER = pathlib.Path(__file__).parents[1] / "docs" / "notebooks"
SECONDS = 300  # for one cell


def notebooks():
    """Return the paths of the notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def execute(path):
    """Return a notebook after all its cells have run in a new process.

    Raises:
        nbclient.exceptions.CellExecutionError: If a cell fails.
    """
    import nbclient  # the site only reads notebooks

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, timeout=SECONDS, resources=resources).execute()
    return notebook


def tidy(notebook):
    """Remove what differs between runs and machines without meaning anything.

    This means execution times, the version of Python, random cell identifiers, and what libraries
    log.
    """
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": LANGUAGE})
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", nbformat.from_dict({})
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_log(output)]


def _is_log(output):
    # In a notebook TensorFlow logs to where cells print.
    text = output.get("text", "")
    return output.get("name") == "stderr" or text.startswith("WARNING:tensorflow:")


KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python"}


def main(arguments=None):
    """Run the named notebooks, or all, and write them."""
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    names = parser.parse_args(arguments).names
    for path in [FOLDER / f"{name}.ipynb" for name in names] or notebooks():
        begun = time.perf_counter()
        notebook = execute(path)
        tidy(notebook)
        write_text(path, nbformat.writes(notebook) + "\n")
        seconds, size = time.perf_counter() - begun, path.stat().st_size / 1e3
        print(f"{path.name}: {seconds:.0f} s, {size:.0f} kB")


if __name__ == "__main__":
    sys.exit(main())
