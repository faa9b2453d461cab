"""The exceptions that a user can meet.

    BicliqueError               every error this project raises on purpose
    +-- InputError              the data or the options are wrong (CLI exit code 2)
    |   +-- UnknownIdError      no biclique has the id; it is a KeyError, too
    +-- ResourceError           memory, disk or device is too small, or missing (exit code 1)
    |   +-- DeviceMemoryError   a GPU has too little memory; the engine can ask for less
    +-- IncompleteError         a run's files do not agree with one another (exit code 1)

A message is one sentence that names the thing, the number and the remedy.
"""

from __future__ import annotations

__all__ = [
    "BicliqueError",
    "DeviceMemoryError",
    "IncompleteError",
    "InputError",
    "ResourceError",
    "UnknownIdError",
]


class BicliqueError(Exception):
    """Base of every error raised on purpose."""


class InputError(BicliqueError):
    """The input or an option is wrong. Nothing was written."""


class UnknownIdError(InputError, KeyError):
    """A run has no biclique with this id."""

    __str__ = Exception.__str__  # a KeyError puts its sentence into quotes


class ResourceError(BicliqueError):
    """Memory, disk or a device is too small, or missing."""


class DeviceMemoryError(ResourceError):
    """A device has less memory than was asked for. An engine with smaller buffers may fit."""


class IncompleteError(BicliqueError):
    """The files of a run are missing, damaged or contradict each other."""
