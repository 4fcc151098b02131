"""Where a run is built and trained: on the backend's one device, or data-parallel on several.

Every replica holds the network and takes an equal share of each batch; gradients are averaged.
"""

import contextlib
import dataclasses
import functools
import importlib
import shutil
import tempfile
from collections.abc import Callable

import keras

from highway_keras.runs import HELD
from highway_keras.runs.folder import RunFolder


@dataclasses.dataclass(frozen=True)
class Devices:
    """Where a run is built and trained; by default on the backend's one device.

    Attributes:
        scope: Function that returns a context for building and training.
        replicas: Devices that share a batch, over all processes.
        is_chief: Whether this process is the one that writes the run's files.
        process_share: Function that maps batches to this process's shares of them.
        install_steps: Function that replaces the train and test functions of a compiled model if
            Keras's own do not work.
        same_on_all: Function that says whether a number is the same in every process.
    """

    scope: Callable = contextlib.nullcontext
    replicas: int = 1
    is_chief: bool = True
    process_share: Callable = lambda batches: batches
    install_steps: Callable = lambda model: None
    same_on_all: Callable = lambda number: True

    def check_shares(self, batch_size, streamed, held_out=0):
        """Raise a `ValueError` unless all devices can share batches and held-out images equally."""
        if batch_size % self.replicas:
            raise ValueError(
                f"`batch_size` must be divisible by the number of devices, here {self.replicas}. "
                f"Received: batch_size={batch_size}. "
                f"Try batch_size={batch_size - batch_size % self.replicas or self.replicas}."
            )
        if streamed and self.replicas > 1:
            raise ValueError(
                "`distribute` needs images that fit into memory. Received: distribute=True. Take "
                "fewer (`limit`), or one device."
            )
        if 0 < held_out < self.replicas:
            raise ValueError(
                "`validation` must hold out an image for each device, or none. Received: "
                f"{held_out} images for {self.replicas} devices."
            )

    @contextlib.contextmanager
    def writable(self, folder):
        """Yield the folder to write to: that of the run, or for all but the chief a temporary copy.

        Every process saves, because saving may read weights that are spread over several of them.
        """
        if self.is_chief:
            yield folder
            return
        with tempfile.TemporaryDirectory() as temporary:
            if folder.state.exists():  # else the chief may be starting the run this moment
                for file in (folder.path / name for name in HELD):
                    if file.exists():
                        shutil.copy(file, temporary)
            yield RunFolder(temporary)


@functools.cache  # once per process
def data_parallel():
    """Return the `Devices` that this process and its peers see."""
    backend = keras.backend.backend()
    if backend not in ("tensorflow", "jax"):
        raise ValueError(
            "`distribute` needs the TensorFlow or the JAX backend. Received: distribute=True with "
            f"KERAS_BACKEND={backend}."
        )
    return importlib.import_module(f"highway_keras.training.engines.{backend}").data_parallel()
