"""Several files of one format as one stream of edges, as if they were one file.

All files are opened once before the first is read, so that a file which does not fit the others is refused at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from bicliques.pipeline.ingest.readers.base import SIDES, EdgeStream, Format
from bicliques.pipeline.ingest.readers.files import Files
from bicliques.pipeline.ingest.readers.labels import TEXT
from bicliques.pipeline.ingest.readers.opening import file_digest, list_digest, open_file
from bicliques.pipeline.ingest.readers.text import TextStream
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import in_order
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.reading import Doubt

#: Most files that are read at a time. The thread that takes their edges cannot keep up with more.
_AT_A_TIME = 4


class SeveralFiles(EdgeStream):
    """Edges of several files, one file after the other. A file with other columns than the others is refused."""

    def __init__(self, files: Files, format: Format, options: IngestOptions):
        self.source = files.title
        self._files, self._options = files, options
        self._opened: Callable[[Path], EdgeStream] = lambda path: format.open(path, options, format.name)
        self._filled = [path for path in files.paths if _has_bytes(path)] or list(files.paths[:1])
        self._digests: dict[Path, EdgeStream] = {}
        self._doubts: dict[str, Doubt] = {}
        self._texts: dict[Path, TextStream] = {}  # they hold no file open, and their first lines are not read again
        self._first = self._opened(self._filled[0])
        self._first.source = files.title  # it speaks for all of them in `check_table`
        self.reading = self._first.reading
        self.left_is_counted = self._first.left_is_counted
        self._look_at_all()

    def _look_at_all(self) -> None:
        """Find what holds for all files: the types of labels, and of integers. Refuse a file with other columns."""
        kinds: list[pa.DataType | None] = [None, None]
        integers = list(self._first.integers)
        told: list[Path | None] = [None, None]
        by_place = isinstance(self._options.left, int) and isinstance(self._options.right, int)
        for path in self._filled:
            part = self._opened(path)
            if isinstance(part, TextStream):
                self._texts[path] = part
            if not by_place and part.side_names != self.side_names:
                own, first = (" and ".join(names) for names in (part.side_names, self.side_names))
                raise InputError(
                    f"{path}: the two columns are {own}, but those of {self._filled[0]} are {first}; name the columns "
                    f"with {as_option('left')} and {as_option('right')} (positions, if not all files have names)"
                )
            for k, (kind, integer) in enumerate(zip(part.told_kinds(), part.integers, strict=True)):
                if kind is None:
                    continue
                if kinds[k] is None:
                    kinds[k], told[k] = kind, path
                elif kinds[k] != kind and not isinstance(part, TextStream):  # which says it with the line
                    raise InputError(
                        f"{path}: the {SIDES[k]} labels are {_words(kind)}, but those of {told[k]} are "
                        f"{_words(kinds[k])}; take all as text with {as_option('label_type', 'string')}"
                    )
                integers[k] = integer if integer.bit_width > integers[k].bit_width else integers[k]
        self.kinds = (kinds[0], kinds[1])
        self.integers = (integers[0], integers[1])

    def parts(self) -> Iterator[EdgeStream]:
        """Every file as a stream of its own. What it counted is added when the next one is asked for."""
        for path in self._filled:
            part = self._texts.pop(path, None) or self._opened(path)
            part.n_before = self.numbered
            if isinstance(part, TextStream):
                part.kinds = tuple(new or old for new, old in zip(self.kinds, part.kinds, strict=True))  # type: ignore[assignment]
            yield part
            self._add(path, part)

    def _add(self, path: Path, part: EdgeStream) -> None:
        """Check and add what a file that was read has counted."""
        part.check_counts()
        self.skipped += part.skipped
        self.light += part.light
        self.numbered += part.numbered
        if isinstance(part, TextStream) and isinstance(self._first, TextStream):
            self._first.rows += part.rows
        self._digests[path] = part
        for doubt in part.late_doubts:
            self._doubts.setdefault(doubt.kind, Doubt(doubt.kind, f"{path}: {doubt.text}"))

    @property
    def late_doubts(self) -> list[Doubt]:
        """Those of the files, the first of each kind."""
        return list(self._doubts.values())

    def chunks(self) -> Iterator[pa.RecordBatch]:
        """Batches of edges. See `EdgeStream.chunks`."""
        threads = min(count_cores() // 2, _AT_A_TIME)  # the other half numbers what was read
        if not self._first.is_small or threads < 2:
            for part in self.parts():
                yield from part.chunks()
            return
        opened = ((path, self._opened(path)) for path in self._filled)
        for path, part, batches in in_order(_read, opened, threads):
            yield from batches
            self._add(path, part)

    def check_table(self, left: pa.Array, right: pa.Array, n_rows: int) -> None:
        """Refuse a table with a column per vertex, by the first file."""
        self._first.check_table(left, right, n_rows)

    def digest(self) -> str | None:
        """Digest over all files. See `pipeline.ingest.readers.opening.list_digest`."""
        parts = ((path, self._digests.get(path)) for path in self._files.paths)
        found = [(part and part.digest()) or file_digest(path) for path, part in parts]
        return found[0] if self._files.is_one else list_digest(found, self._files.names)


def _has_bytes(path: Path) -> bool:
    """Whether a file is not empty. An empty one among several, as of a worker that had no rows, has no edges."""
    with open_file(path):
        return path.stat().st_size > 0


def _read(opened: tuple[Path, EdgeStream]) -> tuple[Path, EdgeStream, Iterable[pa.RecordBatch]]:
    """A file with its batches, which are in memory if that is not too much of it."""
    path, part = opened
    return path, part, list(part.chunks()) if part.is_small else part.chunks()


def _words(kind: pa.DataType | None) -> str:
    return "text" if kind == TEXT else "integers"
