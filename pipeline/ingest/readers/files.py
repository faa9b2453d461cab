"""The files of this machine that a source stands for: one, several, those of a folder, or those that fit a pattern.

Their order is fixed, and so is the digest over all of them: a file that came, went or changed gives another one.
``--where`` chooses some by Hive partitions, folders such as ``day=2026-11-23`` that say a value of files below them.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import unquote

from bicliques.pipeline.ingest.readers.opening import file_digest, list_digest
from bicliques.pipeline.run.names import LOCK_FILE, MANIFEST_FILE, OPTIONS_FILE, PUBLISHED_FILE, UNFINISHED_FILE, url_of
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.reading import Condition
from bicliques.schemas.values import at_home, literal

#: What a person may write for files: a path, a pattern, or several of them.
Named = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_LOGGED = (
    "is a {} table, whose files also hold rows that were deleted or replaced; give its present rows, from Python as an "
    "Arrow dataset (deltalake: DeltaTable(...).to_pyarrow_dataset())"
)
#: Names of which one shows that a folder has more, or less, than the graph, with the end of a sentence about it.
_PARTS = {
    "_delta_log": _LOGGED.format("Delta"),
    ".hoodie": _LOGGED.format("Hudi"),
    UNFINISHED_FILE: "has only a part of a graph, because generating it has not ended; give the same `bicliques "
    "generate` again",
}
#: Names that show together that files of all kinds below a folder would be taken for edges.
_RUNS = (
    (
        {OPTIONS_FILE, "steps"},
        f"is a run, and no list of edges; name what it was mined from, which {OPTIONS_FILE} tells, or show or resume "
        "the run",
    ),
    (
        {PUBLISHED_FILE, MANIFEST_FILE},
        "holds what was published of a run, and no list of edges; name what the run was mined from, which "
        f"{MANIFEST_FILE} tells, or read {{place}}/bicliques with other programs",
    ),
    (
        {LOCK_FILE},
        "is where a run is to be kept, so it cannot be read as edges; name another output folder, or choose the input "
        "with a pattern such as 'in/*.csv'",
    ),
)

#: Names that a sentence says of several sources, and values of partitions.
_SAID, _VALUES = 2, 3

#: What Hive, Spark and Arrow write for rows without a value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Files:
    """Files of this machine, in the order in which they are read.

    `title` is the source in words. `names` are those below what they have in common, with slashes, as the digest
    has them. If the source is a file itself (`is_one`), its digest is that of its bytes.
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
        found = [file_digest(path) for path in self.paths]
        return found[0] if self.is_one else list_digest(found, self.names)


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


def refuse_part(place: str, names: Iterable[str]) -> None:
    """Refuse a folder with these names if only a log says which rows count, or if it was not written to its end."""
    for what in (_PARTS[name] for name in names if name in _PARTS):
        raise InputError(f"{place} {what}")


def refuse_run(place: str, names: Iterable[str]) -> None:
    """Refuse a folder with these names of files and folders if it is a run, or what was published of one."""
    for what in (what for signs, what in _RUNS if signs <= {*names}):
        raise InputError(f"{place} {what.format(place=place)}")


def find(source: Named, where: Sequence[str] = ()) -> Files:
    """The files that a source stands for. It is refused if there are none, or a folder may not be read.

    A folder is all files in it and below it, but for hidden ones (`is_hidden`). A pattern is all that fits it. `where`
    are conditions on their folders (`chosen`).
    """
    files = _all_of(items_of(source))
    if not where:
        return files
    title, fits = chosen(files.title, [path.absolute().as_posix() for path in files.paths], where)
    return Files(title, tuple(files.paths[k] for k in fits), tuple(files.names[k] for k in fits))


def chosen(title: str, places: Sequence[str], where: Sequence[str]) -> tuple[str, list[int]]:
    """The files at whole paths in whose partitions all conditions hold: a title for them, and their positions."""
    conditions = [Condition.parse(each) for each in where]
    values = [_values(place) for place in places]
    for place, own in zip(places, values, strict=True):
        for condition in conditions:
            if condition.key not in own:
                known = f" (its partitions are {', '.join(sorted(own))})" if own else ""
                raise InputError(
                    f"{place} lies in no folder {condition.key}=...{known}, so {as_option('where')} cannot tell "
                    f"whether it is meant; name a partition, or leave {as_option('where')} out"
                )
    fits = [k for k, own in enumerate(values) if all(_holds(each, own[each.key]) for each in conditions)]
    if not fits:
        key = conditions[0].key
        there = sorted({own[key] for own in values})
        more = f" and {len(there) - _VALUES:,} more" if len(there) > _VALUES else ""
        raise InputError(
            f"no file of {title} fits {' '.join(where)}; the values of {key} are {', '.join(there[:_VALUES])}{more}"
        )
    return f"{title}, of which {len(fits):,} where {' and '.join(where)}", fits


def _holds(condition: Condition, value: str) -> bool:
    """Whether a value fits. No value is neither less nor more than another one, nor unlike it, as in SQL."""
    return (value != _NO_VALUE or condition.value == _NO_VALUE) and condition.holds(value)


def _values(place: str) -> dict[str, str]:
    """The values that the folders of a path say, by key."""
    pairs = [part.partition("=") for part in place.split("/")[:-1]]
    return {unquote(key): unquote(value) for key, sign, value in pairs if key and sign}


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
            refuse_part(str(folder), [UNFINISHED_FILE] if os.path.lexists(folder / UNFINISHED_FILE) else ())
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
        own = (*folders, *names)
        folders[:] = sorted(name for name in folders if not is_hidden(name)) if is_new else []
        refuse_part(place, own)
        refuse_run(place, own)
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
