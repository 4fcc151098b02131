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


def write(path, epochs, states):
    """Write the states of trials that train together, a dictionary by their ids."""
    arrays = {f"{i}/{key}": value for i, state in states.items() for key, value in state.items()}
    with replacing(path) as temporary:
        np.savez(temporary, epochs=epochs, trials=list(states), **arrays)


def latest(folder):
    """Return where the latest state of each trial is: `{trial_id: (epochs, path)}`."""
    return {trial_id: max(of_trial) for trial_id, of_trial in _places(folder).items()}


def read(path, trial_id):
    """Return the state of a trial from the file that it is in."""
    prefix = f"{trial_id}/"
    with np.load(path) as file:
        keys = [key for key in file.files if key.startswith(prefix)]
        return {key.removeprefix(prefix): file[key] for key in keys}


def delete(folder, keep):
    """Delete the files in which no trial of the ids `keep` has its latest state."""
    places = _places(folder)
    needed = {max(of_trial) for trial_id, of_trial in places.items() if trial_id in keep}
    paths = {path for of_trial in places.values() for _, path in of_trial}
    for path in paths - {path for _, path in needed}:
        path.unlink(missing_ok=True)


def _places(folder):
    """Return where the states of each trial are: `{trial_id: [(epochs, path), ...]}`."""
    places = collections.defaultdict(list)
    for path in folder.glob(PATTERN):
        with contextlib.suppress(FileNotFoundError):  # the chief has just deleted it
            with np.load(path) as file:
                for trial_id in file["trials"].tolist():
                    places[trial_id].append((int(file["epochs"]), path))
    return places
