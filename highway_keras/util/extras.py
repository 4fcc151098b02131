"""Packages that come with an extra of the installation, and what to do if one is missing."""

import contextlib

# The extra that brings a backend of Keras.
BACKENDS = {"tensorflow": "cpu", "jax": "jax", "torch": "torch"}


@contextlib.contextmanager
def extra(name):
    """Have a missing package name its extra: `with extra("plot"): import matplotlib`."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = error.name.partition(".")[0]
        raise ModuleNotFoundError(missing(package, name), name=error.name) from error


def missing(package, name):
    """Return the line that says which extra installs a package, and how to install it."""
    return (
        f"{package} is missing. Install the extra `{name}`: "
        f'pip install -e ".[{name}]" in your clone of highway-keras.'
    )
