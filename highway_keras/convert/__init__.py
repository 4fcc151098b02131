"""Highway layers that other libraries trained, converted to built `Highway` layers.

`conventions.py` is the table of what each source means by its weights. `states.py` and `keras1.py`
read a source's arrays by `reading.py` and convert them by the table.
"""

from highway_keras.convert.keras1 import from_keras1
from highway_keras.convert.states import from_allennlp, from_elmo, from_tacotron

__all__ = ["from_allennlp", "from_elmo", "from_keras1", "from_tacotron"]
