"""A trained network as a file that another runtime serves.

In every format the network takes raw `images`, uint8 of shape `(batch, height, width, channels)`
with any batch size; preprocessing is part of the network. It returns `probabilities`
`(batch, classes)`, float32, and `class_id` `(batch,)`, int64. A SavedModel also returns
`class_name`, and its second signature, `encoded`, takes PNG or JPEG files as bytes. A `.keras` file
returns the probabilities alone and needs Keras and this package.

A card describes each export in JSON. It is `assets/model_card.json` in a SavedModel, and
`FILE.json` beside any other file.
"""

from typing import TYPE_CHECKING

from highway_keras.util.lazy_imports import lazy

if TYPE_CHECKING:
    from highway_keras.export.exporting import Exported, export
    from highway_keras.export.formats import FORMATS
    from highway_keras.export.verification import ExportMismatch
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = ["FORMATS", "ExportMismatch", "Exported", "export"]
