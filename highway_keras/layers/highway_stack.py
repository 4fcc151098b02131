"""Many identical highway layers as one layer."""

from __future__ import annotations

import math
from collections.abc import Iterable

import keras
import numpy as np
from keras import ops

from highway_keras.layers import arguments, stacked
from highway_keras.layers.depth_loop import apply_blocks
from highway_keras.layers.gated import Negated
from highway_keras.layers.highway import Highway
from highway_keras.layers.highway_base import OF_WEIGHTS, HighwayBase
from highway_keras.util import checks


@keras.saving.register_keras_serializable(package="highway_keras")
class HighwayStack(HighwayBase):
    """A chain of `depth` identical `Highway` layers, run as one loop over stacked weights.

    ```
    x[l + 1] = H[l](x[l]) * T[l](x[l]) + x[l] * (1 - T[l](x[l]))        l = 0 ... depth - 1
    ```

    The loop is compiled once for each number of rows (batch size times steps), in about a second at
    any depth, and its backward pass is a hand-written exact gradient (Eq. 9 of the paper). On a
    CPU, TensorFlow runs one loop per core, each on its share of the batch; `jit_compile=True` in
    `compile`, which Keras leaves off, makes a step slower there. In 16 bits, a stack also
    computes its gates in 16 bits, while a `Highway` layer computes them in float32.

    Use the layers of `unstack()` for second derivatives on TensorFlow, forward mode on JAX,
    low-rank adapters, int8, and optimizers that treat each weight by itself: `clipnorm`
    (`global_clipnorm` suits a stack), Lamb, Adafactor, and Muon, which leaves the kernels of a
    stack to AdamW. On PyTorch the loop is a plain one, and autodiff gives its gradient.

    The gates of a stack start at `1 / (depth + 2)`, so at any depth the carry path passes on more
    than a third of the input's amplitude, `(1 - T) ** depth`. That suits tanh; with relu, the
    default `activation`, some deep stacks diverge or hardly train from there, and need about -6.

    Args:
        depth: Number of layers, a positive integer.
        units: Width of the layers; must equal the input's. `None` takes the input's.
        transform_bias_initializer: Initializer of the biases of T, or a number. Default:
            `-log(depth + 1)`, whose sigmoid is `1 / (depth + 2)`.
        rematerialize: Whether the backward pass recomputes H and T of each layer instead of
            keeping them: less memory, more time.
        **kwargs: The arguments of `keras.Layer`.

    The other arguments are those of `highway_keras.Highway`. Initializers, regularizers and
    constraints act on each layer's weights separately; `activity_regularizer` acts on the output of
    the last layer.

    Call arguments:
        inputs: Floating-point tensor.
        return_gate: Whether to return `(outputs, gates)` instead of outputs. The gates are T of
            every layer, `(depth, batch_size, ..., units)`. If a model returns them, put the batch
            first with `keras.ops.moveaxis(gates, 0, 1)`: `predict` joins batches on that axis.

    Input shape:
        `(batch_size, ..., units)`, any rank from 2 on. A Keras mask is passed on.

    Output shape:
        The shape of the input.

    `kernel`, `bias`, `transform_kernel`, `transform_bias` and, if C is learned, `carry_kernel` and
    `carry_bias` are the weights of all layers, stacked along a first axis of `depth`. `gate(x)`
    returns the gates alone.

    Raises:
        ValueError: If `units` differs from the width of the input, `depth` is not positive, or an
            activation is a layer.

    Examples:
        >>> import keras
        >>> from highway_keras import HighwayStack
        >>> model = keras.Sequential([keras.Input((50,)), HighwayStack(1000)])
        >>> model.count_params()
        5100000

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 2 and appendix A.
    """

    # Weights in place of sublayers
    kernel = bias = transform_kernel = transform_bias = carry_kernel = carry_bias = None

    def __init__(
        self,
        depth: int,
        units: int | None = None,
        activation: arguments.Activation = "relu",
        use_bias: bool = True,
        kernel_initializer: arguments.Initializer = "glorot_uniform",
        bias_initializer: arguments.Initializer = "zeros",
        kernel_regularizer: arguments.Regularizer = None,
        bias_regularizer: arguments.Regularizer = None,
        activity_regularizer: arguments.Regularizer = None,
        kernel_constraint: arguments.Constraint = None,
        bias_constraint: arguments.Constraint = None,
        carry: arguments.Carry = "coupled",
        transform_activation: arguments.Activation = "sigmoid",
        transform_kernel_initializer: arguments.Initializer = None,
        transform_bias_initializer: arguments.Initializer = None,
        rematerialize: bool = False,
        **kwargs: arguments.Unpack[arguments.LayerArguments],
    ):
        depth = checks.positive_integer("depth", depth)
        if transform_bias_initializer is None:
            transform_bias_initializer = -math.log(depth + 1)
        super().__init__(
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            carry=carry,
            transform_activation=transform_activation,
            transform_kernel_initializer=transform_kernel_initializer,
            transform_bias_initializer=transform_bias_initializer,
            **kwargs,
        )
        for name in ("activation", "transform_activation"):
            if isinstance(getattr(self, name), keras.Layer):
                raise ValueError(
                    f"`{name}` must be a function, because the loop would not train a layer's "
                    f"variables. {checks.received(name, getattr(self, name))}"
                )
        self.depth = depth
        self.units = checks.positive_integer("units", units, or_none=True)
        self.rematerialize = rematerialize

    def build(self, input_shape):
        width = self.input_width("units", input_shape)
        for name in ("kernel", "bias", "transform_kernel", "transform_bias"):
            if name != "bias" or self.use_bias:
                start = getattr(self, f"{name}_initializer")
                self._add(name, width, stacked.StackedInitializer(start))
        if self.learned_carry:
            self._add("carry_kernel", width, Negated(self, "transform_kernel"))
            self._add("carry_bias", width, Negated(self, "transform_bias"))
        self.input_spec = keras.InputSpec(min_ndim=2, axes={-1: width})

    def _add(self, name, width, initializer):
        kind = "kernel" if name.endswith("kernel") else "bias"
        weight = self.add_weight(
            name=name,
            shape=(self.depth, width, width) if kind == "kernel" else (self.depth, width),
            initializer=initializer,
            regularizer=stacked.regularizer(getattr(self, f"{kind}_regularizer")),
            constraint=stacked.constraint(getattr(self, f"{kind}_constraint")),
        )
        setattr(self, name, weight)

    def call(self, inputs, return_gate=False):
        return apply_blocks(
            ops.cast(inputs, self.compute_dtype),
            *self.joint_weights(),
            activation=self.activation,
            transform_activation=self.transform_activation,
            return_gate=return_gate,
            rematerialize=self.rematerialize,
        )

    def gate(self, inputs):
        """Return the transform gates of all layers of a built stack, `(depth, ..., units)`."""
        return self.call(inputs, return_gate=True)[1]

    gate_bias = property(lambda self: self.transform_bias)

    def joint_weights(self):
        """Return the kernels of H, T and C side by side, `(depth, d, m * d)`, and the biases."""
        kernels = [self.kernel, self.transform_kernel]
        biases = [self.bias, self.transform_bias]
        if not self.use_bias:
            biases[0] = ops.zeros_like(ops.convert_to_tensor(self.transform_bias))
        if self.learned_carry:
            kernels.append(self.carry_kernel)
            biases.append(self.carry_bias)
        return ops.concatenate(kernels, axis=-1), ops.concatenate(biases, axis=-1)

    def compute_output_spec(self, inputs, return_gate=False):
        outputs = super().compute_output_spec(inputs)
        gates = keras.KerasTensor((self.depth, *inputs.shape), self.compute_dtype)
        return (outputs, gates) if return_gate else outputs

    @classmethod
    def from_layers(cls, layers: Iterable[Highway], name: str | None = None) -> HighwayStack:
        """Return the stack that computes what a chain of built `Highway` layers computes.

        Args:
            layers: Built `Highway` layers with the same width and options, apart from initializers.
                Adapters are merged into the kernels. The last one's `activity_regularizer` becomes
                the stack's; others are left out.
            name: Name of the stack.

        Returns:
            A built `HighwayStack` with copies of their weights.

        Raises:
            ValueError: If there are no layers, one is quantized, or their options differ.
        """
        layers = list(layers)
        options = [_options(layer) for layer in layers if layer.built]
        quantized = any(part.quantization_mode for layer in layers for part in layer.parts())
        if not options or quantized or [options[0]] * len(layers) != options:
            raise ValueError(
                "`layers` must be one or more built `Highway` layers with the same options, not "
                f"quantized. Received: layers={layers!r}."
            )
        regularizer = layers[-1].activity_regularizer
        stack = cls(len(layers), **options[0], activity_regularizer=regularizer, name=name)
        stack.build((None, stack.units))
        for weight in stack.weights:
            of_layers = [ops.convert_to_numpy(getattr(layer, weight.name)) for layer in layers]
            weight.assign(np.stack(of_layers))
        return stack

    def unstack(self) -> list[Highway]:
        """Return built `Highway` layers whose chain computes what this built stack computes."""
        layers = [
            Highway(**_options(self), name=f"{self.name}_layer{index}")
            for index in range(self.depth)
        ]
        layers[-1].activity_regularizer = self.activity_regularizer
        for index, layer in enumerate(layers):
            layer.build((None, layer.units))
            for weight in self.weights:
                getattr(layer, weight.name).assign(weight[index])
        return layers

    def get_config(self):
        return {
            **super().get_config(),
            "depth": self.depth,
            "units": self.units,
            "rematerialize": self.rematerialize,
        }


def _options(layer):
    """Return the arguments that a built stack and its layers share, apart from initializers."""
    config = layer.get_config()
    names = ("use_bias", *OF_WEIGHTS, "carry", "dtype", "trainable")
    return {
        **{name: config[name] for name in names},
        "units": layer.transform_kernel.shape[-1],
        "activation": layer.activation,  # not its name: a user's may be called like Keras's
        "transform_activation": layer.transform_activation,
    }
