"""A highway layer is two or three Keras layers and a formula."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from highway_keras import initializers
from highway_keras.layers import activations, arguments
from highway_keras.ops import agree, highway
from highway_keras.util import checks

OPEN_SIDE = 64  # stands in for an axis of unknown size when sublayers are tried
_ACTIVATIONS = "activations"  # the entry for their names beside the weights in a file
# The sublayers that have each activation
_PARTS = {"activation": ("block",), "transform_activation": ("transform", "carry")}
# The options of H, T and C, each with the module whose `get` and `serialize` handle it.
OPTIONS = {
    "activation": activations,
    "transform_activation": activations,
    "kernel_initializer": initializers,
    "bias_initializer": initializers,
    "kernel_regularizer": keras.regularizers,
    "bias_regularizer": keras.regularizers,
    "kernel_constraint": keras.constraints,
    "bias_constraint": keras.constraints,
    "transform_kernel_initializer": initializers,
    "transform_bias_initializer": initializers,
}


class GatedLayer(keras.Layer):
    """Base of the highway layers: `y = H(x) * T(x) + x * C(x)`.

    H, T and, if it is learned, C are the sublayers `block`, `transform` and `carry`, Keras layers
    that keep the shape of their input; `carry` is `None` if C = 1 - T. A subclass makes them in
    `make_sublayer`. They own the weights, regularizers, constraints, adapters and int8 kernels.

    `own_arguments` names the arguments that a subclass adds to those that all highway layers share.
    """

    own_arguments: tuple[str, ...]
    block: keras.Layer | None
    transform: keras.Layer | None
    carry: keras.Layer | None

    kernel = property(lambda self: self.block.kernel)
    bias = property(lambda self: self.block.bias)
    transform_kernel = property(lambda self: self.transform.kernel)
    transform_bias = property(lambda self: getattr(self.transform, "bias", None))
    carry_kernel = property(lambda self: self.carry.kernel)
    carry_bias = property(lambda self: self.carry.bias)
    learned_carry = property(lambda self: self.carry_mode == "learned")

    # `__setattr__` stores it as `output_regularizer`: Keras would apply it to the gate, too.
    activity_regularizer = None

    def __init__(self, carry, activity_regularizer, use_bias=True, **arguments):
        options = {name: arguments.pop(name, None) for name in OPTIONS}
        super().__init__(activity_regularizer=activity_regularizer, **arguments)
        # Not class attributes: PyTorch stores layers apart, and lookup would find the None first.
        self.block = self.transform = self.carry = None
        self._made = []  # names of the sublayers that are not the user's own
        self._changed = {}  # by those names: options that a saved configuration changed
        self._refused = None  # activations of weights that do not fit
        for name, module in OPTIONS.items():
            setattr(self, name, module.get(options[name]))
        if options["transform_kernel_initializer"] is None:
            # Like H's, but with other draws. The offset is beyond the seeds that a stack derives
            # for its layers by counting up.
            self.transform_kernel_initializer = initializers.reseeded(
                self.kernel_initializer, offset=2**20
            )
        if options["transform_bias_initializer"] is None:
            self.transform_bias_initializer = initializers.get(-2.0)
        self.carry_mode = checks.one_of("carry", carry, ("coupled", "learned"))  # `carry` is C
        self.use_bias = bool(use_bias)
        self.supports_masking = True
        self.input_spec = keras.InputSpec(min_ndim=2)  # of one input

    def make_sublayer(self, input_shape: tuple, name: str, **options: Any) -> keras.Layer:
        """Return a new layer for H (of the name "block"), T ("transform") or C ("carry")."""
        raise NotImplementedError

    def build(self, input_shape):
        gate = self._part_activation("transform_activation")
        # Each with its activation and the initializers of its kernel and bias
        h = self._part_activation("activation"), self.kernel_initializer, self.bias_initializer
        t = gate, self.transform_kernel_initializer, self.transform_bias_initializer
        self._add_sublayer("block", input_shape, *h, use_bias=self.use_bias)
        self._add_sublayer("transform", input_shape, *t)
        if self.learned_carry:
            c = gate, Negated(self, "transform_kernel"), Negated(self, "transform_bias")
            self._add_sublayer("carry", input_shape, *c)
        self.input_spec = self.transform.input_spec

    def __setattr__(self, name, value):
        name = "output_regularizer" if name == "activity_regularizer" else name
        super().__setattr__(name, value)
        for part in _PARTS.get(name, ()):
            if part in getattr(self, "_made", ()):  # an activation may change later, as in Keras
                getattr(self, part).activation = self._part_activation(name)

    def _part_activation(self, name):
        """Return an activation as sublayers get it."""
        in_16_bits = self.compute_dtype in ("bfloat16", "float16")
        gate = in_16_bits and name == "transform_activation"
        return _in_float32(getattr(self, name)) if gate else getattr(self, name)

    def _add_sublayer(self, name, input_shape, activation, kernel_start, bias_start, **options):
        layer = getattr(self, name)
        if layer is None:
            options |= {
                "activation": activation,
                "kernel_initializer": kernel_start,
                "bias_initializer": bias_start,
                "dtype": self.dtype_policy,
                "trainable": self.trainable,
                "kernel_regularizer": self.kernel_regularizer,
                "bias_regularizer": self.bias_regularizer,
                "kernel_constraint": self.kernel_constraint,
                "bias_constraint": self.bias_constraint,
            }
            options |= keras.saving.deserialize_keras_object(self._changed.get(name, {}))
            layer = self.make_sublayer(input_shape, name=name, **options)
            layer.supports_masking = True  # else Keras warns; the gated layer passes the mask on
            setattr(self, name, layer)
            self._made.append(name)
        self._check_keeps_shape(name, layer, input_shape)

    def _check_keeps_shape(self, name, layer, input_shape):
        # An unknown size agrees with any other, so also try a concrete one in its place.
        probe = (input_shape[0], *(OPEN_SIDE if n is None else n for n in input_shape[1:]))
        seen = len(layer._inbound_nodes)
        for before in dict.fromkeys((tuple(input_shape), probe)):
            inputs = keras.KerasTensor(before, self.compute_dtype)
            try:
                outputs = self.block_state(inputs) if name == "block" else layer(inputs)
            except Exception:
                if before == tuple(input_shape):
                    raise
                continue  # a user's layer may have a limit, such as a table of positions
            shape = keras.tree.map_structure(lambda y: tuple(y.shape), outputs)
            if not agree(shape, before):
                received = ", ".join(f"{one}={getattr(self, one)!r}" for one in self.own_arguments)
                remedy = "Change the size before this layer, by a plain layer (the paper's way) or "
                remedy += "`highway_keras.MatchSize`."
                if getattr(layer, "return_sequences", True) is False:  # a recurrent layer
                    remedy = f"Pass return_sequences=True to {layer.name!r}."
                raise ValueError(
                    f"A `{type(self).__name__}` blends its input with its block state, so both "
                    f"must have one shape. Received: {received}, input_shape={before}, which "
                    f"`{name}` turns into {shape}. {remedy}"
                )
        # Forget these calls: Keras numbers the calls of a layer in a saved model, and a model may
        # also use the user's layer elsewhere.
        del layer._inbound_nodes[seen:]

    def block_state(self, inputs, **arguments):
        """Return H(x)."""
        return self.block(inputs, **arguments)

    def call(self, inputs, return_gate=False, **of_block):
        checks.floating("inputs", keras.backend.standardize_dtype(inputs.dtype))
        # The gates first: attention removes the mask of its input.
        t, c = self.transform(inputs), None if self.carry is None else self.carry(inputs)
        h = self.block_state(inputs, **of_block)
        # The sublayers of a `HighwayWrapper` may have dtypes of their own.
        h, t, c = (z if z is None else ops.cast(z, self.compute_dtype) for z in (h, t, c))
        outputs = highway(inputs, h, t, c)
        return (outputs, t) if return_gate else outputs

    def __call__(self, *args, **kwargs):
        results = super().__call__(*args, **kwargs)
        outputs = results[0] if isinstance(results, tuple) else results
        # Not in `call`, which Keras may rematerialize: its gradient would leave the penalty out.
        if self.output_regularizer is not None and ops.is_tensor(outputs):
            loss = self.output_regularizer(outputs)
            # Per sample and 0 for an empty batch, as in Keras.
            self.add_loss(ops.divide_no_nan(loss, ops.cast(ops.shape(outputs)[0], loss.dtype)))
        return results

    def quantized_call(self, *args, **kwargs):
        return self.call(*args, **kwargs)  # the sublayers are quantized

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def compute_output_spec(self, inputs, return_gate=False, **kwargs):
        checks.floating("inputs", keras.backend.standardize_dtype(inputs.dtype))
        if kwargs:  # of the user's layer H, which knows whether they are right
            spec = keras.Operation.compute_output_spec
            return spec(self, inputs, return_gate=return_gate, **kwargs)
        outputs, gate = (keras.KerasTensor(inputs.shape, self.compute_dtype) for _ in range(2))
        return (outputs, gate) if return_gate else outputs

    @property
    def sublayers(self) -> list[keras.Layer]:
        """H, T and, if it is learned, C."""
        if not self.built:
            raise ValueError(f"{self.name!r} is not built: call it or `build` it first.")
        return [layer for layer in (self.block, self.transform, self.carry) if layer is not None]

    def enable_lora(
        self,
        rank: int,
        lora_alpha: float | None = None,
        a_initializer: arguments.Initializer = "he_uniform",
        b_initializer: arguments.Initializer = "zeros",
    ) -> None:
        """Freeze the kernels of H, T and C, and train a low-rank adapter for each.

        This calls the sublayers' own `enable_lora`. Biases stay trainable. A saved model loads with
        the adapters merged into the kernels, as an ordinary layer.

        Args:
            rank: Rank of the adapters.
            lora_alpha: The adapters' output is scaled by `lora_alpha / rank`. Default: `rank`.
            a_initializer, b_initializer: Initializers of the two factors. With zeros for `b`, the
                layer computes the same as before until it is trained.

        Raises:
            ValueError: If the layer is not built, already has adapters, or constrains its kernels.
            NotImplementedError: For a `HighwayStack`, or if Keras has no adapters for a sublayer.

        Examples:
            >>> from highway_keras import Highway
            >>> layer = Highway()
            >>> layer.build((None, 100))
            >>> layer.enable_lora(rank=2)
            >>> lora = [w for w in layer.trainable_weights if w.name.startswith("lora_kernel")]
            >>> [tuple(w.shape) for w in lora]
            [(100, 2), (2, 100), (100, 2), (2, 100)]

        Reference:
            [Hu et al., 2021](https://arxiv.org/abs/2106.09685)
        """
        for layer in self.sublayers:
            if not hasattr(layer, "enable_lora"):
                raise NotImplementedError(
                    f"Keras has no adapters for the layer {layer.name!r} in {self.name!r}."
                )
        for layer in self.sublayers:
            layer.enable_lora(rank, lora_alpha, a_initializer, b_initializer)

    def quantize(self, mode: str | None = None, type_check: bool = True, config: Any = None):
        """Quantize H, T and C in place, as `keras.Model.quantize` does; see `keras.layers.Dense`.

        Raises:
            NotImplementedError: For a `HighwayStack`, or if Keras cannot quantize a sublayer. It
                has no int8 for convolutions.
        """
        for layer in self.sublayers:
            layer.quantize(mode, type_check=type_check, config=config)

    def save_own_variables(self, store):
        super().save_own_variables(store)
        if self.built:
            store[_ACTIVATIONS] = np.frombuffer(self._activation_names().encode(), "uint8")

    def load_own_variables(self, store):
        if not self.built:  # which Keras reports
            return super().load_own_variables(store)
        store = {key: store[key] for key in store.keys()}
        # Weights of another activation would load just as well, and compute something else.
        own = self._activation_names()
        if store:
            self._refused = None
        saved = np.asarray(store.pop(_ACTIVATIONS, (self._refused or own).encode()))
        saved = saved.tobytes().decode()
        if saved != own:
            # Keras may come again, by another attribute of the model and with an empty store, and
            # would forget what was refused.
            self._refused = saved
            for part in self._flatten_layers(include_self=False):  # which Keras loads all the same
                part.load_own_variables = self._refuse
            raise ValueError(
                f"The weights of {self.name!r} need the `activation` and `transform_activation` "
                f"that they were trained with. Received: {saved} in the file, {own} in the layer."
            )
        for part in self._flatten_layers(include_self=False):
            vars(part).pop("load_own_variables", None)
        super().load_own_variables(store)

    def _refuse(self, store):
        raise ValueError(f"The weights of {self.name!r} were refused.")

    def _activation_names(self):
        return ", ".join(getattr(f, "__name__", type(f).__name__) for f in self.activations)

    @property
    def activations(self):
        """The activations of H and T; `None` where a layer of the user's has none.

        They may have been changed on `block` and `transform`.
        """
        block = getattr(self.block, "activation", self.activation)
        return block, self._activation("transform_activation", "transform")

    def _activation(self, name, part):
        made = getattr(self, part).activation if part in self._made else getattr(self, name)
        return getattr(made, "of", made)

    def get_config(self):
        config = super().get_config()
        changed = {**self._changed}
        for name in self._made:  # Keras or a user may change them one by one
            layer = getattr(self, name)
            quantization = getattr(layer, "quantization_config", None)
            now = {
                "dtype": keras.dtype_policies.serialize(layer.dtype_policy),
                "trainable": layer.trainable,
                "quantization_config": keras.saving.serialize_keras_object(quantization),
            }
            changed[name] = {k: v for k, v in now.items() if v != config.get(k)}
        gate, of_carry = (
            activations.serialize(self._activation("transform_activation", part))
            for part in ("transform", "carry")
        )
        if "carry" in self._made and of_carry != gate:
            changed["carry"]["activation"] = of_carry
        if any(changed.values()):
            config["sublayers"] = changed
        return {
            **config,
            **{name: of.serialize(getattr(self, name)) for name, of in OPTIONS.items()},
            "activation": activations.serialize(self._activation("activation", "block")),
            "transform_activation": gate,
            "activity_regularizer": keras.regularizers.serialize(self.output_regularizer),
            "use_bias": self.use_bias,
            "carry": self.carry_mode,
            **{name: getattr(self, name) for name in self.own_arguments},
        }

    @classmethod
    def from_config(cls, config):
        config = {**config}
        changed = config.pop("sublayers", {})
        layer = super().from_config(config)
        layer._changed = changed
        return layer


def common(arguments):
    """Return those of a subclass's arguments that every gated layer takes."""
    names = (*OPTIONS, "carry", "activity_regularizer", "use_bias")
    return {name: arguments[name] for name in names} | arguments["kwargs"]


class Negated(keras.initializers.Initializer):
    """The initializer that negates a weight of T: C = sigmoid(-z) = 1 - sigmoid(z).

    A class for the same reason as `stacked.Start`; Keras's, so that C has a configuration.
    """

    def __init__(self, layer, name):
        self.layer, self.name = layer, name

    def __call__(self, shape, dtype=None):
        return -ops.cast(getattr(self.layer, self.name), dtype)


def _in_float32(activation):
    """Return a gate's activation computed in float32, for layers that compute in 16 bits.

    Float32 is more exact and, on a CPU, faster: a sigmoid in bfloat16 takes three times as long,
    and float32 saves 7 % of a training step of Highway B.
    """

    def gate(z):
        return ops.cast(activation(ops.cast(z, "float32")), z.dtype)

    gate.of = activation
    return gate
