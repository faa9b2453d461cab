"""The folder of a result beside the runs, such as a comparison: it holds nothing else, and is written whole or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bicliques.pipeline.run.files import disk_errors
from bicliques.schemas.errors import InputError, ResourceError


def names_in(place: Path) -> list[str]:
    """The names in a folder, ascending. None if it does not exist.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        return sorted(path.name for path in place.iterdir()) if place.is_dir() else []
    except OSError as error:
        raise _unusable(place, error) from error


def refuse_strangers(place: Path, names: Iterable[str], is_own: Callable[[str], bool]) -> None:
    """Refuse a folder that holds a file of somebody else.

    Raises
    ------
    InputError
    """
    stranger = next((name for name in names if not is_own(name)), None)
    if stranger is not None:
        raise InputError(f"the output folder {place} is not empty: it holds {stranger}; name another one")


def remove_own(place: Path, is_own: Callable[[str], bool]) -> None:
    """Remove the files of a result, whole or not, from a folder that may not be there.

    Raises
    ------
    ResourceError
        If one cannot be removed.
    """
    with disk_errors(place):
        for path in place.iterdir() if place.is_dir() else ():
            if is_own(path.name):
                path.unlink()


@contextmanager
def fill_folder(place: Path, remove: Callable[[Path], None]) -> Iterator[None]:
    """Make the folder, without what `remove` removes. If the block fails, that goes, and so does a new folder.

    Raises
    ------
    InputError
        If the folder cannot be made.
    """
    try:
        made = not place.exists()
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError if the name holds a NUL
        raise _unusable(place, error) from error
    try:
        remove(place)  # a process that was killed may have left files
        yield
    except BaseException:
        with suppress(OSError, ResourceError):  # an error here would hide the one that ended the block
            remove(place)
            if made:
                place.rmdir()
        raise


def _unusable(place: Path, error: OSError | ValueError) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else error
    return InputError(f"the output folder {place} cannot be used ({reason}); name another one")
