"""A folder into which the tables of the input are written before they get their places, all at once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bicliques.pipeline.run.files import disk_errors
from bicliques.pipeline.run.names import STAGING, refuse_links, tables_in
from bicliques.schemas.errors import InputError


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
