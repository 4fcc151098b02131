"""A picture next to a result: where it cannot be drawn, the result stays."""

from highway_keras.io import write_figure
from highway_keras.messages import notice, printable, reason


def write_picture(path, picture, dpi=150):
    """Write a picture, or say that it could not be drawn.

    Args:
        path: The PNG file.
        picture: Function from the module `plots`, which needs Matplotlib, to the figure.
        dpi: Dots per inch.
    """
    try:
        path.unlink(missing_ok=True)  # it may show something else
        from highway_keras.analysis import plots

        write_figure(path, picture(plots), dpi)
    except Exception as error:  # of Matplotlib, its fonts, Pillow and the disk: of many kinds
        notice(f"{path} could not be drawn: {printable(reason(error))}")
