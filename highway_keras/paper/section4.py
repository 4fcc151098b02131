"""Section 4: Figures 2, 3 and 4, for the best of a hundred tanh networks of 50 layers.

    highway-keras reproduce figure2 --dataset cifar100    # two hours of one CPU core

docs/figures2-4.md has what was found.
"""

from highway_keras import analysis, data
from highway_keras.training import SavedNetwork, TrainingDiverged
from highway_keras.tuning.chief import check_alone
from highway_keras.tuning.search_results import read_search
from highway_keras.tuning.searches import run_searches
from highway_keras.util import checks

DATASETS = ("mnist", "cifar100")  # the paper's
DEPTH = 50
RUNGS = {10: 20, 40: 5}


def reproduce_section4(
    dataset="mnist",
    trials=100,
    epochs=400,
    rungs=RUNGS,
    limit=None,
    population=None,
    out=None,
    data_dir=None,
    verbose="auto",
):
    """Search for a tanh highway network of 50 layers, and look inside the best.

    The paper's networks are the best of a random search by training error, with tanh throughout.
    Call it again to continue what is in `out`.

    ```
    OUT/thin-highway-50/           the search, as `tuning.run_searches` leaves it
    OUT/thin-highway-50/analysis/  figure2.png, figure3.png, figure4.png and a page
    ```

    Args:
        dataset: `"mnist"` or `"cifar100"`.
        trials: Trials of the search.
        epochs: Epochs of the trials that run to the end.
        rungs: How many trials continue after an epoch, `{epoch: trials}`; `None`: all run to the
            end.
        limit: Number of training images in the search. Default: all.
        population: Number of trials to train together. Default: as in `run_searches`.
        out: Folder. Default: `runs/section4-DATASET`.
        data_dir: Where TFDS keeps its data.
        verbose: As in Keras.

    Returns:
        The `Analysis`.

    Raises:
        ValueError: If an argument is out of its range, or `out` holds something else.
        TrainingDiverged: If all trials diverged.

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 4.
    """
    checks.one_of("dataset", dataset, DATASETS)
    check_alone()
    [folder] = run_searches(
        [DEPTH],
        ["highway"],
        trials=trials,
        epochs=epochs,
        dataset=dataset,
        out=out or f"runs/section4-{dataset}",
        population=population,
        resume=True,
        limit=limit,
        data_dir=data_dir,
        activations=["tanh"],
        verbose=verbose,
        rungs=rungs,
    )
    if not read_search(folder).completed:
        raise TrainingDiverged(f"All trials of the search in {folder} diverged.")
    images = data.load(dataset, data_dir, validation=0.0)
    return analysis.analyze(
        SavedNetwork(folder / "best.keras").model,
        images.x_train,
        images.y_train,
        folder / "analysis",
        class_names=images.class_names,
        verbose=verbose,
        examples=(images.x_test, images.y_test),
    )
