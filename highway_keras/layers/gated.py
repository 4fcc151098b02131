"""A highway layer is two or three linear Keras layers and a formula."""

from __future__ import annotations

from typing import ClassVar

import keras
from keras import ops

from highway_keras import initializers
from highway_keras.ops import highway
from highway_keras.util import checks


class GatedLayer(keras.Layer):
    """Base of the highway layers: `y = H(x) * T(x) + x * C(x)`.

    H, T and C are the sublayers `block`, `transform` and `carry`, which own the weights; `carry` is
    `None` if C = 1 - T. The sublayers that `make_part` returns are linear: the highway layer
    applies the activations.
    """

    # The options that a layer keeps as attributes, with what reads and stores them
    options: ClassVar[dict] = {
        "transform_activation": keras.activations,
        "transform_kernel_initializer": initializers,
        "transform_bias_initializer": initializers,
    }
    transform_kernel = property(lambda self: self.transform.kernel)
    transform_bias = property(lambda self: getattr(self.transform, "bias", None))
    carry_kernel = property(lambda self: self.carry.kernel)
    carry_bias = property(lambda self: self.carry.bias)

    def __init__(self, carry, **kwargs):
        if "transform_bias" in kwargs:
            raise ValueError(
                "`transform_bias` must be given as `transform_bias_initializer`. "
                f"{checks.received('transform_bias', kwargs['transform_bias'])}"
            )
        options = {name: kwargs.pop(name) for name in self.options}
        super().__init__(**kwargs)
        for name, reader in self.options.items():
            setattr(self, name, reader.get(options[name]))
        # Not class attributes: on PyTorch they would hide the layers that are assigned later.
        self.block = self.transform = self.carry = None
        self.learned_carry = checks.one_of("carry", carry, ("coupled", "learned")) == "learned"
        self.supports_masking = True
        self.input_spec = keras.InputSpec(min_ndim=2)

    def make_part(self, input_shape: tuple, name: str, **options) -> keras.Layer:
        """Return a new linear layer for H ("block"), T ("transform") or C ("carry")."""
        raise NotImplementedError

    def build(self, input_shape):
        if self.transform is None:
            self.transform = self.built_part(
                "transform",
                input_shape,
                kernel_initializer=self.transform_kernel_initializer,
                bias_initializer=self.transform_bias_initializer,
            )
        if self.learned_carry and self.carry is None:
            self.carry = self.built_part(
                "carry",
                input_shape,
                kernel_initializer=Negated(self, "transform_kernel"),
                bias_initializer=Negated(self, "transform_bias"),
            )
        self.input_spec = self.transform.input_spec
        if not self.trainable:
            for part in self.parts():
                part.trainable = False

    def built_part(self, name, input_shape, **options):
        part = self.make_part(input_shape, name, dtype=self.dtype_policy, **options)
        part.supports_masking = True  # the highway layer passes the mask on
        part.build(input_shape)
        return part

    def call(self, inputs, return_gate=False, **block_arguments):
        t = self.gate(inputs)  # before H: attention removes the mask of its input
        c = None if self.carry is None else self.activated_gate(self.carry, inputs)
        h = ops.cast(self.block_state(inputs, **block_arguments), self.compute_dtype)
        outputs = highway(inputs, h, t, c)
        return (outputs, t) if return_gate else outputs

    def block_state(self, inputs, **block_arguments):
        """Return H(x)."""
        raise NotImplementedError

    def gate(self, inputs):
        """Return the transform gate T(x) of a built layer, without computing H(x)."""
        return self.activated_gate(self.transform, inputs)

    def activated_gate(self, part, inputs):
        """Return T(x) or C(x), its activation computed in at least 32 bits.

        On a CPU, a sigmoid in bfloat16 takes three times as long, and float32 saves 7 % of a
        training step of Highway B.
        """
        z = part(inputs)
        z = ops.cast(z, keras.backend.result_type(z.dtype, "float32"))
        return ops.cast(self.transform_activation(z), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def compute_output_spec(self, inputs, return_gate=False):
        outputs, gate = (keras.KerasTensor(inputs.shape, self.compute_dtype) for _ in range(2))
        return (outputs, gate) if return_gate else outputs

    @property
    def gate_bias(self) -> keras.Variable | None:
        """The variable that closes T if it is very negative.

        It is the bias or beta of the last layer of T with weights; `None` if that has neither.
        """
        last = _last_with_weights(self.transform)
        bias = getattr(last, "bias", None)
        return getattr(last, "beta", None) if bias is None else bias

    def parts(self) -> list[keras.Layer]:
        """Return H, T and, if it is learned, C of a built layer."""
        return [part for part in (self.block, self.transform, self.carry) if part is not None]

    def enable_lora(self, rank: int, lora_alpha: float | None = None, **options) -> None:
        """Freeze the kernels of H, T and C of a built layer, and train an adapter for each.

        This calls `enable_lora` of the sublayers; see `keras.layers.Dense`. Biases stay trainable.

        Args:
            rank: Rank of the adapters.
            lora_alpha: The adapters' output is scaled by `lora_alpha / rank`. Default: `rank`.
            **options: `a_initializer` and `b_initializer` of the two factors.

        Raises:
            ValueError: If the layer is not built, or a `HighwayStack`.

        Reference:
            [Hu et al., 2021](https://arxiv.org/abs/2106.09685)
        """
        if not self.parts():
            raise ValueError(
                "Adapters need the sublayers of a built layer; those of a `HighwayStack` are the "
                f"layers of its `unstack()`. Received: {self!r}."
            )
        for part in self.parts():
            part.enable_lora(rank, lora_alpha, **options)

    def get_config(self):
        config = super().get_config()
        policies = {f".*/{part.name}": part.dtype_policy for part in self.parts()}
        quantized = {path: policy for path, policy in policies.items() if policy.quantization_mode}
        if quantized and not isinstance(self.dtype_policy, keras.dtype_policies.DTypePolicyMap):
            of_parts = keras.dtype_policies.DTypePolicyMap(self.dtype_policy, quantized)
            config["dtype"] = keras.dtype_policies.serialize(of_parts)
        for name, reader in self.options.items():
            config[name] = reader.serialize(getattr(self, name))
        return {**config, "carry": "learned" if self.learned_carry else "coupled"}


def _last_with_weights(layer):
    """Return the last layer with weights of a model, or the layer itself if it is no model."""
    inner = [part for part in getattr(layer, "layers", ()) if part.weights]
    return _last_with_weights(inner[-1]) if inner else layer


@keras.saving.register_keras_serializable(package="highway_keras")
class Watched(keras.layers.Wrapper):
    """A gated layer that returns its output and its gate.

    A layer whose first call had one output cannot have two in another model, so it is wrapped.
    """

    def __init__(self, layer, **kwargs):
        super().__init__(layer, **{"name": layer.name, "dtype": layer.compute_dtype, **kwargs})
        self.supports_masking = True

    def call(self, inputs, **arguments):
        return self.layer(inputs, return_gate=True, **arguments)


class Negated(keras.initializers.Initializer):
    """The initializer that negates a weight of T: C = sigmoid(-z) = 1 - sigmoid(z).

    A class for the same reason as `StackedInitializer`.
    """

    def __init__(self, layer, name):
        self.layer, self.name = layer, name

    def __call__(self, shape, dtype=None):
        return -ops.cast(getattr(self.layer, self.name), dtype)
