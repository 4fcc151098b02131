"""The version of the package, to be read without importing Keras."""

__version__ = "0.2.0.dev0"
