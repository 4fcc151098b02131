"""Draw the picture of a result; if that fails, say so and keep the result."""

from highway_keras.util.files import write_figure
from highway_keras.util.messages import notice, printable, reason


def write_picture(path, picture, dpi=150):
    """Write the figure that `picture(plots)` returns, or say that it could not be drawn."""
    try:
        path.unlink(missing_ok=True)  # it may show something else
        from highway_keras.analysis import plots

        write_figure(path, picture(plots), dpi)
    except Exception as error:  # of Matplotlib, its fonts, Pillow and the disk: of many kinds
        notice(f"{path} could not be drawn: {printable(reason(error))}")
