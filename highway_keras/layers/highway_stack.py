"""Many identical highway layers as one layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import keras
import numpy as np
from keras import ops

from highway_keras.layers import arguments, stacked
from highway_keras.layers.depth_loop import scan
from highway_keras.layers.gated import GatedLayer, Negated, common
from highway_keras.layers.highway import Highway
from highway_keras.util import checks

UNDIVIDED = (
    "A `HighwayStack` takes neither low-rank adapters nor int8. The layers that its `unstack()` "
    "returns do."
)


@keras.saving.register_keras_serializable(package="highway_keras")
class HighwayStack(GatedLayer):
    """A chain of `depth` identical `Highway` layers, run as one loop over stacked weights.

    ```
    x[l + 1] = H[l](x[l]) * T[l](x[l]) + x[l] * (1 - T[l](x[l]))        l = 0 ... depth - 1
    ```

    A stack computes what the chain computes, with the same options; only the cost differs, and, in
    16 bits, the gates, which a `Highway` alone computes in float32. In a chain, every layer has to
    be traced and compiled; the loop is compiled once for each number of rows (batch size times
    steps), in about a second at any depth, and its backward pass is a hand-written exact gradient
    (Eq. 9 of the paper). On a CPU, TensorFlow runs a loop on every core, each with its share
    of the batch.

    An optimizer's `clipnorm` sees the weights of all layers as one: use `global_clipnorm`, or the
    chain. So do Lamb and Adafactor where they scale an update: use the chain. Muon trains the
    kernels of a chain only; those of a stack get AdamW, and Keras's Muon takes a stack's biases for
    a matrix.

    On TensorFlow a stack is differentiable only once, and on JAX not in forward mode. For those
    derivatives, such as a gradient penalty's, and for low-rank adapters and int8, use the layers of
    `unstack()`. On PyTorch the loop is a plain one, and autodiff gives its gradient.

    A stack knows its depth and starts accordingly: its gates start at `1 / (depth + 2)`, so at any
    depth the carry path passes on more than a third of the input's amplitude, `(1 - T) ** depth`.
    That suits tanh; with relu, the default `activation`, some deep stacks diverge or hardly train
    from there, and need about -6.

    Args:
        depth: Number of layers, a positive integer.
        units: Width of the layers; must equal the input's. `None` takes the input's.
        transform_bias_initializer: Initializer of the biases of T, a number, or a sequence of
            `depth` numbers, one for each layer. Default: `-log(depth + 1)`, whose sigmoid is
            `1 / (depth + 2)`. Choose another value for another `transform_activation`.
        rematerialize: Whether the backward pass recomputes H and T of each layer instead of
            keeping them: less memory, more time.
        **kwargs: The arguments of `keras.Layer`. The default `name` contains the depth, so
            `model.summary()` shows it: `"highway_stack_x50"`.

    The other arguments are those of `highway_keras.Highway`. Initializers, regularizers and
    constraints act on each layer's weights separately; `activity_regularizer` acts on the output of
    the stack, that of the last layer.

    Call arguments:
        inputs: Floating-point tensor.
        return_gate: Whether to return `(outputs, gates)` instead of outputs. The gates are T of
            every layer, `(depth, batch_size, ..., units)`. If a model returns them, put the batch
            first with `keras.ops.moveaxis(gates, 0, 1)`: `predict` joins batches on that axis.

    Input shape:
        `(batch_size, ..., units)`, any rank from 2 on. A Keras mask is passed on.

    Output shape:
        That of the input.

    `kernel`, `bias`, `transform_kernel`, `transform_bias` and, if C is learned, `carry_kernel` and
    `carry_bias` are the weights of all layers, stacked along a first axis of `depth`.

    Raises:
        ValueError: If `units` differs from the width of the input, or `depth` is not positive.
        TypeError: If the input is not floating point.

    Examples:
        >>> import keras
        >>> from highway_keras import HighwayStack
        >>> model = keras.Sequential([keras.Input((50,)), HighwayStack(1000)])
        >>> model.count_params()
        5100000

    Reference:
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228), section 2 and appendix A.
    """

    own_arguments = ("depth", "units", "rematerialize")
    # Weights of its own in place of sublayers.
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
        transform_bias_initializer: arguments.Initializer | Sequence[float] | np.ndarray = None,
        rematerialize: bool = False,
        **kwargs: arguments.Unpack[arguments.LayerArguments],
    ):
        self.depth = checks.positive_integer("depth", depth)
        self.starts_by_depth = transform_bias_initializer is None
        if self.starts_by_depth:
            transform_bias_initializer = -math.log(depth + 1)
        elif isinstance(transform_bias_initializer, list | tuple | np.ndarray):
            transform_bias_initializer = stacked.ByLayer(transform_bias_initializer)
        if not kwargs.get("name"):  # Keras's summary shows nothing else of a layer's own
            name = f"highway_stack_x{depth}"
            count = keras.backend.get_uid(name)
            kwargs["name"] = name if count == 1 else f"{name}_{count - 1}"
        super().__init__(**common(locals()))
        self.units = checks.positive_integer("units", units, or_none="the width of the input")
        self.rematerialize = checks.flag("rematerialize", rematerialize)

    def build(self, input_shape):
        if self.quantization_mode is not None:  # by the dtype
            raise NotImplementedError(UNDIVIDED)
        width = input_shape[-1]
        if width is None or self.units not in (None, width):
            raise ValueError(
                "`units` must equal the width of the input, because a layer blends its input "
                f"with its block state. Received: units={self.units}, "
                f"input_shape={tuple(input_shape)}."
            )
        for name in ("activation", "transform_activation"):
            function = getattr(self, name)
            if isinstance(function, keras.Layer):
                function.build(input_shape)
                if function.variables:
                    raise ValueError(
                        f"`{name}` must have no weights, which the loop could not train, and draw "
                        "no random numbers: use a chain of `Highway` layers. "
                        f"Received: {name}={function!r}."
                    )
        for name in ("kernel", "bias", "transform_kernel", "transform_bias"):
            if name != "bias" or self.use_bias:
                self._add(name, width, stacked.Start(getattr(self, f"{name}_initializer")))
        for name in ("kernel", "bias") if self.learned_carry else ():
            self._add(f"carry_{name}", width, Negated(self, f"transform_{name}"))
        self.input_spec = keras.InputSpec(min_ndim=2, axes={-1: width})

    def _add(self, name, width, start):
        kind = "kernel" if name.endswith("kernel") else "bias"
        weight = self.add_weight(
            name=name,
            shape=(self.depth, width, width) if kind == "kernel" else (self.depth, width),
            initializer=start,
            regularizer=stacked.regularizer(getattr(self, f"{kind}_regularizer")),
            constraint=stacked.constraint(getattr(self, f"{kind}_constraint")),
        )
        setattr(self, name, weight)

    def call(self, inputs, return_gate=False):
        checks.floating("inputs", keras.backend.standardize_dtype(inputs.dtype))
        return self.scan(inputs, return_gate=return_gate, rematerialize=self.rematerialize)

    def scan(self, inputs, **options):
        """Return what `depth_loop.scan` returns with the weights and options of this stack."""
        return scan(
            inputs,
            *joint_weights(self),
            activation=self.activation,
            transform_activation=self.transform_activation,
            carry=self.carry_mode,
            **options,
        )

    def compute_output_spec(self, inputs, return_gate=False, **kwargs):
        outputs = super().compute_output_spec(inputs)
        gates = keras.KerasTensor((self.depth, *inputs.shape), self.compute_dtype)
        return (outputs, gates) if return_gate else outputs

    @classmethod
    def from_layers(cls, layers: Iterable[Highway], name: str | None = None) -> HighwayStack:
        """Return the stack that computes what a chain of built `Highway` layers computes.

        Args:
            layers: Built `Highway` layers with the same width and options. Only the last one may
                have an `activity_regularizer`. Adapters are merged into the kernels.
            name: Name of the stack.

        Returns:
            A built `HighwayStack` with copies of their weights.

        Raises:
            ValueError: If there are none, one is not built, quantized or frozen in part, has
                gates of two activations, or their options differ.
        """
        layers = list(layers)
        fit = all(type(layer) is Highway and layer.built for layer in layers)
        if not (layers and fit and all(map(_is_uniform, layers))):
            raise ValueError(
                "`layers` must be one or more built `Highway` layers, neither quantized nor frozen "
                f"in part, with one activation of all gates. Received: layers={layers!r}."
            )
        options = _options(layers[0])
        shape = layers[0].transform_bias.shape
        starts = [layer.transform_bias_initializer(shape, dtype="float32") for layer in layers]
        starts = np.stack([ops.convert_to_numpy(start) for start in starts])
        if not np.ptp(starts, axis=1).any():  # each layer's is a constant
            options["transform_bias_initializer"] = starts[:, 0]
        odd = {k for layer in layers for k, v in _options(layer).items() if options[k] != v}
        if any(layer.output_regularizer for layer in layers[:-1]):
            odd.add("activity_regularizer")
        if odd:
            raise ValueError(
                "`layers` must have the same options, apart from initializers, and only the last "
                f"may have an `activity_regularizer`. Received: others in {', '.join(odd)}."
            )
        stack = cls(len(layers), **options, name=name)
        stack.output_regularizer = layers[-1].output_regularizer
        stack.build((None, stack.units))
        for weight in stack.weights:
            of_layers = [getattr(layer, weight.name) for layer in layers]
            weight.assign(np.stack([ops.convert_to_numpy(w) for w in of_layers]))
        return stack

    def unstack(self) -> list[Highway]:
        """Return built `Highway` layers whose chain computes what this built stack computes.

        Raises:
            ValueError: If the stack is not built.
        """
        if not self.built:
            raise ValueError(f"{self.name!r} is not built: call it or `build` it first.")
        start = self.transform_bias_initializer
        starts = start.values if isinstance(start, stacked.ByLayer) else [start] * self.depth
        layers = [
            Highway(**_options(self), transform_bias_initializer=b, name=f"{self.name}_layer{i}")
            for i, b in enumerate(starts)
        ]
        layers[-1].output_regularizer = self.output_regularizer
        for index, layer in enumerate(layers):
            layer.build((None, layer.units))
            for weight in self.weights:
                getattr(layer, weight.name).assign(weight[index])
        return layers

    @property
    def sublayers(self):
        """Raise `NotImplementedError`: a stack has none to take adapters or to be quantized."""
        raise NotImplementedError(UNDIVIDED)

    def get_config(self):
        config = super().get_config()
        if self.starts_by_depth:
            config["transform_bias_initializer"] = None
        return config


def _is_uniform(layer):
    """Return whether H, T and C are in floating point, and train, and close, as one layer."""
    gates = {layer._activation("transform_activation", part) for part in layer._made[1:]}
    plain = all(not p.quantization_mode and p.trainable == layer.trainable for p in layer.sublayers)
    return plain and len(gates) == 1


def joint_weights(stack: HighwayStack):
    """Return kernels [H | T | C] side by side, and biases, as `depth_loop.scan` takes them.

    Their shapes are `(depth, d, m * d)` and `(depth, m * d)` with m = 2, or 3 if C is learned.
    """
    kernels = [stack.kernel, stack.transform_kernel]
    biases = [stack.bias, stack.transform_bias]
    if stack.bias is None:
        biases[0] = ops.zeros_like(ops.convert_to_tensor(stack.transform_bias))
    if stack.learned_carry:
        kernels.append(stack.carry_kernel)
        biases.append(stack.carry_bias)
    return ops.concatenate(kernels, axis=-1), ops.concatenate(biases, axis=-1)


def _options(layer):
    """Return the arguments that a built stack and its layers share, apart from initializers."""
    apart = ("name", "depth", "rematerialize", "activity_regularizer", "sublayers")
    config = {**layer.get_config(), "units": layer.transform_kernel.shape[-1]}
    config = {k: v for k, v in config.items() if k not in apart and not k.endswith("initializer")}
    names = ("activation", "transform_activation")
    for name, function in zip(names, layer.activations, strict=True):
        if isinstance(function, keras.Layer):
            config[name]["config"].pop("name", None)  # its automatic one
        elif not hasattr(function, "get_config"):
            config[name] = function  # not its name: a user's may be called like Keras's
    return config
