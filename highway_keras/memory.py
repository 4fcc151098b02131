"""The free memory of the machine."""

import psutil


def free():
    """Return the bytes of memory that are free."""
    return psutil.virtual_memory().available


def gib(size):
    """Return a number of bytes as text."""
    return f"{size / 2**30:.3g} GiB"
