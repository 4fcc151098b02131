"""The authors' stochastic gradient descent, and Muon for convolutions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from highway_keras.layers.backends import shim

__all__ = ["CaffeSGD", "ConvMuon"]

CLASSIFIER = "predictions"
# No penalty on biases and on what normalization learns
NO_DECAY = ("bias", "gamma", "beta", "scale")
# A name may also be that of a layer, and TensorFlow's ends with ":0".
NO_DECAY_PATTERNS = [f"{name}(:0)?$" for name in NO_DECAY]


class WholeBatchClipping:
    """Base of optimizers whose `global_clipnorm` limits the gradients of the whole batch.

    On several devices, Keras on TensorFlow limits the gradients of each replica's share.
    """

    def apply(self, grads, trainable_variables=None):
        if keras.backend.backend() == "tensorflow":
            grads = shim.clipped(grads, self.global_clipnorm)
        super().apply(grads, trainable_variables)


@keras.saving.register_keras_serializable(package="highway_keras")
class ClippedAdamW(WholeBatchClipping, keras.optimizers.AdamW):
    """Keras's AdamW."""


@keras.saving.register_keras_serializable(package="highway_keras")
class CaffeSGD(WholeBatchClipping, keras.optimizers.SGD):
    """SGD with momentum, an L2 penalty in the gradient, and another learning rate for biases.

    ```
    gradient *= min(1, global_clipnorm / norm)  # the norm of all gradients together
    g = gradient + l2 * w                 # the classifier's kernel: classifier_l2 * l2
                                          # biases and normalization: bias_l2 * l2
    v = momentum * v - rate * g           # biases: bias_rate * rate
    w += v                                # nesterov=True: w += momentum * v - rate * g
    ```

    Keras's `weight_decay` is decoupled from the gradient. The reported loss leaves the penalty out,
    as in Caffe. The classifier is the layer named `predictions`.

    Args:
        learning_rate: A number or a `keras.optimizers.schedules.LearningRateSchedule`.
        momentum: In [0, 1).
        nesterov: Whether to use Nesterov's form.
        l2: Penalty on the weights (Caffe's `weight_decay`).
        classifier_l2: Factor on `l2` for the classifier's kernel.
        bias_l2: Factor on `l2` for biases and the weights of normalization, `gamma`, `beta` and
            `scale`.
        bias_rate: Factor on the learning rate of all biases; the authors' is 2.
        **kwargs: The other arguments of `keras.optimizers.SGD`. `global_clipnorm` limits the norm
            of all gradients together, without the penalty; on several devices, of the whole batch.

    Examples:
        >>> from highway_keras.optimizers import CaffeSGD
        >>> optimizer = CaffeSGD(0.01, momentum=0.9, nesterov=True, l2=0.001)

    Reference:
        The authors' Caffe solvers for Tables 1 and 3 of
        [Srivastava et al., 2015](https://arxiv.org/abs/1507.06228).
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        l2: float = 0.0,
        classifier_l2: float = 10.0,
        bias_l2: float = 0.0,
        bias_rate: float = 1.0,
        **kwargs: Any,
    ):
        super().__init__(learning_rate, momentum, nesterov, **kwargs)
        self.l2 = l2
        self.classifier_l2 = classifier_l2
        self.bias_l2 = bias_l2
        self.bias_rate = bias_rate

    def build(self, variables):
        super().build(variables)
        self._rates_and_penalties = []  # of each weight: factor on the learning rate, and L2
        for variable in variables:
            layer, weight = f"/{variable.path}".split("/")[-2:]
            rate = self.bias_rate if weight.endswith("bias") else 1.0
            penalty = self.classifier_l2 if layer == CLASSIFIER else 1.0
            penalty = self.bias_l2 if weight.endswith(NO_DECAY) else penalty
            self._rates_and_penalties.append((rate, penalty * self.l2))

    def update_step(self, gradient, variable, learning_rate):
        rate, l2 = self._rates_and_penalties[self._get_variable_index(variable)]
        if l2:
            gradient = ops.add(gradient, ops.multiply(ops.cast(l2, variable.dtype), variable))
        super().update_step(gradient, variable, learning_rate * rate)

    def get_config(self):
        names = ("l2", "classifier_l2", "bias_l2", "bias_rate")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


@keras.saving.register_keras_serializable(package="highway_keras")
class ConvMuon(WholeBatchClipping, keras.optimizers.Muon):
    """Muon for kernels of two or four axes, such as those of `Dense` and `Conv2D`; else AdamW.

    ```
    m = momentum * m + gradient
    u = gradient + momentum * m           # nesterov=False: u = m
    w -= rate * weight_decay * w
    w -= rate * rms_rate * sqrt(max(rows, columns)) * orthogonal(u)
    ```

    `orthogonal(u)` has the singular vectors of u and singular values of about 1. A kernel
    `(height, width, inputs, filters)` is the matrix `(height * width * inputs, filters)` that
    multiplies image patches; Keras's own Muon leaves it to AdamW. AdamW trains biases, the weights
    of normalization, embeddings, kernels with three or five axes, such as those of a
    `HighwayStack`, and the classifier, which is the layer named `predictions`; name others in
    `exclude_layers`.

    Args:
        **kwargs: The arguments of `keras.optimizers.Muon`. `weight_decay` is for what Muon trains,
            `adam_weight_decay` for the rest, without biases and normalization. `global_clipnorm`
            is as for `CaffeSGD`.

    Examples:
        >>> from highway_keras.optimizers import ConvMuon
        >>> optimizer = ConvMuon(0.01, weight_decay=0.1, adam_weight_decay=0.1)

    Reference:
        [Jordan et al., 2024](https://kellerjordan.github.io/posts/muon/);
        [Liu et al., 2025](https://arxiv.org/abs/2502.16982) for the factor on the update.
    """

    def __init__(self, learning_rate: float = 0.001, **kwargs: Any):
        super().__init__(learning_rate, **kwargs)
        self.exclude_from_weight_decay(var_names=NO_DECAY_PATTERNS)

    def _should_use_adamw(self, variable):
        path, shape = variable.path, variable.shape
        matrix = SimpleNamespace(path=path, shape=shape[-2:] if len(shape) == 4 else shape)
        # The stacked biases of a `HighwayStack` have two axes, but are no matrix either.
        excluded = path.endswith(NO_DECAY) or path.split("/")[-2:-1] == [CLASSIFIER]
        return excluded or super()._should_use_adamw(matrix)

    def zeropower_via_newtonschulz5(self, x, steps):
        matrix = super().zeropower_via_newtonschulz5(_as_matrix(x), steps)
        return ops.reshape(matrix, x.shape)

    def lr_adjust(self, x):
        return ops.reshape(super().lr_adjust(_as_matrix(x)), x.shape)


def _as_matrix(kernel):
    return ops.reshape(kernel, (-1, kernel.shape[-1]))
