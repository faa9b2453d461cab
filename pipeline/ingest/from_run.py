"""Takes the tables of the input from a run that has read it, so that nothing is read again.

The new run holds them itself, and stays valid when the other one is removed. On the same file system it shares the
files (hard links), which takes no time and no room: a run never changes such a file, it only removes or replaces it.
Elsewhere the files are copied.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from bicliques.pipeline.ingest.gpu.ingest_on import IngestOn
from bicliques.pipeline.run.files import checksum, disk_errors
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import OPTIONS_FILE, STAGING, ingest_files, refuse_links, tables_in
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.schemas.errors import IncompleteError, InputError, as_option
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.values import local_path


@contextmanager
def all_or_nothing(folder: Path) -> Iterator[Path]:
    """A folder to write into. At the end its files move to `folder`, the edges last; after an error they disappear."""
    refuse_links(folder)
    try:
        staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=folder))
    except OSError as error:
        raise InputError(f"{folder} cannot be written into ({error.strerror}); choose another folder") from error
    made: list[Path] = []
    try:
        for name in ("labels", "edges"):
            (staging / name).mkdir()
        yield staging
        files = tables_in(staging)
        if (folder / "edges").exists():
            for old in set(tables_in(folder)) - set(files):  # a writer that was killed may have made more files
                (folder / old).unlink()
        for file in files:
            target = folder / file
            if not target.parent.exists():
                target.parent.mkdir()
                made.append(target.parent)
            (staging / file).replace(target)
            made.append(target)
    except BaseException as error:
        for path in reversed(made):
            path.rmdir() if path.is_dir() else path.unlink()
        with disk_errors(folder):
            raise error
    finally:
        shutil.rmtree(staging, ignore_errors=True)  # files that stay are removed when the run goes on


def is_run_folder(source: Any) -> bool:
    """Whether a source is the folder of a run, or a link to one."""
    return isinstance(source, (str, os.PathLike)) and os.path.isfile(local_path(source) / OPTIONS_FILE)  # noqa: PTH113 - never raises


def take_from_run(source: Path, options: IngestOptions, folder: Path, ingest_on: IngestOn = "auto") -> dict[str, Any]:
    """Put the tables of another run into `folder`. Returns the facts of that run about its input, and ``from_run``.

    Raises `ResourceError`: writing fails, as on a full disk.

    Parameters
    ----------
    source : Path
        Folder of a run whose step ``ingest`` is done. It may be incomplete otherwise, or at work.
    options : IngestOptions
        How to read an input. Here nothing is read, so no option may be given.
    folder : Path
        An existing folder. After an error it is as it was before.
    ingest_on : "auto", "cpu" or "gpu"
        As `options`: "gpu" is refused.
    """
    started = time.perf_counter()
    _refuse_reading(source, options, ingest_on)
    run = RunFolder(source)
    try:
        facts, sums = run.need("ingest"), run.checksums("ingest")
    except IncompleteError as error:
        raise InputError(f"{source} cannot be taken as a source: {error}") from error
    if options.undirected != facts.get("undirected", False):
        kinds = "two kinds of vertices, not one" if options.undirected else "one kind of vertices, not two"
        raise InputError(f"{source} is a run that has read {kinds}; name the edge list itself")
    with all_or_nothing(folder) as staging:
        for file in ingest_files(sums):
            if not (source / file).is_file():
                raise InputError(f"{source / file} is missing or damaged; mend it with: {how_to_resume(source)}")
            if not os.access(source / file, os.R_OK):
                raise InputError(f"{source / file} may not be read; ask its owner")
            link_or_copy(source / file, staging / file)
            if checksum(staging / file) != sums.get(str(file)):
                raise InputError(f"{source / file} is missing or damaged; mend it with: {how_to_resume(source)}")
    seconds = time.perf_counter() - started
    return facts | {"seconds": seconds, "tables_seconds": seconds, "from_run": str(source)}


def _refuse_reading(source: Path, options: IngestOptions, ingest_on: IngestOn) -> None:
    usual = IngestOptions(undirected=options.undirected)
    given = [each.name for each in fields(options) if getattr(options, each.name) != getattr(usual, each.name)]
    if given or ingest_on == "gpu":
        raise InputError(
            f"{source} is a run, which has read its input already; leave {as_option((*given, 'ingest_on')[0])} out"
        )


def link_or_copy(source: Path, target: Path) -> None:
    """Put a file of a run into another one. They share it where the file system can do that."""
    real = source.resolve()  # a link to a file is not a file of the new run
    try:
        target.hardlink_to(real)
    except OSError:  # another file system, or one without links, or the file of another user
        shutil.copyfile(real, target)
