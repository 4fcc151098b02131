"""A trained network as a file that another runtime serves.

In every format the network takes raw `images`, uint8 of shape `(batch, height, width, channels)`
with any batch size; the preprocessing of its training is part of it. It returns `probabilities`
`(batch, classes)`, float32, and `class_id` `(batch,)`, int64. A SavedModel also returns
`class_name`, and has a second signature, `encoded`, that takes PNG or JPEG files as bytes. Class
names and a model card are in the SavedModel's assets, and next to the file for other formats.

The format `"keras"` still needs Keras and this package, and returns the probabilities alone: a
`.keras` file without the optimizer's state and, with `quantize="int8"`, as
`model.quantize("int8")` leaves it.

`export` writes the file into a hidden folder, runs it on real test images with its own runtime in a
new process, and only then moves it into place. For all formats but `"keras"`, that process can
import neither this package nor Keras. Probabilities must equal the Keras model's to 1e-5, or to
0.02 if the export is quantized to float16 or the network computes in 16 bits. If the network is
quantized to int8, now or before, its accuracy may fall by 1 percentage point instead.
"""

from highway_keras.export.exporting import FORMATS, Exported, export
from highway_keras.export.verification import ExportMismatch

__all__ = ["FORMATS", "ExportMismatch", "Exported", "export"]
