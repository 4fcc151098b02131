"""Pictures come last; if one cannot be drawn, only that picture is lost."""

import contextlib
import warnings

from highway_keras.text import printable


class PictureWarning(UserWarning):
    """A picture is missing: it could not be drawn or written."""


@contextlib.contextmanager
def optional_picture(path):
    """Turn an error that keeps a picture from being drawn into a `PictureWarning`.

    Wrap drawing it in `with optional_picture(path):`, after what it shows is written.

    Args:
        path: Where the picture would be.
    """
    try:
        yield
    except (
        Exception
    ) as error:  # Matplotlib, its fonts, Pillow and the disk raise errors of many kinds
        reason = printable(" ".join(str(error).split()) or type(error).__name__)
        warnings.warn(f"{path} could not be drawn: {reason}", PictureWarning, stacklevel=3)
