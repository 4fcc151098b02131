"""The arguments that factories of the zoo share, stated once for readers, editors and checkers."""

import os
from typing import Literal, TypedDict

import keras

from highway_keras.layers.arguments import Activation, Initializer


class NetworkArguments(TypedDict, total=False):
    """The arguments that every factory takes.

    Attributes:
        input_shape: Shape of one input, (height, width, channels). Default: that of the paper's
            images. Convolutional networks need a minimum height and width. A side may be `None`,
            for any size, where no fully connected layer fixes it: without the top, and in Table 3.
        classes: Number of classes. Default: 10.
        classifier_activation: Activation of the classifier, by default softmax; `None` returns
            logits.
        include_top: Whether the network ends in the classifier. Default: yes.
        weights: Path of a weights file, or `None` for initial weights, the default.
        name: Name of the model. Default: the name under which the network is registered.
        input_tensor: Floating-point tensor of a Keras model to apply the network to, such as
            preprocessed inputs, as in `keras.applications`; its shape is then the `input_shape`.
    """

    input_shape: tuple[int | None, ...]
    classes: int
    classifier_activation: Activation
    include_top: bool
    weights: str | os.PathLike[str] | None
    name: str | None
    input_tensor: keras.KerasTensor | None


class ConvolutionalArguments(NetworkArguments, total=False):
    """The arguments that every convolutional factory takes, besides `NetworkArguments`.

    Attributes:
        kernel_initializer: Initializer of all kernels that the authors do not start in a special
            way, gates included. Default: the authors', normal with variance 2 / fan-in. Without a
            seed, every kernel gets a new draw.
        pooling: What follows if `include_top` is off: `"avg"` or `"max"` for global pooling, or
            `None` for the maps, as in `keras.applications`.
    """

    kernel_initializer: Initializer
    pooling: Literal["avg", "max"] | None


class CifarArguments(ConvolutionalArguments, total=False):
    """The arguments that every CIFAR network takes, besides `ConvolutionalArguments`.

    Attributes:
        dropout_rate: Dropout on the input, after each pooling and before the classifier. Default:
            0.2, the authors' for the network of Table 3, used for the others too.
    """

    dropout_rate: float
