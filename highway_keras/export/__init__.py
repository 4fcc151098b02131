"""Out of the door: a trained network as a file that another runtime serves.

`export` writes the file and verifies it. `graph.py` holds what is exported, the same for all
formats, `formats.py` how each format is written, `keras_file.py` the one that stays with Keras,
`runtimes.py` how each is run, and `verification.py` the comparison with the Keras model in a
process of its own.
"""

from highway_keras.export.exporting import FORMATS, Exported, export
from highway_keras.export.verification import ExportMismatch

__all__ = ["FORMATS", "ExportMismatch", "Exported", "export"]
