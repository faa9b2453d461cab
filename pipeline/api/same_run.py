"""Whether a folder holds the run that is asked for, so that another call goes on with it instead of beginning anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bicliques.kernels import engines
from bicliques.pipeline.ingest.from_run import is_run_folder
from bicliques.pipeline.ingest.gpu.ingest_on import IngestOn
from bicliques.pipeline.ingest.readers.files import is_named, items_of
from bicliques.pipeline.ingest.sources.at_hand import at_hand, digest_of
from bicliques.pipeline.ingest.sources.names import STDIN
from bicliques.pipeline.ingest.step import ingest
from bicliques.pipeline.run.files import temporary_folder
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.series.pruning import finish_removal, put_back, set_aside
from bicliques.pipeline.series.runs import is_run
from bicliques.schemas.errors import IncompleteError, InputError, as_option
from bicliques.schemas.options import RunOptions
from bicliques.schemas.values import local_path


def why_another(folder: RunFolder, asked: RunOptions, digest_now: Callable[[], str | None]) -> str | None:
    """Why the run in a folder is not the one that is asked for, in one clause. None if it is.

    Raises `InputError` if the source cannot be read, and `IncompleteError` if the options of the run are damaged.

    Parameters
    ----------
    folder : RunFolder
        The folder of a run.
    asked : RunOptions
        The options of the run. An engine ``engines.AUTO`` agrees with every engine of the run that is there.
    digest_now : callable
        () -> the digest of the source as it is now, or None if that is not known. It is called if all options agree.
    """
    there, where = _flat(folder.options().to_json()), folder.store.shown()
    for name, value in _flat(asked.to_json()).items():
        if there[name] != value and (name, value) != ("engine", engines.AUTO):
            return f"{where} holds a run {_told(name, there[name])}, not {_told(name, value)}"
    try:
        facts = folder.facts("ingest")
    except IncompleteError:  # going on does the step again, and refuses an input that has changed
        return None
    if facts is None:
        return None
    return None if digest_now() in (None, facts["digest"]) else f"{asked.source} has changed since {where} read it"


def digest_by_name(asked: RunOptions) -> str | None:
    """The digest of the source that the options name, as it is now. None if it cannot be read again."""
    if is_run_folder(asked.source):
        return str(RunFolder(Path(asked.source)).need("ingest")["digest"])
    return digest_of(asked.source, asked.ingest.where)


def is_there_already(path: Path, asked: RunOptions, source: Any, ingest_on: IngestOn = "auto") -> bool:
    """Whether `path` holds the run that is asked for, complete or not. False if it holds no run.

    Parameters
    ----------
    source : path, sequence of paths, or object
        The input. An object in memory is read into a temporary folder, to compare what is in it.
    ingest_on : "auto", "cpu" or "gpu"
        Where that is done.
    """
    if not _is_run(path):
        return False
    try:
        reason = why_another(RunFolder(path), asked, lambda: _digest(source, asked, ingest_on))
    except IncompleteError:  # whoever begins a run there says what is wrong
        return False
    if reason is not None:
        raise InputError(
            f"{reason}; name another output folder, finish that run as it is with: {how_to_resume(path)}, or begin "
            f"anew there with {as_option('overwrite', True)}"
        )
    return True


@contextmanager
def begun_anew(path: Path, source: Any) -> Iterator[Callable[[], None]]:
    """Set aside the run in `path`, if there is one, while another run begins there.

    The block calls what it gets once the new run can be gone on with. Then the old run is removed. If the block fails
    before, the old run is put back. Raises `ResourceError` if a file cannot be removed.
    """
    if is_run_folder(source) and local_path(source).resolve() == path.resolve():
        raise InputError(f"{path} is the source and the output; name another output folder")
    away = set_aside(path) if _is_run(path) else None
    has_begun = False

    def begun() -> None:
        nonlocal has_begun
        has_begun = True
        if away is not None:
            finish_removal(away)

    try:
        yield begun
    finally:
        if away is not None and not has_begun:
            put_back(away, path)


def _is_run(path: Path) -> bool:
    return "\0" not in str(path) and is_run(path)


def _digest(source: Any, asked: RunOptions, ingest_on: IngestOn) -> str | None:
    if is_run_folder(source):
        return str(RunFolder(local_path(source)).need("ingest")["digest"])
    if not is_named(source):
        with temporary_folder() as folder:
            return ingest(source, asked.ingest, folder, ingest_on).digest
    if STDIN in items_of(source):
        raise InputError(
            "standard input cannot be compared with what the run in the output folder has read; name another folder"
        )
    with at_hand(source, asked.ingest.where) as files:
        digest: str = files.digest()
    return digest


def _told(name: str, value: Any) -> str:
    """A field of the options as a sentence names it."""
    if name == "source":
        return f"of {value}"
    if name == "mode":
        given = value == "fingerprint"
        return f"with {as_option('count_only', True)}" if given else f"without {as_option('count_only')}"
    if name == "mirrored":
        if value is None:
            return f"without {as_option('undirected')}"
        return f"with {as_option('undirected', True)} and {value} members on one side"
    name = {"largest": "top"}.get(name, name)
    if value is None or value is False or value == ():
        return f"without {as_option(name)}"
    return f"with {as_option(name, list(value) if isinstance(value, tuple) else value)}"


def _flat(options: dict[str, Any]) -> dict[str, Any]:
    """Nested options in one dictionary, by their last names, which are all different."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat
