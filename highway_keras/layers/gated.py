"""A highway layer is two or three linear Keras layers and a formula."""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from highway_keras import initializers
from highway_keras.layers import arguments
from highway_keras.ops import highway
from highway_keras.util import checks


class GatedLayer(keras.Layer):
    """Base of the highway layers: `y = H(x) * T(x) + x * C(x)`.

    H, T and C are the sublayers `block`, `transform` and `carry`, which own the weights; `carry` is
    `None` if C = 1 - T. Those that a subclass makes in `make_part` are linear: the highway layer
    applies the activations.
    """

    transform_kernel = property(lambda self: self.transform.kernel)
    transform_bias = property(lambda self: getattr(self.transform, "bias", None))
    carry_kernel = property(lambda self: self.carry.kernel)
    carry_bias = property(lambda self: self.carry.bias)

    def __init__(
        self,
        carry="coupled",
        activity_regularizer=None,
        transform_activation="sigmoid",
        transform_kernel_initializer="glorot_uniform",
        transform_bias_initializer=-2.0,
        **kwargs,
    ):
        if "transform_bias" in kwargs:
            raise TypeError(
                "`transform_bias` must be `transform_bias_initializer`: the weight itself is "
                f"drawn. {checks.received('transform_bias', kwargs['transform_bias'])}"
            )
        super().__init__(**kwargs)
        # Not class attributes: on PyTorch they would hide the layers that are assigned later.
        self.block = self.transform = self.carry = None
        self.learned_carry = checks.one_of("carry", carry, ("coupled", "learned")) == "learned"
        # Under Keras's own name, it would act on a returned gate, too.
        self.output_regularizer = keras.regularizers.get(activity_regularizer)
        self.transform_activation = keras.activations.get(transform_activation)
        self.transform_kernel_initializer = initializers.get(transform_kernel_initializer)
        self.transform_bias_initializer = initializers.get(transform_bias_initializer)
        self.supports_masking = True
        self.input_spec = keras.InputSpec(min_ndim=2)

    def make_part(self, input_shape: tuple, name: str, **options: Any) -> keras.Layer:
        """Return a new linear layer for H ("block"), T ("transform") or C ("carry")."""
        raise NotImplementedError

    def build(self, input_shape):
        t = self.transform_kernel_initializer, self.transform_bias_initializer
        if self.transform is None:
            self.transform = self.built_part("transform", input_shape, *t)
        if self.learned_carry and self.carry is None:
            c = Negated(self, "transform_kernel"), Negated(self, "transform_bias")
            self.carry = self.built_part("carry", input_shape, *c)
        self.input_spec = self.transform.input_spec
        if not self.trainable:
            for part in self.parts():
                part.trainable = False

    def built_part(self, name, input_shape, kernel_initializer, bias_initializer, **options):
        """Make H, T or C and build it."""
        part = self.make_part(
            input_shape,
            name,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            dtype=self.dtype_policy,
            **options,
        )
        part.supports_masking = True  # the highway layer passes the mask on
        part.build(input_shape)
        return part

    def call(self, inputs, return_gate=False, **of_block):
        t = self.gate(inputs)  # before H: attention removes the mask of its input
        c = None if self.carry is None else self.activated_gate(self.carry, inputs)
        h = ops.cast(self.block_state(inputs, **of_block), self.compute_dtype)
        outputs = highway(inputs, h, t, c)
        return (outputs, t) if return_gate else outputs

    def block_state(self, inputs, **of_block):
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

    def __call__(self, *args, **kwargs):
        results = super().__call__(*args, **kwargs)
        outputs = results[0] if isinstance(results, tuple) else results
        # Not in `call`, which Keras may rematerialize: its gradient would leave the penalty out.
        if self.output_regularizer is not None and ops.is_tensor(outputs):
            loss = self.output_regularizer(outputs)
            # Per sample and 0 for an empty batch, as in Keras
            self.add_loss(ops.divide_no_nan(loss, ops.cast(ops.shape(outputs)[0], loss.dtype)))
        return results

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def compute_output_spec(self, inputs, return_gate=False, **of_block):
        if of_block:
            self.block_state(inputs, **of_block)  # refuses arguments that H does not have
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

    def enable_lora(
        self,
        rank: int,
        lora_alpha: float | None = None,
        a_initializer: arguments.Initializer = "he_uniform",
        b_initializer: arguments.Initializer = "zeros",
    ) -> None:
        """Freeze the kernels of H, T and C of a built layer, and train an adapter for each.

        This calls `enable_lora` of the sublayers. Biases stay trainable. Keras saves the kernels
        with the adapters merged.

        Args:
            rank: Rank of the adapters.
            lora_alpha: The adapters' output is scaled by `lora_alpha / rank`. Default: `rank`.
            a_initializer, b_initializer: Initializers of the two factors. With zeros for `b`, the
                layer computes the same as before until it is trained.

        Raises:
            ValueError: If there are no sublayers: the layer is not built, or a `HighwayStack`.

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
        if not self.parts():
            raise ValueError(
                "Adapters need the sublayers of a built layer; those of a `HighwayStack` are the "
                f"layers of its `unstack()`. Received: {self!r}."
            )
        for part in self.parts():
            part.enable_lora(rank, lora_alpha, a_initializer, b_initializer)

    def get_config(self):
        config = {
            **super().get_config(),
            "carry": "learned" if self.learned_carry else "coupled",
            "activity_regularizer": keras.regularizers.serialize(self.output_regularizer),
            "transform_activation": keras.activations.serialize(self.transform_activation),
            "transform_kernel_initializer": initializers.serialize(
                self.transform_kernel_initializer
            ),
            "transform_bias_initializer": initializers.serialize(self.transform_bias_initializer),
        }
        policies = {f".*/{part.name}": part.dtype_policy for part in self.parts()}
        quantized = {path: policy for path, policy in policies.items() if policy.quantization_mode}
        of_all = self.dtype_policy
        if quantized and not isinstance(of_all, keras.dtype_policies.DTypePolicyMap):
            of_parts = keras.dtype_policies.DTypePolicyMap(of_all, quantized)
            config["dtype"] = keras.dtype_policies.serialize(of_parts)
        return config


def _last_with_weights(layer):
    """Return the last layer with weights of a model, or a layer that is none."""
    inner = [part for part in getattr(layer, "layers", ()) if part.weights]
    return _last_with_weights(inner[-1]) if inner else layer


class Negated(keras.initializers.Initializer):
    """The initializer that negates a weight of T: C = sigmoid(-z) = 1 - sigmoid(z).

    A class for the same reason as `StackedInitializer`.
    """

    def __init__(self, layer, name):
        self.layer, self.name = layer, name

    def __call__(self, shape, dtype=None):
        return -ops.cast(getattr(self.layer, self.name), dtype)
