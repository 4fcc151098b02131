"""Out of the door: a trained network as a file that another runtime serves.

In every format the network takes raw `images`, uint8 of shape `(batch, height, width, channels)`
with any batch size; its training's preprocessing is part of it. It returns `probabilities`
`(batch, classes)`, float32, and `class_id` `(batch,)`, int64. A SavedModel also returns
`class_name`, and has a second signature, `encoded`, that takes PNG or JPEG files as bytes. Class
names and a model card are in the SavedModel's assets, and beside the file for other formats.

The format `"keras"` stays with Keras and this package: a `.keras` file without the optimizer's
state, and with `quantize="int8"` as `model.quantize("int8")` leaves it.

`export` writes the file. Before it takes its name, its runtime loads it in a new process, which for
all formats but `"keras"` can import neither this package nor Keras, and runs it on real test
images. Probabilities must equal the Keras model's to 1e-5; quantized to float16, to 0.02; to int8,
now or before, accuracy may fall by 1 point.
"""

from highway_keras.export.exporting import Exported, export
from highway_keras.export.formats import FORMATS
from highway_keras.export.verification import ExportMismatch

__all__ = ["FORMATS", "ExportMismatch", "Exported", "export"]
