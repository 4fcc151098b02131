"""What the families share: the start of kernels, the images and the classifier."""

# "xavier" in the Caffe that the authors released: N(0, 2 / fan-in), with its tails, which Keras's
# "he_normal" cuts off. Caffe's own "xavier" is Keras's "lecun_uniform".
AUTHORS_KERNEL = {
    "class_name": "VarianceScaling",
    "config": {"scale": 2.0, "mode": "fan_in", "distribution": "untruncated_normal"},
}

# Of the networks for CIFAR: on the input, after each pooling and before the classifier
DROPOUT = 0.2


def normal(stddev):
    """Return the configuration of a normal initializer."""
    return {"class_name": "RandomNormal", "config": {"stddev": stddev}}


def unshared(initializer):
    """Return the configuration of an initializer with a seed: the object would repeat its draw."""
    import keras

    initializer = keras.initializers.get(initializer)
    has_seed = isinstance(getattr(initializer, "seed", None), int)
    return keras.initializers.serialize(initializer) if has_seed else initializer


def images(input_shape):
    """Return the input of a convolutional network."""
    import keras

    if keras.config.image_data_format() != "channels_last":
        raise ValueError(
            "The networks of the zoo take images with channels last: call "
            "keras.config.set_image_data_format('channels_last')."
        )
    return keras.Input(input_shape, name="images")


def predictions(x, classes, kernel_initializer):
    """Return the probabilities of the classes, in float32 under any dtype policy."""
    import keras

    from highway_keras.optimizers import CLASSIFIER

    return keras.layers.Dense(
        classes,
        activation="softmax",
        kernel_initializer=kernel_initializer,
        name=CLASSIFIER,
        dtype="float32",
    )(x)
