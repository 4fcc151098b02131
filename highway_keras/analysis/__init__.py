"""Tools to look inside trained highway networks (section 4 of the paper).

Numbers first: `transform_biases`, `mean_gates`, `gates`, `block_outputs`, `lesions` and
`needed_layers`; then their pictures, a callback, and `analyze`, which puts them on one page.
`gate_model` and `compact` derive a model from a model; `closed` closes a layer for a while.
"""

from typing import TYPE_CHECKING

from highway_keras.util.lazy_imports import lazy

if TYPE_CHECKING:
    from highway_keras.analysis.blocks import closed
    from highway_keras.analysis.compaction import Compacted, compact
    from highway_keras.analysis.gating import (
        MeanGates,
        block_outputs,
        gate_model,
        gates,
        mean_gates,
        transform_biases,
    )
    from highway_keras.analysis.lesioning import Lesions, NeededLayers, lesions, needed_layers
    from highway_keras.analysis.monitor import GateMonitor
    from highway_keras.analysis.report import Analysis, analyze
    from highway_keras.plots import plot_gates, plot_lesions, plot_routing
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "Analysis",
    "Compacted",
    "GateMonitor",
    "Lesions",
    "MeanGates",
    "NeededLayers",
    "analyze",
    "block_outputs",
    "closed",
    "compact",
    "gate_model",
    "gates",
    "lesions",
    "mean_gates",
    "needed_layers",
    "plot_gates",
    "plot_lesions",
    "plot_routing",
    "transform_biases",
]
