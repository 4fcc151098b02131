"""The zoo: the paper's networks by name, with weights, and your own beside them.

Importing it does not import Keras, so `highway-keras list` answers at once.
"""

# isort: off
# A family registers its networks when it is imported: this is the order of `list_models`.
from highway_keras.models.thin import thin_mlp
from highway_keras.models.mnist import mnist_highway
from highway_keras.models.cifar import highway_a, highway_b, highway_c, highway_gap
from highway_keras.models.fitnet import fitnet_a, fitnet_b
from highway_keras.models.deep_cifar import deep_highway, deep_resnet

# isort: on
from highway_keras.models.registry import Card, create, get, list_models, register
from highway_keras.models.saved import Trained, load, save

__all__ = [
    "Card",
    "Trained",
    "create",
    "deep_highway",
    "deep_resnet",
    "fitnet_a",
    "fitnet_b",
    "get",
    "highway_a",
    "highway_b",
    "highway_c",
    "highway_gap",
    "list_models",
    "load",
    "mnist_highway",
    "register",
    "save",
    "thin_mlp",
]
