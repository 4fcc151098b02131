"""Highway layers that other libraries trained, converted to built `Highway` layers.

Each file holds one source: its names, its order, its signs. `arrays.py` checks what they read and
builds the layers, `names.py` sorts a state into layers, `biases.py` looks for swapped weights, and
`hdf5.py` opens files.
"""

from highway_keras.convert.allennlp import from_allennlp
from highway_keras.convert.elmo import from_elmo
from highway_keras.convert.keras1 import from_keras1
from highway_keras.convert.tacotron import from_tacotron

__all__ = ["from_allennlp", "from_elmo", "from_keras1", "from_tacotron"]
