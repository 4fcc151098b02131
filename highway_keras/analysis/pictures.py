"""A picture next to a result: where it cannot be drawn, the result stays."""

from highway_keras.io import optional_picture, write_figure


def write_picture(path, picture, dpi=150):
    """Write a picture, or warn with a `PictureWarning` that it could not be drawn.

    Args:
        path: The PNG file.
        picture: Function from the module `plots`, which needs Matplotlib, to the figure.
        dpi: Dots per inch.
    """
    with optional_picture(path):
        path.unlink(missing_ok=True)  # it may show something else
        from highway_keras.analysis import plots

        write_figure(path, picture(plots), dpi)
