"""What a user writes, for `test_wheel.py`: a type checker must follow every line of it."""

import keras

import highway_keras
from highway_keras import (
    ConvHighway1D,
    ConvHighway2D,
    ConvHighway3D,
    Highway,
    HighwayStack,
    HighwayWrapper,
    MatchSize,
    TransformBias,
    analysis,
    data,
    export,
    models,
    ops,
    training,
    tuning,
)
from highway_keras.layers import Maxout

# Layers
network = keras.Sequential(
    [
        keras.Input((28, 28, 1)),
        Maxout(2),
        ConvHighway2D(16, 3, transform_bias_initializer=-1.0, kernel_regularizer="l2"),
        MatchSize(32, strides=2),
        Highway(32, "tanh", transform_bias_initializer=TransformBias(-3.0), name="block"),
        Highway(kernel_initializer=keras.initializers.HeNormal(), kernel_constraint="max_norm"),
        HighwayStack(3, transform_bias_initializer=[-1, -2, -3], rematerialize=True),
    ]
)
gates = {"transform": keras.layers.Dense(8, "sigmoid"), "carry": keras.layers.Dense(8, "sigmoid")}
free = HighwayWrapper(keras.layers.Dense(8), carry=gates["carry"], transform=gates["transform"])
causal = ConvHighway1D(8, 3, padding="causal", dilation_rate=2, transform_kernel_size=1)
volume = ConvHighway3D(4, 3, groups=2, data_format="channels_first")
chain: list[Highway] = HighwayStack(2, 8, activation=keras.activations.relu).unstack()
again: HighwayStack = HighwayStack.from_layers(chain, name="again")
kernels = [layer.kernel for layer in chain]
closing = [layer.gate_bias for layer in (*chain, again, free)]
outputs = ops.highway(x=1.0, h=3.0, t=0.25)
optimizer: keras.optimizers.Optimizer = training.CaffeSGD(0.01, momentum=0.9, l2=0.001)

# Zoo, data, training, what comes after
names = models.list_models()
model = models.create("thin-highway-50", input_shape=(8, 8, 1))
pooled = models.highway_gap(classes=100, dropout_rate=0.1)
digits = data.load("digits")
accuracy = training.fit("thin-highway-50", "digits", out="runs/deep", epochs=20).test_accuracy
tuner = tuning.PopulationRandomSearch(
    tuning.HighwayHyperModel(depth=10), "val_loss", max_trials=10, directory="runs"
)
lesions = analysis.lesions(model, digits.x_test, digits.y_test)
exported = export.export(model, "model.onnx", digits, format="onnx")
version: str = highway_keras.__version__
