"""Tools to look inside trained highway networks (section 4 of the paper).

Numbers first: `transform_biases`, `mean_gates`, `gates`, `block_outputs`, `lesions` and
`needed_layers`; then their pictures, a callback, and `analyze`, which puts them on one page.
"""

import importlib

# They import Keras, which takes seconds; they are loaded when first used.
_NAMES = {
    "GateMonitor": "monitor",
    "Lesions": "lesions",
    "MeanGates": "gates",
    "NamedArray": "named_array",
    "NeededLayers": "lesions",
    "analyze": "report",
    "block_outputs": "gates",
    "gate_model": "gates",
    "gates": "gates",
    "lesions": "lesions",
    "mean_gates": "gates",
    "needed_layers": "lesions",
    "plot_gates": "plots",
    "plot_lesions": "plots",
    "plot_routing": "plots",
    "transform_biases": "gates",
}
__all__ = list(_NAMES)
