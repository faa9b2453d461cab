"""The version of the package, stored with every run."""

__all__ = ["__version__"]

__version__ = "0.1.0"
