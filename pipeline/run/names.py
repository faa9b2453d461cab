"""Every name that a run gives to a file in its folder. Files with other names are never deleted.

OUT/options.json                what identifies the run
    steps/{ingest,build,plan}.json   a step's facts, written last: the step is done
    edges/  labels/             the normalised input (`pipeline.ingest.step`)
    graph/                      the reduced graph and the labels, memory-mapped by workers
    plan/                       roots in dealing order, and their weights
    bicliques/part-*.parquet    the results that count
    pending/part-*.parquet      parts whose slice is not in the ledger yet (`pipeline.run.store`)
    summary/                    number of bicliques of each size, the largest ones, and the number with each vertex
    vertices/                   with --per-vertex: for every vertex the number of bicliques with it and the largest
    changes/                    what changed since the run before, of a run on a schedule (`pipeline.compare.in_run`)
    communities/                communities of bicliques, once asked for (`pipeline.results.by_community`)
    ledger/<slice>.json         one entry per committed slice
    manifest.json               the proof, once complete
    _SUCCESS                    tells other programs that the run is complete (`pipeline.series.runs`)
    _REFUSED                    in its place, until the gate of a schedule lets the run pass
    report.html                 the run as a page with pictures
    run.lock                    the lock, while a driver works on the run
    .ingest-*                   a folder for the input while it is read

A file that is not finished is called ``.NAME.tmp``, and a part that is not finished ``.part-*.tmp``. A user may put
other things beside these, such as ``.keep`` (`pipeline.series.pruning`), and a folder may be a link to a place that
does not belong to the run. So code that deletes files asks this module first, and follows no link.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
import uuid
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from bicliques.schemas.errors import InputError
from bicliques.schemas.facts import PART_NAME

#: Files of the tables of edges and labels, below the folder of a run. Many edges have more files; see `edges_file`.
EDGES_FILE = Path("edges/edges.parquet")
LEFT_LABELS_FILE = Path("labels/left.parquet")
RIGHT_LABELS_FILE = Path("labels/right.parquet")
_EDGES_FILE = re.compile(r"edges/edges(?:-([1-9]\d*))?\.parquet")

logger = logging.getLogger(__name__)

OPTIONS_FILE, MANIFEST_FILE, REPORT_FILE = "options.json", "manifest.json", "report.html"
LOCK_FILE, SUCCESS_FILE, REFUSED_FILE = "run.lock", "_SUCCESS", "_REFUSED"
#: A file that a person puts into the folder of a run, so that no prune removes the run.
KEEP_FILE = ".keep"
#: File in the folder of a generated graph, which is no run, as long as parts of it are missing.
UNFINISHED_FILE = "_unfinished.json"
#: The record of a publication (`pipeline.publishing.record`), which is never in the folder of a run.
PUBLISHED_FILE = "_published.json"
#: The folder of the comparison with the run before, and what is in it, the record last (`pipeline.compare.difference`).
CHANGES = "changes"
CHANGES_FILES = ("gone.parquet", "new.parquet", "vertices_left.parquet", "vertices_right.parquet", "diff.json")
#: The folder of the communities of bicliques, and what is in it, the communities last.
COMMUNITIES = "communities"
COMMUNITIES_FILES = ("bicliques.parquet", "communities.parquet")
#: Beginning of the name of the folder that the input is read into. Eight random characters follow.
STAGING = ".ingest-"

#: The folders of a run, and the names that each may hold.
_FORMS = {
    "steps": r"[a-z]+\.json",
    "edges": r"edges(-[1-9]\d*)?\.parquet",
    "labels": r"(left|right)\.parquet",
    "graph": r"[a-z_]+\.npy|(graph|bands)\.json|(left|right)_labels\.arrow",
    "plan": r"(roots|weights)\.npy",
    "bicliques": PART_NAME,
    "pending": PART_NAME,
    "summary": r"(sizes|largest|left|right)\.parquet",
    "vertices": r"(left|right)\.parquet",
    CHANGES: "|".join(map(re.escape, CHANGES_FILES)),
    COMMUNITIES: "|".join(map(re.escape, COMMUNITIES_FILES)),
    "ledger": r"(0|[1-9]\d*)\.json",
}
FOLDERS = tuple(_FORMS)
_UNNAMED_PART = r"\.part-\d{6,}-[0-9a-f]{12}-\d+\.tmp"
_STAGING = re.compile(r"\.ingest-[a-z0-9_]{8}")
#: A day in the name of a folder or file, such as that of a run that starts every night.
_DAY = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
#: The beginning of a URL. A `Path` keeps only one of its slashes.
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/(?P<second>/?)")


def _pattern(form: str) -> re.Pattern[str]:
    return re.compile(rf"{form}|\.({form})\.tmp", re.ASCII)


_DIRECTLY = (OPTIONS_FILE, MANIFEST_FILE, REPORT_FILE, LOCK_FILE, SUCCESS_FILE, REFUSED_FILE)
_FILES = _pattern("|".join(map(re.escape, _DIRECTLY)))
_OURS = {folder: _pattern(form) for folder, form in _FORMS.items()}
_OURS["bicliques"] = re.compile(PART_NAME, re.ASCII)  # where every file is whole
_OURS["pending"] = re.compile(f"{PART_NAME}|{_UNNAMED_PART}", re.ASCII)
_ENTRY = re.compile(_FORMS["ledger"], re.ASCII)


def temporary_name(name: str) -> str:
    """The name of a file until it is finished."""
    return f".{name}.tmp"


def part_stem(slice_number: int) -> str:
    """Beginning of the names of the parts of one attempt at a slice. No other attempt has the same."""
    return f"part-{slice_number:06d}-{uuid.uuid4().hex[:12]}"


def part_name(stem: str, number: int) -> str:
    """Name of a finished part."""
    return f"{stem}-{number}.parquet"


def unnamed_part(stem: str, number: int) -> str:
    """Name of a part that is being written."""
    return f".{stem}-{number}.tmp"


def edges_file(number: int) -> Path:
    """Name of a file of the table of edges, which are sorted over all of them, numbered from 0."""
    return EDGES_FILE.with_stem(f"edges-{number}") if number else EDGES_FILE


def ingest_files(names: Iterable[str]) -> list[Path]:
    """The tables of the input, the edges last and in order, of which `names` has the files of edges that there are."""
    numbers = sorted(int(found[1] or 0) for found in map(_EDGES_FILE.fullmatch, names) if found)
    return [LEFT_LABELS_FILE, RIGHT_LABELS_FILE, *map(edges_file, numbers or [0])]


def tables_in(folder: Path) -> list[Path]:
    """The tables of the input that are in a folder, as `ingest_files` names them."""
    return ingest_files(f"edges/{path.name}" for path in (folder / "edges").iterdir())


def is_part(path: Path) -> bool:
    """Whether a path in ``bicliques/`` or ``pending/`` has the name of a part. In ``pending/`` it may be unfinished."""
    return _OURS[path.parent.name].fullmatch(path.name) is not None


def is_entry(name: str) -> bool:
    """Whether `name` is that of an entry of a ledger."""
    return _ENTRY.fullmatch(name) is not None


def has_name_of_run(folder: str, name: str) -> bool:
    """Whether a run gives this name to a file in this one of its folders."""
    return folder in _OURS and _OURS[folder].fullmatch(name) is not None


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder, and not a link to a folder."""
    return _kind(path) == stat.S_IFDIR


def is_file(path: Path) -> bool:
    """Whether `path` is a regular file, and not a link to a file."""
    return _kind(path) == stat.S_IFREG


def is_staging(path: Path) -> bool:
    """Whether `path` is a folder that the input was read into."""
    return _STAGING.fullmatch(path.name) is not None and is_folder(path)


def is_ours(path: Path) -> bool:
    """Whether a file or a link in a folder of a run has a name that a run gives there."""
    return has_name_of_run(path.parent.name, path.name) and not is_folder(path)


def refuse_links(run: Path) -> None:
    """Refuse a run that has a link in the place of a folder, because the link may lead to other people's files."""
    for name in FOLDERS:
        if os.path.islink(run / name):  # noqa: PTH114 - Path.is_symlink raises where looking is not allowed
            raise InputError(
                f"{run / name} is a link, and nothing is written or deleted through one; put the folder that it leads "
                "to in its place"
            )


def make_ready(run: Path) -> None:
    """Refuse links, and remove folders of input that was being read. Every step does this before it writes into a run.

    Raises `InputError` if a folder of the run is a link. The error names it.
    """
    refuse_links(run)
    for left in filter(is_staging, sorted(run.iterdir())):
        try:
            remove_ours(left)
            left.rmdir()
        except OSError as error:
            logger.warning("%s is left of reading the input and cannot be removed (%s)", left, error.strerror)


def url_of(path: str | os.PathLike[str]) -> str | None:
    """The URL that was given as a path, with all its slashes. None if `path` is no URL, or if a file has that name."""
    given = os.fspath(path)
    url = _URL.match(given)
    if url is None or os.path.lexists(given):
        return None
    slashes = "///" if url["scheme"] == "file" else "//"
    return given if url["second"] else f"{url['scheme']}:{slashes}{given[url.end() :]}"


def is_store(url: str) -> bool:
    """Whether a run can be kept at a URL."""
    return url.partition(":")[0].lower() == "s3"


def store_url(path: str | os.PathLike[str]) -> str | None:
    """The URL that was given as a path, if a run can be kept there. Otherwise None, as `url_of`."""
    url = url_of(path)
    return url if url is not None and is_store(url) else None


def refuse_url(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder to write into that is not on this machine."""
    if (url := url_of(folder)) is not None:
        from bicliques.pipeline.remote.urls import without_secrets  # here, because every command imports this

        shown = without_secrets(url)
        raise InputError(
            f"{shown} is a URL, and results are written to this machine; name a folder, and copy it afterwards"
        )


def stranger_in(run: Path) -> Path | None:
    """The first path in the folder of a run that the run has not made. None if there is none."""
    for path in sorted(run.iterdir()):
        if is_staging(path):
            found = stranger_in(path)
        elif path.name in FOLDERS and is_folder(path):
            found = next((child for child in sorted(path.iterdir()) if not is_ours(child)), None)
        else:
            found = None if is_of_run(path) else path
        if found is not None:
            return found
    return None


def remove_ours(run: Path, keep: tuple[str, ...] = ()) -> None:
    """Remove what a run has made in its folder, except the names in `keep`. ``options.json`` is removed last.

    Raises `OSError` if a file or folder of the run cannot be removed.
    """
    for path in sorted(run.iterdir(), key=lambda path: (path.name == OPTIONS_FILE, path.name)):
        if path.name in keep:
            continue
        if is_staging(path):
            remove_ours(path)
            _remove_if_empty(path)
        elif path.name in FOLDERS and is_folder(path):
            for child in path.iterdir():
                if is_ours(child):
                    child.unlink(missing_ok=True)
            _remove_if_empty(path)
        elif is_of_run(path):
            path.unlink(missing_ok=True)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.ENOENT):  # it holds files of others, or is removed already
            raise


def is_of_run(path: Path) -> bool:
    """Whether a path has a name that a run gives to a file directly in its folder, and is no folder."""
    return _FILES.fullmatch(path.name) is not None and not is_folder(path)


def _kind(path: Path) -> int:
    """The kind of file, as `stat.S_IFMT` gives it. 0 if there is no file or looking is not allowed."""
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return 0


def day_in(name: str) -> str | None:
    """The day in a name such as ``2026-01-31`` or ``day=2026-01-31``. None if the name holds no day, or several."""
    days = _DAY.findall(name)
    try:
        return date.fromisoformat(days[0]).isoformat() if len(days) == 1 else None
    except ValueError:  # 2026-99-99
        return None


def without_days(name: str) -> str:
    """The name with ``{date}`` in place of every day in it. So the inputs of two nights have the same name."""
    return _DAY.sub("{date}", name)
