"""The paper's experiments: its tables and figures, and the authors' own logs beside them."""

from typing import TYPE_CHECKING

from highway_keras.faces import lazy

if TYPE_CHECKING:
    from highway_keras.paper.authors_log import compare_with_authors
    from highway_keras.paper.figure1 import draw_figure1
    from highway_keras.paper.finals import run_finals
    from highway_keras.paper.presets import PRESETS, run_preset
    from highway_keras.paper.tables import read_table, reproduce_table
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "PRESETS",
    "compare_with_authors",
    "draw_figure1",
    "read_table",
    "reproduce_table",
    "run_finals",
    "run_preset",
]
