"""What decides a search, kept in its files so that no other search continues there."""

import contextlib
import hashlib
import json
import pathlib

import numpy as np

from highway_keras.runs.folder import check_same_settings
from highway_keras.tuning.hypermodel import ACTIVATIONS


def search_settings(tuner, pairs, epochs, batch_size):
    """Return what decides the trials of a search, a dictionary; their number does not.

    Args:
        tuner: A `PopulationRandomSearch`.
        pairs: Pairs of inputs and class numbers by the prefix of their metrics.
        epochs: Epochs per trial.
        batch_size: Images per step.
    """
    network, objective = tuner.hypermodel, tuner.objective
    labels = {f"{prefix}labels": _labels(y) for prefix, (_, y) in pairs.items()}
    return {
        "kind": network.kind,
        "depth": network.depth,
        "units": network.units,
        "input_shape": list(map(int, network.input_shape)),
        "classes": network.classes,
        "objective": f"{objective.direction} {objective.name}",
        "seed": tuner.seed,
        "epochs": epochs,
        "batch_size": batch_size,
        **labels,
        **space(network.activations),
    }


def space(activations):
    """Return what settings say about the activations to draw from: nothing for the paper's."""
    return {} if activations == ACTIVATIONS else {"activations": list(activations)}


def _labels(y):
    """Return the number of labels and their fingerprint: images may differ in their last bits."""
    return f"{len(y)} {fingerprint(np.ravel(y).astype(int).tolist())}"


def fingerprint(content):
    """Return 16 digits that identify a value that JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def check_recorded(folder, settings):
    """Raise a `ValueError` if a search in `folder` was started with other settings.

    Searches of version 0.1.0 did not record any.

    Args:
        folder: Folder of the search.
        settings: What `search_settings` returned.

    Returns:
        Whether any settings were recorded.
    """
    folder = pathlib.Path(folder)
    before = read_json(folder / "oracle.json").get("settings")
    if before:
        check_same_settings(before, settings, f"the search in {folder}")
    for path in folder.glob("trial_*/trial.json"):
        made_with = read_json(path).get("settings")
        if made_with not in (None, fingerprint(settings)):
            raise ValueError(
                f"A search resumes with the settings it was started with. {path} is of another "
                "search: remove it, or name another folder."
            )
    return bool(before)


def check_own(path, project_name):
    """Raise a `ValueError` if the state of a tuner is not that of a `PopulationRandomSearch`."""
    if path.exists() and "population" not in read_json(path):
        raise ValueError(
            "`project_name` must be that of a search by `PopulationRandomSearch`, or a new one. "
            f"Received: project_name={project_name!r}; another tuner made the search in "
            f"{path.parent}. Name another one, or pass overwrite=True to delete that search."
        )


def read_json(path):
    """Return what a file of a search holds, a dictionary; an empty one if it is not there."""
    if not path.exists():
        return {}
    with readable(path.parent):
        return dict(json.loads(path.read_text(encoding="utf-8")))


@contextlib.contextmanager
def readable(folder):
    """Turn what damaged files of a search raise into a `ValueError`: `with readable(folder):`."""
    try:
        yield
    except Exception as error:  # of many kinds
        raise ValueError(
            f"The search in {folder} cannot be read: one of its JSON files is missing or damaged. "
            "Bring it back, or delete the folder to search anew."
        ) from error
