"""The zoo: the paper's networks by name, with weights, and your own beside them.

Importing it does not import Keras, so `highway-keras list` answers at once.
"""

from highway_keras.models.cards import Card
from highway_keras.models.cifar import cifar_highway, highway_gap
from highway_keras.models.deep_cifar import deep_highway, deep_resnet
from highway_keras.models.fitnet import maxout_fitnet
from highway_keras.models.mnist import mnist_highway
from highway_keras.models.registry import create, get, list_models, register
from highway_keras.models.saved import Trained, load, save
from highway_keras.models.thin import thin_mlp

__all__ = [
    "Card",
    "Trained",
    "cifar_highway",
    "create",
    "deep_highway",
    "deep_resnet",
    "get",
    "highway_gap",
    "list_models",
    "load",
    "maxout_fitnet",
    "mnist_highway",
    "register",
    "save",
    "thin_mlp",
]
