"""Section 4: Figures 2, 3 and 4, for the best of a hundred tanh networks of 50 layers.

    highway-keras reproduce figure2 --dataset mnist

Result (docs/analysis.md, results/analysis.csv): from the paper's starts, -2 and -4, most layers are
idle for MNIST and most matter for CIFAR-100, as in the paper. Searches of 400 epochs confirm it.
"""

from highway_keras import analysis, checks, data
from highway_keras.paper.finals import best_final, train_finals
from highway_keras.paper.searches import read_searches
from highway_keras.training import SavedNetwork
from highway_keras.tuning.hypermodel import RANGES
from highway_keras.tuning.searches import run_searches

DATASETS = ("mnist", "cifar100")  # the paper's
DEPTH = 50


def reproduce_section4(
    dataset="mnist",
    trials=100,
    search_epochs=10,
    limit=10_000,
    candidates=3,
    candidate_epochs=20,
    epochs=100,
    out=None,
    population=None,
    transform_bias=RANGES["transform_bias"],
    data_dir=None,
    verbose="auto",
):
    """Search for a tanh highway network of 50 layers, train the best, and look inside it.

    The paper's networks are the best of a random search by training error, with tanh throughout.
    Call it again to continue what is in `out`.

    ```
    OUT/searches/  the search, as `tuning.run_searches` leaves it
    OUT/finals/    its best trials, two of them to the end, as `train_finals` leaves them
    OUT/look/      figure2.png, figure3.png, figure4.png and a page, as `analysis.analyze` does
    ```

    Args:
        dataset: `"mnist"` or `"cifar100"`.
        trials: Trials of the search.
        search_epochs: Epochs of a trial.
        limit: Training images of the search; `None` for all. Later training uses all of them.
        candidates: Number of trials to train for `candidate_epochs`.
        candidate_epochs: Epochs of a candidate.
        epochs: Epochs of the best one.
        out: Folder. Default: `runs/section4-DATASET`.
        population: Trials to train together. Default: 10 for each CPU core.
        transform_bias: The lowest and the highest value of the biases at the start. Equal ones fix
            them: those of the paper's networks start at -2 (MNIST) and -4 (CIFAR-100).
        data_dir: Where TFDS keeps its data.
        verbose: As in Keras.

    Returns:
        The `Analysis`.

    Raises:
        ValueError: If an argument is out of its range, or `out` holds something else.
        TrainingDiverged: If all candidates diverge.

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 4.
    """
    checks.one_of("dataset", dataset, DATASETS)
    sizes = {"candidates": candidates, "candidate_epochs": candidate_epochs, "epochs": epochs}
    # Before the search: a mistake must not show after hours.
    checks.positive_integers(trials=trials, search_epochs=search_epochs, **sizes)
    out = checks.path("out", out or f"runs/section4-{dataset}")
    shared = {"data_dir": data_dir, "verbose": verbose}
    run_searches(
        [DEPTH],
        ["highway"],
        trials,
        search_epochs,
        dataset,
        out / "searches",
        population,
        resume=True,
        limit=limit,
        activations=["tanh"],
        transform_bias=transform_bias,
        **shared,
    )
    (search,) = read_searches(out / "searches")
    finals = out / "finals" / search.name
    train_finals(search, finals, **sizes, **shared)
    images = data.load(dataset, data_dir=data_dir, validation=0.0)
    return analysis.analyze(
        SavedNetwork(best_final(finals).best).model,
        images.x_train,
        images.y_train,
        out / "look",
        images.class_names,
        verbose=verbose,
        examples=(images.x_test, images.y_test),
    )
