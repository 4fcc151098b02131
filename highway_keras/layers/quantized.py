"""Kernels that `quantize("int8")` turns into int8, as Keras does for its own `Dense`."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from highway_keras.layers.low_rank import LowRankKernels


class Int8Kernels(LowRankKernels):
    """Base of the layers whose kernels can be quantized after training.

    ```
    kernel ~ kernel_int8 / kernel_scale      kernel_scale = 127 / max |kernel|
    ```

    with one scale for each output channel. Only storage changes: `kernel` is always read in
    floating point, and biases, inputs and activations keep their dtype.

    A subclass lists `kernel_names`, declares each of them with `kernel_property`, and makes them
    in `build` with `add_kernel`.
    """

    def summed_axes(self, kernel_shape):
        """Return the axes of a kernel that an output sums over: they share a scale."""
        return tuple(range(len(kernel_shape) - 1))

    def add_kernel(self, name, shape, **options):
        """Add a kernel in the form that the layer's dtype policy asks for."""
        if self.quantization_mode is None:
            setattr(self, f"_{name}", self.add_weight(name=name, shape=shape, **options))
        else:
            self._check_mode(self.quantization_mode)
            self._add_int8(name, shape)

    def quantize(self, mode: str | None = None, type_check: bool = True, config: Any = None):
        """Turn the kernels into int8, in place. `keras.Model.quantize` calls it on each layer.

        Args:
            mode: `"int8"`.
            type_check: Not used.
            config: Not used: inputs stay in floating point, and each output has its own scale.

        Raises:
            NotImplementedError: For another mode; `keras.Model.quantize` then skips the layer with
                a warning.
        """
        self._check_mode(mode)
        if hasattr(self, f"{self.kernel_names[0]}_int8"):
            return  # Keras asks again when the policy below is set.
        if self.lora_rank is not None:
            raise ValueError(
                f"`quantize` needs kernels without adapters, and {self.name!r} has some. Save the "
                "model and load it, which merges them, then quantize."
            )
        for name in self.kernel_names:
            kernel = getattr(self, f"_{name}")
            values, scale = keras.quantizers.abs_max_quantize(
                kernel, axis=self.summed_axes(kernel.shape), to_numpy=True
            )
            delattr(self, f"_{name}")
            self._add_int8(name, values.shape)
            getattr(self, f"{name}_int8").assign(values)
            getattr(self, f"{name}_scale").assign(scale)
        if self.quantization_mode is None:
            source = self.dtype_policy.name
            self.dtype_policy = keras.dtype_policies.QuantizedDTypePolicy("int8", source)

    def quantized_call(self, *args, **kwargs):
        return self.call(*args, **kwargs)

    def _add_int8(self, name, shape):
        summed = self.summed_axes(shape)
        scales = [1 if axis in summed else size for axis, size in enumerate(shape)]
        for suffix, *options in (("int8", shape, "zeros", "int8"), ("scale", scales, "ones", None)):
            weight = self.add_weight(*options, trainable=False, name=f"{name}_{suffix}")
            setattr(self, f"{name}_{suffix}", weight)

    def _check_mode(self, mode):
        if mode != "int8":
            raise NotImplementedError(
                f"`mode` must be 'int8' for a `{type(self).__name__}`. Received: mode={mode!r}."
            )


def kernel_property(name):
    """Return the property for a kernel: its variable, or what its int8 form stands for."""

    def kernel(layer):
        if layer.quantization_mode is None:
            return layer.adapted(name, getattr(layer, f"_{name}"))
        values = ops.cast(getattr(layer, f"{name}_int8"), layer.compute_dtype)
        return ops.divide(values, getattr(layer, f"{name}_scale"))

    return property(kernel)
