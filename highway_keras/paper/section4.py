"""Section 4: Figures 2, 3 and 4, for the best of a hundred tanh networks of 50 layers.

    highway-keras reproduce figure2 --dataset cifar100    # two hours of one CPU core

docs/figures2-4.md has the results.
"""

from highway_keras import analysis, data, models
from highway_keras.tuning import HighwayHyperModel, run_searches
from highway_keras.util import checks

DATASETS = ("mnist", "cifar100")  # the paper's
DEPTH = 50
RUNGS = {10: 20, 40: 5}


def reproduce_section4(
    dataset="mnist",
    trials=100,
    epochs=400,
    rungs=RUNGS,
    out=None,
    data_dir=None,
    verbose="auto",
):
    """Search for a tanh highway network of 50 layers, and look inside the best.

    The paper's networks are the best of a random search by training error, with tanh throughout.
    Call it again to continue the search in `out`.

    ```
    OUT/thin-highway-50/           the search, as `tuning.run_searches` leaves it
    OUT/thin-highway-50/analysis/  figure2.png, figure3.png, figure4.png and a page
    ```

    Returns:
        The `Analysis`.

    Raises:
        ValueError: If an argument is out of its range, or `out` holds another search.

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 4.
    """
    checks.one_of("dataset", dataset, DATASETS)
    images = data.load(dataset, data_dir=data_dir, validation=0.0)
    sizes = {"input_shape": images.input_shape, "classes": images.classes}
    [folder] = run_searches(
        images,
        [HighwayHyperModel(DEPTH, **sizes, activations="tanh")],
        epochs=epochs,
        out=out or f"runs/section4-{dataset}",
        resume=True,
        verbose=verbose,
        max_trials=trials,
        rungs=rungs,
    )
    return analysis.analyze(
        models.load(folder / "best.keras").model,
        images.x_train,
        images.y_train,
        folder / "analysis",
        class_names=images.class_names,
        verbose=verbose,
    )
