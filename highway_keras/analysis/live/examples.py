"""The example images of a page, and the drawing area and color scales that follow from them."""

import base64

import numpy as np

MOST = 20


def choose(labels, most=MOST):
    """Return indices of the first image of each class, then of the second of each, and so on."""
    labels = np.asarray(labels)
    order = np.argsort(labels, kind="stable")
    _, starts, counts = np.unique(labels[order], return_index=True, return_counts=True)
    turn = np.arange(len(labels)) - np.repeat(starts, counts)  # how many of its class lie before
    return order[np.lexsort((labels[order], turn))][:most]


def check_gray_levels(images):
    """Raise unless the values of images are gray levels: the page gives the network no others."""
    least, most = images.min(), images.max()
    whole = images.dtype.kind != "f" or (most > 1 and np.array_equal(images, np.rint(images)))
    if not (0 <= least and most <= 255 and whole):
        raise ValueError(
            "`x` of a live page must hold gray levels, whole numbers from 0 to 255. Received: "
            f"{least:.3g} to {most:.3g}, {images.dtype}. For a network that takes scaled images, "
            "put the scaling into the model, as a `Rescaling` layer, and pass gray levels."
        )


def encode(images, labels):
    """Return images, gray levels 0 to 255, and class numbers in a form that JSON can hold."""
    pixels = images.astype("uint8")
    return {"labels": labels.tolist(), "images": base64.b64encode(pixels.tobytes()).decode()}


def drawn_box(images):
    """Return the box `[top, left, bottom, right]`, in pixels, that gray images are drawn in.

    Return `None` if it is most of the image, or if the images have color.
    """
    if images.shape[-1] != 1:
        return None
    ink = np.mean(images, axis=(0, 3))
    box = []
    for axis in (1, 0):
        sums = ink.sum(axis)
        (used,) = np.nonzero(sums > 0.1 * sums.max())
        box.append((int(used[0]), int(used[-1]) + 1) if len(used) else (0, len(sums)))
    (top, bottom), (left, right) = box
    share = (bottom - top) * (right - left) / ink.size
    return [top, left, bottom, right] if share < 0.8 else None


def scale(blocks, reach=None):
    """Return the color scale for numbers such as these: its end, and a power.

    The end is a round number that few of them exceed. The power puts their median, without
    zeros, at a quarter of the scale: without it, most gates of a deep network would be too close to
    0 to tell apart.
    """
    sizes = np.abs(np.concatenate([block.ravel() for block in blocks]))
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return {"reach": 1, "power": 1}
    reach = reach or _round_up(float(np.quantile(sizes, 0.998)))
    middle = np.clip(np.median(sizes) / reach, 1e-6, 1 - 1e-6)
    power = np.clip(np.log(0.25) / np.log(middle), 0.2, 1)
    return {"reach": reach, "power": round(float(power), 2)}


def _round_up(number):
    """Return the next of ..., 0.5, 1, 2, 5, 10, ..."""
    power = 10.0 ** np.floor(np.log10(number))
    return float(f"{next(n for n in (1, 2, 5, 10) if n * power >= number) * power:g}")
