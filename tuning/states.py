"""The states of trials on disk: one file for the trials that train together.

Its process alone writes it, and replaces it as a whole. It holds `trials`, their ids, `epochs`, how
long they have trained, and the state of each trial under its id, as the module `weights` says.
"""

import collections
import contextlib
import secrets

import numpy as np

from highway_keras.util.files import replacing

PATTERN = "state-*.npz"


def new_path(folder):
    """Return the path of a file that no other process writes."""
    return folder / PATTERN.replace("*", secrets.token_hex(4))


def write(path, ids, state, curves):
    """Write the state and the curves of the trials `ids`, the trial axis second in all arrays."""
    state = state | {f"curve/{key}": curve for key, curve in curves.items()}
    arrays = {f"{id_}/{key}": state[key][:, n] for n, id_ in enumerate(ids) for key in state}
    with replacing(path) as temporary:
        np.savez(temporary, epochs=len(curves["loss"]), trials=ids, **arrays)


def latest(folder):
    """Return the file that has the latest state of each trial: `{trial_id: path}`."""
    places = collections.defaultdict(list)
    for path in folder.glob(PATTERN):
        # The chief may have just deleted it.
        with contextlib.suppress(FileNotFoundError), np.load(path) as file:
            for trial_id in file["trials"].tolist():
                places[trial_id].append((int(file["epochs"]), path))
    return {trial_id: max(of_trial)[1] for trial_id, of_trial in places.items()}


def read(path, trial_id):
    """Return the state of a trial from the file that it is in."""
    prefix = f"{trial_id}/"
    with np.load(path) as file:
        keys = [key for key in file.files if key.startswith(prefix)]
        return {key.removeprefix(prefix): file[key] for key in keys}


def delete(folder, keep):
    """Delete the files in which no trial of the ids `keep` has its latest state."""
    paths = {*folder.glob(PATTERN)}  # before others are read: a worker may write a new one
    places = latest(folder)
    for path in paths - {places[trial_id] for trial_id in keep if trial_id in places}:
        path.unlink(missing_ok=True)
