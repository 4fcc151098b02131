"""Many identical highway layers as one layer."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Sequence

import keras
import numpy as np
from keras import ops

from highway_keras import checks
from highway_keras.depth_loop import scan
from highway_keras.layers import stacked, types
from highway_keras.layers.gated import GatedLayer
from highway_keras.layers.highway import Highway
from highway_keras.layers.options import PREFIXES, check_floating


@keras.saving.register_keras_serializable(package="highway_keras")
class HighwayStack(GatedLayer):
    """A chain of `depth` identical `Highway` layers, run as one loop over stacked weights.

    ```
    x[l + 1] = H[l](x[l]) * T[l](x[l]) + x[l] * (1 - T[l](x[l]))        l = 0 ... depth - 1
    ```

    Mathematics and options are those of the chain. What differs is the cost: unrolled, every layer
    has to be traced and compiled; the loop is compiled once, in about a second at any depth, and
    its backward pass is a hand-written exact gradient (Eq. 4 of the supplement). On a CPU,
    TensorFlow runs a loop on every core, each with its share of the batch.

    On TensorFlow a stack is differentiable once. What needs derivatives of gradients, such as a
    gradient penalty, takes the layers of `unstack()`.

    A stack knows its depth and starts accordingly: its gates are `1 / (depth + 2)`, so the carry
    path passes on more than a third of the input's amplitude, `(1 - T) ** depth`, however many
    layers there are. A stack of 1000 layers then trains like one of 10.

    Args:
        depth: Number of layers, a positive integer.
        units: Width of the layers; must equal the input's. `None` takes the input's.
        rematerialize: Whether the backward pass recomputes H and T of each layer instead of
            keeping them: less memory, more time.
        transform_bias_initializer: Start of the biases of T: an initializer, a number, or a
            sequence of `depth` numbers, one for each layer. Default: `-log(depth + 1)`, a sigmoid
            of `1 / (depth + 2)`. A gate with another activation needs its own start.
        **kwargs: The arguments of `keras.Layer`. The default `name` contains the depth, so
            `model.summary()` shows it: `"highway_stack_x50"`.

    The other arguments are those of `highway_keras.Highway`. Initializers, regularizers and
    constraints act on each layer's weights separately; `activity_regularizer` acts on the output of
    the stack, that of the last layer.

    Call arguments:
        inputs: Floating-point tensor.
        return_gate: Whether to return `(outputs, gates)` instead of outputs. The gates are T of
            every layer, `(depth, batch_size, ..., units)`.

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

    width_argument = "units"
    leading_axes = 1

    def __init__(
        self,
        depth: int,
        units: int | None = None,
        rematerialize: bool = False,
        activation: types.Activation = "relu",
        use_bias: bool = True,
        kernel_initializer: types.Initializer = "glorot_uniform",
        bias_initializer: types.Initializer = "zeros",
        kernel_regularizer: types.Regularizer = None,
        bias_regularizer: types.Regularizer = None,
        activity_regularizer: types.Regularizer = None,
        kernel_constraint: types.Constraint = None,
        bias_constraint: types.Constraint = None,
        carry: types.Carry = "coupled",
        transform_activation: types.Activation = "sigmoid",
        transform_kernel_initializer: types.Initializer = None,
        transform_bias_initializer: types.Initializer | Sequence[float] | np.ndarray = None,
        transform_kernel_regularizer: types.Regularizer = None,
        transform_bias_regularizer: types.Regularizer = None,
        transform_kernel_constraint: types.Constraint = None,
        transform_bias_constraint: types.Constraint = None,
        carry_activation: types.Activation = "sigmoid",
        carry_kernel_initializer: types.Initializer = None,
        carry_bias_initializer: types.Initializer = None,
        carry_kernel_regularizer: types.Regularizer = None,
        carry_bias_regularizer: types.Regularizer = None,
        carry_kernel_constraint: types.Constraint = None,
        carry_bias_constraint: types.Constraint = None,
        **kwargs: types.Unpack[types.LayerArguments],
    ):
        given = transform_bias_initializer
        depth = checks.positive_integer("depth", depth)
        transform_bias_initializer = _start_of_gates(given, depth)
        kwargs["name"] = kwargs.get("name") or _name(depth)
        super().__init__(locals())
        self.depth = depth
        self.units = checks.positive_integer("units", units, or_none="the width of the input")
        self.rematerialize = bool(rematerialize)
        self._starts_by_depth = given is None

    @classmethod
    def from_layers(cls, layers: Iterable[Highway], name: str | None = None) -> HighwayStack:
        """Return the stack that computes what a chain of built `Highway` layers computes.

        Args:
            layers: Built `Highway` layers with the same width and options. Only the last one may
                have an `activity_regularizer`.
            name: Name of the stack.

        Returns:
            A built `HighwayStack` with copies of their weights.

        Raises:
            ValueError: If there are none, one is not built, or their options differ.
        """
        layers = list(layers)
        if not layers or not all(type(layer) is Highway and layer.built for layer in layers):
            raise ValueError(
                f"`layers` must be one or more built `Highway` layers. Received: layers={layers!r}."
            )
        config = {**_common_config(layers), **_activations(layers[0]), "name": name}
        stack = cls(len(layers), **config)
        stack.output_regularizer = layers[-1].output_regularizer
        stack.build((None, stack.units))
        merged = [layer.merged_weights for layer in layers]
        for index, weight in enumerate(stack.weights):
            values = [ops.convert_to_numpy(weights[index]) for weights in merged]
            weight.assign(np.stack(values))
        return stack

    def unstack(self) -> list[Highway]:
        """Return built `Highway` layers whose chain computes what this built stack computes.

        Raises:
            ValueError: If the stack is not built.
        """
        if not self.built:
            raise ValueError(
                "Only a built stack has weights to copy: call it or `build` it first. "
                f"Received: {self.name!r}, which is not built."
            )
        config = {**_shared_config(self), **_activations(self)}
        layers = [Highway(**{**config, "name": f"{self.name}_{i}"}) for i in range(self.depth)]
        layers[-1].output_regularizer = self.output_regularizer
        for index, layer in enumerate(layers):
            layer.build((None, self.kernel.shape[-1]))
            for weight, stacked_weight in zip(layer.weights, self.merged_weights, strict=True):
                weight.assign(stacked_weight[index])
        return layers

    def kernel_shape(self, prefix, input_shape):
        return (self.depth, input_shape[-1], input_shape[-1])

    def bias_shape(self, kernel_shape):
        return (self.depth, kernel_shape[-1])

    def summed_axes(self, kernel_shape):
        return (1,)

    def weight_initializer(self, initializer):
        return stacked.initializer(initializer)

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
        names = ("depth", "units", "rematerialize")
        config = {**super().get_config(), **{name: getattr(self, name) for name in names}}
        if self._starts_by_depth:
            config["transform_bias_initializer"] = None
        return config


def _name(depth):
    """Return a name that no layer has yet: Keras shows nothing else of a layer's own."""
    name = f"highway_stack_x{depth}"
    count = keras.backend.get_uid(name)
    return name if count == 1 else f"{name}_{count - 1}"


def _start_of_gates(given, depth):
    """Return the start of the biases of T: what was given, or T = 1 / (depth + 2)."""
    if given is None:
        return -math.log(depth + 1)
    if isinstance(given, list | tuple | np.ndarray):
        return stacked.ByLayer(given)
    return given


def _shared_config(layer):
    """Return what a stack and its layers share; initializers have done their work by then."""
    apart = ("depth", "rematerialize", "name", "activity_regularizer")
    config = layer.get_config()
    return {k: v for k, v in config.items() if k not in apart and not k.endswith("_initializer")}


def _activations(layer):
    """Return the activations themselves: a name may be both the user's and one of Keras's."""
    return {f"{prefix}activation": getattr(layer, f"{prefix}activation") for prefix in PREFIXES}


def _other_functions(first, layer):
    """Return the activations of `layer` that are other functions of the same name."""
    theirs, activations = _activations(layer), _activations(first).items()
    return [name for name, f in activations if inspect.isfunction(f) and f is not theirs[name]]


def _common_config(layers):
    """Return the configuration that built `Highway` layers have in common."""
    first, *others = ({**_shared_config(x), "units": x.kernel.shape[0]} for x in layers)
    for layer, config in zip(layers[1:], others, strict=True):
        odd = [option for option in first if config[option] != first[option]]
        odd = odd or _other_functions(layers[0], layer)
        if odd:
            raise ValueError(
                "`layers` must have the same options, apart from initializers. Received: "
                f"{layer.name} differs from {layers[0].name} in {', '.join(odd)}."
            )
    penalized = [x.name for x in layers[:-1] if x.output_regularizer is not None]
    if penalized:
        raise ValueError(
            "Only the last of `layers` may have an `activity_regularizer`: that of a stack acts on "
            f"its output. Received: {', '.join(penalized)} with one."
        )
    return first
