"""The paper's experiments: its tables and figures, and the authors' own logs next to them.

Each `reproduce_…` and `compare_…` function is a command of `highway-keras reproduce`, whose
`--help` says what the options mean.
`data_dir` is where TensorFlow Datasets keeps its data, `out` the folder of the results.
"""

from typing import TYPE_CHECKING

from highway_keras.util.lazy_imports import lazy

if TYPE_CHECKING:
    from highway_keras.paper.authors_log import compare_with_authors
    from highway_keras.paper.figure1 import draw_figure1, reproduce_figure1
    from highway_keras.paper.first_losses import reproduce_first_losses
    from highway_keras.paper.gradients import reproduce_gradients
    from highway_keras.paper.section4 import reproduce_section4
    from highway_keras.paper.starts import reproduce_starts
    from highway_keras.paper.tables import read_table, reproduce_table
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "compare_with_authors",
    "draw_figure1",
    "read_table",
    "reproduce_figure1",
    "reproduce_first_losses",
    "reproduce_gradients",
    "reproduce_section4",
    "reproduce_starts",
    "reproduce_table",
]
