"""The version of the package, stored with every run."""

__version__ = "0.1.0"
