"""Low-rank adapters: the kernels are frozen, and two small factors for each of them learn."""

from __future__ import annotations

import keras
import numpy as np
from keras import ops

from highway_keras import checks
from highway_keras.layers import types

_PREFIX, _SCALE = "lora_", "lora_scale"


class LowRankKernels(keras.Layer):
    """Base of the layers with `enable_lora`, as Keras's `Dense` and `Conv2D` have it.

    A subclass lists `kernel_names`, keeps each kernel in a variable `_NAME`, and reads it through
    `adapted`.
    """

    kernel_names: tuple[str, ...] = ()
    leading_axes = 0  # of a kernel, over which it is a stack
    lora_rank: int | None = None  # None until `enable_lora`

    def enable_lora(
        self,
        rank: int,
        lora_alpha: float | None = None,
        a_initializer: types.Initializer = "he_uniform",
        b_initializer: types.Initializer = "zeros",
    ) -> None:
        """Freeze the kernels of H, T and C, and train a low-rank adapter for each.

        ```
        kernel + lora_alpha / rank * a @ b      a: (..., inputs, rank), b: (rank, outputs)
        ```

        Biases keep learning. A saved model loads with the adapters merged into the kernels, as an
        ordinary layer. Weights saved with adapters load into a layer with adapters of the same rank
        and alpha, so training can resume.

        Args:
            rank: Rank of the adapters, from 1 to the outputs of the layer.
            lora_alpha: A number above 0; default `rank`.
            a_initializer, b_initializer: Start of the factors. With `b` at zero, the layer computes
                the same as before until it is trained.

        Raises:
            ValueError: If an argument is out of its range, if the layer is not built, has adapters
                or is quantized, or if its kernels have a constraint.

        Example:

        >>> from highway_keras import Highway
        >>> layer = Highway()
        >>> layer.build((None, 100))
        >>> layer.enable_lora(rank=2)
        >>> [tuple(w.shape) for w in layer.trainable_weights if w.name.startswith("lora_kernel")]
        [(100, 2), (2, 100)]

        Reference:
            [Hu et al., 2021](https://arxiv.org/abs/2106.09685)
        """
        checks.number("lora_alpha", lora_alpha, above=0, or_none="`rank`")
        _check_initializer("a_initializer", a_initializer)
        _check_initializer("b_initializer", b_initializer)
        self._check_adaptable()
        outputs = min(getattr(self, f"_{name}").shape[-1] for name in self.kernel_names)
        checks.integer("rank", rank, least=1, most=outputs)
        self._tracker.unlock()
        for name in self.kernel_names:
            kernel = getattr(self, f"_{name}")
            regularizer = self.weight_options(name)["regularizer"]
            starts = a_initializer, b_initializer
            *inputs, outputs = kernel.shape
            shapes = (*inputs, rank), (*inputs[: self.leading_axes], rank, outputs)
            for key, shape, start in zip(_keys(name), shapes, starts, strict=True):
                weight = self.add_weight(
                    name=key,
                    shape=shape,
                    initializer=self.weight_initializer(keras.initializers.get(start)),
                    regularizer=regularizer,
                    dtype="float32",  # whatever the kernel's, for the sake of small updates
                )
                setattr(self, key, weight)
            kernel.trainable = False
        self._tracker.lock()
        self.lora_rank = int(rank)
        self.lora_alpha = rank if lora_alpha is None else lora_alpha

    def weight_initializer(self, initializer):
        """Return the start of a weight of this layer from that of a kernel."""
        return initializer

    def adapted(self, name, kernel):
        """Return a kernel with its adapter, or unchanged if it has none."""
        if self.lora_rank is None:
            return kernel
        a, b = (ops.convert_to_tensor(getattr(self, key)) for key in _keys(name))
        update = ops.matmul(a, b) * (self.lora_alpha / self.lora_rank)
        return ops.add(kernel, ops.cast(update, kernel.dtype))

    @property
    def merged_weights(self):
        """The weights of the layer without adapters, each kernel with its adapter merged."""
        kernels = {id(getattr(self, f"_{name}", None)): name for name in self.kernel_names}
        return [
            getattr(self, kernels[id(w)]) if id(w) in kernels else w for w in self._own_weights()
        ]

    def save_own_variables(self, store):
        for index, weight in enumerate(self._own_weights()):
            store[str(index)] = weight
        if self.lora_rank is not None:
            store[_SCALE] = np.array(self.lora_alpha / self.lora_rank)
            for key in self._adapter_keys():
                store[key] = getattr(self, key)

    def load_own_variables(self, store):
        adapters = {key: store[key] for key in store.keys() if key.startswith(_PREFIX)}
        store = {key: store[key] for key in store.keys() if key not in adapters}
        if self.lora_rank is None:
            super().load_own_variables(store)
            self._merge(adapters)
            return
        for weight, index in zip(self._own_weights(), range(len(store)), strict=True):
            weight.assign(store[str(index)])
        if adapters:
            self._check_adapters(adapters)
        for name in self.kernel_names:
            a, b = _keys(name)
            if adapters:
                getattr(self, a).assign(adapters[a])
            # Without its adapters the file holds the network before they learned: b = 0.
            getattr(self, b).assign(adapters.get(b, ops.zeros(getattr(self, b).shape)))

    def _check_adapters(self, adapters):
        rank = adapters[_keys(self.kernel_names[0])[0]].shape[-1]
        alpha = float(np.asarray(adapters[_SCALE])) * rank
        if rank != self.lora_rank or not np.isclose(alpha, self.lora_alpha):
            raise ValueError(
                f"{self.name!r} has adapters with rank={self.lora_rank} and "
                f"lora_alpha={self.lora_alpha:g}, but those in the file have rank={rank} and "
                f"lora_alpha={alpha:g}. Call `enable_lora` with these, or load into a layer "
                "without adapters, which merges them."
            )

    def _merge(self, adapters):
        if not adapters:
            return
        for name in self.kernel_names:
            a, b = (np.asarray(adapters[key]) for key in _keys(name))
            kernel = getattr(self, f"_{name}")
            kernel.assign(ops.convert_to_numpy(kernel) + np.asarray(adapters[_SCALE]) * (a @ b))

    def _adapter_keys(self):
        return [key for name in self.kernel_names for key in _keys(name)]

    def _own_weights(self):
        return [weight for weight in self.weights if not weight.name.startswith(_PREFIX)]

    def _check_adaptable(self):
        reasons = {
            "is not built: call it or `build` it first": not self.built,
            "has adapters already": self.lora_rank is not None,
            "is quantized: add adapters first, and quantize the model that loads from its file": (
                self.quantization_mode is not None
            ),
            "constrains its kernels, which adapters would evade": any(
                getattr(self, f"{name}_constraint") for name in self.kernel_names
            ),
        }
        for reason, holds in reasons.items():
            if holds:
                raise ValueError(f"`enable_lora` is not possible: {self.name!r} {reason}.")


def _keys(name):
    return tuple(f"{_PREFIX}{name}_{factor}" for factor in "ab")


def _check_initializer(name, value):
    try:
        found = keras.initializers.get(value)
    except Exception:  # configurations that are not Keras's raise errors of many kinds
        found = None
    if found is None:
        raise ValueError(
            f"`{name}` must be an initializer of Keras, such as 'he_uniform'. "
            f"Received: {name}={checks.short_repr(value)}."
        )
