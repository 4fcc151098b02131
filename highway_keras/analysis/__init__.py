"""Tools to look inside trained highway networks (section 4 of the paper).

Numbers first: `transform_biases`, `mean_gates`, `gates`, `block_outputs`, `lesions` and
`needed_layers`; then their pictures, a callback, and `analyze`, which puts them on one page.
"""

import importlib

# They import Keras, which takes seconds; they are loaded when first used.
_NAMES = {
    "GateMonitor": "monitor",
    "Lesions": "lesioning",
    "MeanGates": "gating",
    "NamedArray": "named_array",
    "NeededLayers": "needed",
    "analyze": "report",
    "block_outputs": "gating",
    "gate_model": "gating",
    "gates": "gating",
    "lesions": "lesioning",
    "live_page": "live",
    "mean_gates": "gating",
    "needed_layers": "needed",
    "plot_gates": "plots",
    "plot_lesions": "plots",
    "plot_routing": "plots",
    "transform_biases": "gating",
}
__all__ = list(_NAMES)


def __getattr__(name):
    if name in _NAMES:
        module = importlib.import_module(f"highway_keras.analysis.{_NAMES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
