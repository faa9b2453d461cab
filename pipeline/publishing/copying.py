"""Copies files of a run to a place, a few at a time, and reads each one back."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Lock

from bicliques.pipeline.ingest.readers.opening import Digest
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.publishing.place import PIECE, Place, Seen
from bicliques.pipeline.publishing.record import Contents, Listed, Listing
from bicliques.pipeline.run.progress import OnProgress, Progress
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.tables import open_bytes
from bicliques.schemas.errors import BicliqueError, IncompleteError, ResourceError

#: Files that are copied or compared at a time. A store answers slowly, and takes several at once.
_AT_A_TIME = 4
#: Seconds between two looks at how far the copies are.
_LOOK_S = 0.2


class Copying:
    """Copies the files of a run, and tells how far it is.

    Parameters
    ----------
    on_progress : callable
    confirm : callable
        Called with the name of each file that was written and read back, in the thread that has done so. It raises an
        error to end all.
    """

    def __init__(self, contents: Contents, place: Place, on_progress: OnProgress, confirm: Callable[[str], None]):
        self._contents, self._place, self._on_progress, self._confirm = contents, place, on_progress, confirm
        with _reading(contents.path, contents.path):
            self._sizes = {name: contents.size(name) for name in contents.names}
        self._total = sum(self._sizes.values())
        self._lock, self._stop = Lock(), Event()
        self._written = self._read = 0
        self._started = time.monotonic()

    def same(self, there: dict[str, Seen], before: Listing | None) -> dict[str, Listed]:
        """The files that are in the place as the run has them, and so need not be written.

        A file is not read there if the record of the publication has its digest, and it has not been written since.
        Raises `IncompleteError` if a file of the run cannot be read, and `ResourceError` if a file of the place cannot
        be read.
        """

        def compared(name: str) -> tuple[str, Listed | None]:
            path, seen = self._contents.path / name, there[name]
            if self._sizes[name] != seen.bytes:
                return name, None
            with _reading(path, self._contents.path):
                digest = _digest_of(_content(path))
            listed = before.files.get(name) if before is not None else None
            if listed is not None and listed.is_still(seen):
                found = listed.blake3
            else:
                found = _digest_of(self._place.read(name))
            return name, Listed(seen.bytes, digest, seen.modified) if found == digest else None

        kept = {}
        for name, listed in in_order(compared, [name for name in self._contents.names if name in there], _AT_A_TIME):
            if listed is not None:
                kept[name] = listed
                self._written, self._read = self._written + listed.bytes, self._read + listed.bytes
            self._tell()
        return kept

    def copies(self, names: Sequence[str]) -> Generator[tuple[str, Listed], None, None]:
        """Copy these files. Each comes when it was read back.

        Raises `IncompleteError` if a file of the run cannot be read, and `ResourceError` if a file cannot be written,
        or is not what was written.
        """
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            waiting = {pool.submit(self._copy, name) for name in names}
            try:
                while waiting:
                    done, waiting = wait(waiting, _LOOK_S, FIRST_COMPLETED)
                    self._tell()
                    yield from _results(done)
            except BaseException:  # also Ctrl-C, and whatever the caller raises: nothing goes on behind it
                self._stop.set()
                for future in waiting:
                    future.cancel()
                raise

    def _copy(self, name: str) -> tuple[str, Listed]:
        digest = Digest()
        seen = self._place.write(name, self._pieces(self._contents.path / name, digest))
        found = _digest_of(self._counted(self._place.read(name)))
        if found != digest.hexdigest():
            raise ResourceError(
                f"{self._place.shown}/{name} is read back with another content than was written; give the same command "
                "again"
            )
        self._confirm(name)
        return name, Listed(seen.bytes, found, seen.modified)

    def _pieces(self, path: Path, digest: Digest) -> Iterator[bytes]:
        """The content of a file of the run, which also goes into the digest."""
        with _reading(path, self._contents.path), closing(_content(path)) as pieces:
            for piece in pieces:
                self._go_on()
                digest.update(piece)
                yield piece
                with self._lock:
                    self._written += len(piece)

    def _counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._go_on()
            yield piece
            with self._lock:
                self._read += len(piece)

    def _go_on(self) -> None:
        if self._stop.is_set():
            raise BicliqueError("another file could not be copied")  # nobody is told

    def _tell(self) -> None:
        share = min((self._written + self._read) / max(2 * self._total, 1), 1.0)
        seconds = time.monotonic() - self._started
        self._on_progress(Progress("publish", share, bytes=self._written, seconds=seconds))


def _results(done: Iterable[Future[tuple[str, Listed]]]) -> Iterator[tuple[str, Listed]]:
    """The results of those that did not fail, and then the first error."""
    failed = [future for future in done if future.exception() is not None]
    yield from (future.result() for future in done if future not in failed)
    for future in failed:
        future.result()


def _content(path: Path) -> Generator[bytes, None, None]:
    """The content of a file of the run, which may be in a store, piece by piece."""
    file, _ = open_bytes(path)
    with file:
        while piece := file.read(PIECE):
            yield piece


def _digest_of(pieces: Iterable[bytes]) -> str:
    digest = Digest()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


@contextmanager
def _reading(path: Path, run: Path) -> Iterator[None]:
    """Turn an error of the file system about a file of the run into one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        raise IncompleteError(f"{path} cannot be read ({reason}); mend it with: {how_to_resume(run)}") from error
