"""The sizes of Figure 1's searches."""

import dataclasses

from highway_keras import checks
from highway_keras.tuning.searches import DEPTHS, KINDS, run_searches


@dataclasses.dataclass(frozen=True)
class Preset:
    """The size of a search.

    Attributes:
        epochs: Epochs per trial.
        limit: Number of training images; `None` for all.
        trials: Trials for each depth and kind; 100 in the paper.
    """

    epochs: int
    limit: int | None = None
    trials: int = 100


PRESETS = {
    "laptop": Preset(epochs=10, limit=10_000),  # 8 searches in under 45 minutes on 2 cores
    "paper": Preset(epochs=400),  # the length of the paper's training curves
}


def run_preset(name, depths=DEPTHS, kinds=KINDS, out="runs/figure1", **arguments):
    """Run or continue the searches of a preset on MNIST.

    Args:
        name: `"laptop"` or `"paper"`.
        depths: Numbers of hidden layers.
        kinds: Any of `"highway"`, `"plain"`, `"residual"`.
        out: Folder; the searches are in `OUT/searches`.
        **arguments: As for `run_searches`.

    Returns:
        The folder of the searches, for `draw_figure1`.

    Raises:
        ValueError: If an argument is out of its range, or `out` holds other searches.
        ImportError: With the PyTorch backend, which cannot train a population.
    """
    preset = PRESETS[checks.one_of("name", name, PRESETS)]
    searches = checks.path("out", out) / "searches"
    sizes = dataclasses.asdict(preset)
    run_searches(depths, kinds, out=searches, resume=True, **sizes, **arguments)
    return searches
