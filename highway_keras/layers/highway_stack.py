"""Many equal highway layers as one layer."""

import keras
import numpy as np
from keras import ops

from highway_keras import checks
from highway_keras.depth_loop import scan
from highway_keras.layers import stacked
from highway_keras.layers.gated import GatedLayer
from highway_keras.layers.highway import Highway
from highway_keras.layers.options import check_floating


@keras.saving.register_keras_serializable(package="highway_keras")
class HighwayStack(GatedLayer):
    """A chain of `depth` equal `Highway` layers, run as one loop over weights stacked over depth.

    ```
    x[l + 1] = H[l](x[l]) * T[l](x[l]) + x[l] * (1 - T[l](x[l]))        l = 0 ... depth - 1
    ```

    Mathematics, options and start are those of the chain. What differs is the cost: unrolled, every
    layer has to be traced and compiled; the loop is compiled once, in about a second at any depth,
    and its backward pass is the exact gradient written by hand (Eq. 4 of the supplement). On a CPU,
    TensorFlow runs a loop on every core, each with its share of the batch.

    Args:
        depth: Number of layers, a positive integer.
        units: Width of the layers; must equal the input's. `None` takes the input's.
        rematerialize: Whether the backward pass computes H and T of each layer again instead of
            keeping them: less memory, more time.
        transform_bias_initializer: As in `Highway`, or a sequence of `depth` numbers, one a layer.
        **kwargs: As in `Highway`. Initializers, regularizers and constraints act on each layer's
            weights separately.

    Call arguments:
        inputs: Floating-point tensor.
        return_gate: Whether to return `(outputs, gates)`, the gates being T of every layer,
            `(depth, batch_size, ..., units)`, instead of outputs.

    Input shape:
        `(batch_size, ..., units)`, any rank from 2 on. A Keras mask is passed on.

    Output shape:
        That of the input.

    Raises:
        ValueError: If `units` differs from the width of the input, or `depth` is not positive.
        TypeError: If the input is not floating point.

    Example:

    >>> import keras
    >>> from highway_keras import HighwayStack
    >>> model = keras.Sequential([keras.Input((50,)), HighwayStack(1000)])
    >>> model.count_params()
    5100000

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 2 and supplement.
    """

    def __init__(self, depth, units=None, rematerialize=False, **kwargs):
        biases = kwargs.get("transform_bias_initializer")
        if isinstance(biases, list | tuple | np.ndarray):
            kwargs["transform_bias_initializer"] = stacked.ByLayer(biases)
        super().__init__(**kwargs)
        self.depth = checks.positive_integer("depth", depth)
        self.units = checks.positive_integer("units", units, none="the width of the input")
        self.rematerialize = bool(rematerialize)

    @classmethod
    def from_layers(cls, layers, name=None):
        """The stack that computes what a chain of built `Highway` layers computes.

        Args:
            layers: Built `Highway` layers of one width and with the same options.
            name: Name of the stack.

        Returns:
            A built `HighwayStack` with copies of their weights.

        Raises:
            ValueError: If there are none, one is not built, or their options differ.
        """
        if not layers or not all(type(layer) is Highway and layer.built for layer in layers):
            raise ValueError(
                f"`layers` must be one or more built `Highway` layers. Received: layers={layers!r}."
            )
        first = _shared_config(layers[0])
        odd = [layer.name for layer in layers if _shared_config(layer) != first]
        if odd:
            raise ValueError(
                "`layers` must have the same options, apart from initializers. "
                f"Received: {', '.join(odd)} differ from {layers[0].name}."
            )
        units = layers[0].kernel.shape[0]
        stack = cls(len(layers), **{**first, "units": units, "name": name})
        stack.build((None, units))
        for index, weight in enumerate(stack.weights):
            values = [ops.convert_to_numpy(layer.weights[index]) for layer in layers]
            weight.assign(np.stack(values))
        return stack

    def unstack(self):
        """The chain of built `Highway` layers that computes what this built stack computes."""
        config = _shared_config(self)
        layers = [Highway(**{**config, "name": f"{self.name}_{i}"}) for i in range(self.depth)]
        for index, layer in enumerate(layers):
            layer.build((None, self.kernel.shape[-1]))
            for weight, stacked_weight in zip(layer.weights, self.weights, strict=True):
                weight.assign(stacked_weight[index])
        return layers

    @property
    def width_argument(self):
        return "units", self.units

    def build(self, input_shape):
        super().build(input_shape)
        self.input_spec = keras.InputSpec(min_ndim=2, axes={-1: input_shape[-1]})

    def kernel_shape(self, prefix, input_shape):
        return (self.depth, input_shape[-1], input_shape[-1])

    def bias_shape(self, kernel_shape):
        return (self.depth, kernel_shape[-1])

    def summed_axes(self, kernel_shape):
        return (1,)

    def weight_options(self, name):
        return stacked.weight_options(super().weight_options(name))

    def call(self, inputs, return_gate=False):
        check_floating(inputs)
        kernels = [getattr(self, f"{prefix}kernel") for prefix in self.transforms]
        biases = [getattr(self, f"{prefix}bias") for prefix in self.transforms]
        if not self.use_bias:
            biases[0] = ops.zeros_like(ops.convert_to_tensor(biases[1]))
        return scan(
            inputs,
            ops.concatenate(kernels, axis=-1),
            ops.concatenate(biases, axis=-1),
            activation=self.activation,
            transform_activation=self.transform_activation,
            carry_activation=self.carry_activation,
            carry=self.carry,
            return_gate=return_gate,
            rematerialize=self.rematerialize,
        )

    def compute_output_spec(self, inputs, return_gate=False, **kwargs):
        outputs = super().compute_output_spec(inputs)
        gates = keras.KerasTensor((self.depth, *inputs.shape), self.compute_dtype)
        return (outputs, gates) if return_gate else outputs

    def get_config(self):
        own = {name: getattr(self, name) for name in ("depth", "units", "rematerialize")}
        return {**super().get_config(), **own}


def _shared_config(layer):
    """What a stack and its layers have in common; initializers have done their work by then."""
    own = ("depth", "rematerialize", "name", "trainable")
    config = layer.get_config()
    return {k: v for k, v in config.items() if k not in own and not k.endswith("_initializer")}
