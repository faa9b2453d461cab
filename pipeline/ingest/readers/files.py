"""The files of this machine that a source stands for: one, several, those of a folder, or those that fit a pattern.

Their order is fixed, and so is the digest over all of them: a file that came, went or changed gives another one.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import unquote

from pipeline.ingest.readers.digests import file_digest, list_digest
from pipeline.ingest.readers.opening import reading_errors
from pipeline.ingest.readers.partitions import chosen
from pipeline.run.names import LOCK_FILE, MANIFEST_FILE, OPTIONS_FILE, PUBLISHED_FILE, UNFINISHED_FILE, url_of
from schemas.errors import InputError
from schemas.values import at_home, literal

__all__ = [
    "Files",
    "Named",
    "digest_now",
    "find",
    "is_hidden",
    "is_named",
    "is_pattern",
    "items_of",
    "refuse_logged_table",
    "refuse_run",
    "refuse_unfinished",
    "title_of",
    "with_number",
]

#: What a person may write for files: a path, a pattern, or several of them.
Named = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

#: Folder in which a kind of table says which of its files count.
_LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi"}

#: Names that a sentence says of several.
_SAID = 2


@dataclass(frozen=True)
class Files:
    """Files of this machine, in the order in which they are read.

    Parameters
    ----------
    title : str
        The source in words.
    paths : tuple of Path
    names : tuple of str
        Their names below what they have in common, with slashes, as the digest has them.
    is_one : bool
        Whether the source is a file itself, so that its digest is that of its bytes.
    """

    title: str
    paths: tuple[Path, ...]
    names: tuple[str, ...]
    is_one: bool = False

    @property
    def n_bytes(self) -> int:
        """Bytes of all files as stored. Files that cannot be looked at count nothing."""
        return sum(path.stat().st_size for path in self.paths if path.exists())

    def digest(self) -> str:
        """The digest (hex) that a reader of these files has at its end."""
        found = [digest_now(path) for path in self.paths]
        return found[0] if self.is_one else list_digest(found, self.names)


def digest_now(path: Path) -> str:
    """The digest (hex) of a file's bytes as they are now.

    Raises
    ------
    InputError
        It cannot be read.
    """
    with reading_errors(path):
        return file_digest(path)


def is_named(source: Any) -> TypeGuard[Named]:
    """Whether a source is words for files: a path, or a list of paths."""
    if isinstance(source, (str, os.PathLike)):
        return True
    return isinstance(source, (list, tuple)) and bool(source) and all(isinstance(s, (str, os.PathLike)) for s in source)


def items_of(source: Named) -> list[str]:
    """Each path of a source as text. A URL has all of its slashes, and one of a local file is the path of the file."""
    several = [source] if isinstance(source, (str, os.PathLike)) else source
    return [at_home(_item_of(os.fspath(each))) for each in several]


def _item_of(item: str) -> str:
    if not item:
        raise InputError("the path of the source is empty; name a file, a folder or a pattern")
    url = url_of(item)
    if url is None:
        return item
    return unquote(url.removeprefix("file://")) if url.startswith("file:///") else url


def is_pattern(text: str) -> bool:
    """Whether a path is a pattern, as ``in/*.csv``. A file of that very name is no pattern."""
    return glob.has_magic(text) and not os.path.lexists(text)


def is_hidden(name: str) -> bool:
    """Whether a name below a folder does not count, because it, or a folder in it, begins with ``_`` or ``.``."""
    return any(part.startswith(("_", ".")) for part in name.split("/") if part != ".")


def refuse_logged_table(place: str, names: Iterable[str]) -> None:
    """Refuse a folder whose files also hold rows that were deleted, because only a log says which count.

    Parameters
    ----------
    place : str
        The folder, for the message.
    names : iterable of str
        Names in it.

    Raises
    ------
    InputError
    """
    for name in names:
        if name in _LOGS:
            raise InputError(
                f"{place} is a {_LOGS[name]} table, whose files also hold rows that were deleted or replaced; give its "
                "present rows, from Python as an Arrow dataset (deltalake: DeltaTable(...).to_pyarrow_dataset())"
            )


def refuse_unfinished(place: str, names: Iterable[str]) -> None:
    """Refuse a folder with these names if it has only a part of a graph that was being generated.

    Raises
    ------
    InputError
    """
    if UNFINISHED_FILE in names:
        raise InputError(
            f"{place} has only a part of a graph, because generating it has not ended; give the same `bicliques "
            "generate` again"
        )


def refuse_run(place: str, names: Iterable[str]) -> None:
    """Refuse a folder of a run, or of what was published of one, in which files of all kinds would be taken for edges.

    Parameters
    ----------
    place : str
        The folder, for the message.
    names : iterable of str
        Names of files and folders in it.

    Raises
    ------
    InputError
    """
    names = {*names}
    if {OPTIONS_FILE, "steps"} <= names:
        raise InputError(
            f"{place} is a run, and no list of edges; name what it was mined from, which {OPTIONS_FILE} tells, or show "
            "or resume the run"
        )
    if {PUBLISHED_FILE, MANIFEST_FILE} <= names:
        raise InputError(
            f"{place} holds what was published of a run, and no list of edges; name what the run was mined from, which "
            f"{MANIFEST_FILE} tells, or read {place}/bicliques with other programs"
        )
    if LOCK_FILE in names:
        raise InputError(
            f"{place} is where a run is to be kept, so it cannot be read as edges; name another output folder, or "
            "choose the input with a pattern such as 'in/*.csv'"
        )


def find(source: Named, where: Sequence[str] = ()) -> Files:
    """The files that a source stands for.

    Parameters
    ----------
    source : path or sequence of paths
        A folder is all files in it and below it, but for hidden ones (`is_hidden`). A pattern is all that fits it.
    where : sequence of str
        Conditions on the folders of the files; see `pipeline.ingest.readers.partitions.chosen`.

    Raises
    ------
    InputError
        A folder has no files, no file fits a pattern or the conditions, or a folder may not be read.
    """
    files = _all_of(items_of(source))
    if not where:
        return files
    places = [path.absolute().as_posix() for path in files.paths]
    title, fits = chosen(files.title, places, where)
    return Files(title, tuple(files.paths[k] for k in fits), tuple(files.names[k] for k in fits))


def _all_of(items: Sequence[str]) -> Files:
    if len(items) == 1:
        return _of_one(items[0])
    found = [_of_one(item) for item in items]
    paths = tuple(path for files in found for path in files.paths)
    whole = [os.path.abspath(path) for path in paths]  # noqa: PTH100 - Path.resolve follows links
    top = os.path.commonpath([os.path.dirname(path) for path in whole])  # noqa: PTH120
    return Files(title_of([files.title for files in found]), paths, tuple(map(_below(top), whole)))


def _of_one(item: str) -> Files:
    path = Path(item)
    if is_pattern(item):
        top = _fixed_part(item)
        below = _below(top)
        with_hidden = is_hidden(below(item))
        fits = glob.glob(item, recursive=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
        fits = [fit for fit in fits if with_hidden or not is_hidden(below(fit))]
        if not fits:
            raise InputError(f"no file fits {item}; check the pattern and its folder")
        for folder in sorted({Path(fit).parent for fit in fits}):
            if os.path.lexists(folder / UNFINISHED_FILE):
                refuse_unfinished(str(folder), [UNFINISHED_FILE])
        each = [literal(Path(one)) for fit in fits for one in (_walk(fit) if os.path.isdir(fit) else [fit])]  # noqa: PTH112
    elif os.path.isdir(item):  # noqa: PTH112 - Path.is_dir raises where looking is not allowed
        top, each = item, [literal(Path(one)) for one in _walk(item)]
        if not each:
            raise InputError(
                f"the folder {item} holds no files to read (names that begin with _ or . do not count); name another"
            )
    else:
        return Files(str(path), (literal(path),), (path.name,), is_one=True)
    each = sorted(set(each), key=str)
    return Files(with_number(str(path), len(each)), tuple(each), tuple(map(_below(top), map(str, each))))


def _below(top: str) -> Any:
    return lambda path: os.path.relpath(path, top or ".").replace(os.sep, "/")


def _fixed_part(pattern: str) -> str:
    """The folder of a pattern, without the parts that have wildcards."""
    parts = Path(pattern).parts
    return os.path.join(*[part for k, part in enumerate(parts) if not any(map(glob.has_magic, parts[: k + 1]))] or [""])  # noqa: PTH118


def _walk(folder: str) -> list[str]:
    """All files below a folder that are not hidden. Links to folders are followed, but no folder is entered twice."""

    def refuse(error: OSError) -> None:
        raise InputError(f"{error.filename} cannot be read ({error.strerror}); check its permissions") from error

    found: list[str] = []
    seen: set[tuple[int, int]] = set()
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        there = os.stat(place)  # noqa: PTH116
        is_new = (there.st_dev, there.st_ino) not in seen
        seen.add((there.st_dev, there.st_ino))
        all_folders = list(folders)
        folders[:] = sorted(name for name in folders if not is_hidden(name)) if is_new else []
        refuse_logged_table(place, all_folders)
        refuse_unfinished(place, names)
        refuse_run(place, (*names, *all_folders))
        found += [os.path.join(place, name) for name in names if is_new and not is_hidden(name)]  # noqa: PTH118
    return found


def with_number(title: str, n_files: int) -> str:
    """A folder or a pattern in words, with the number of its files."""
    return f"{title} ({n_files:,} files)" if n_files > 1 else f"{title} (1 file)"


def title_of(titles: Iterable[str]) -> str:
    """Several sources in words, as "a.csv, b.csv and 3 more"."""
    titles = list(titles)
    more = len(titles) - _SAID
    return ", ".join(titles[:_SAID]) + f" and {more:,} more" if more > 0 else " and ".join(titles)
