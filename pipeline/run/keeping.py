"""Puts what a run has into its store: a session of its driver, its steps, and what a complete run has beside its parts.

See `pipeline.run.stored`; `pipeline.run.bringing` is the other way.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from bicliques.pipeline.remote.objects import Objects, each
from bicliques.pipeline.run.bringing import BESIDE, bring_ledger, forbid_replacing, may_replace
from bicliques.pipeline.run.changes import CHANGES_KEYS
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.journal import Journal
from bicliques.pipeline.run.names import (
    FOLDERS,
    MANIFEST_FILE,
    OPTIONS_FILE,
    REPORT_FILE,
    SUCCESS_FILE,
    has_name_of_run,
)
from bicliques.pipeline.run.stored import key_of, parts_listed, store_of
from bicliques.schemas.facts import BEFORE_MINING
from bicliques.schemas.manifest import Part
from bicliques.schemas.regular_files import read_regular

if TYPE_CHECKING:
    from bicliques.pipeline.run.ledger import Ledger

logger = logging.getLogger(__name__)

#: Keys of entries, and of the announcements of their numbers.
_OF_LEDGER = re.compile(r"ledger/\d+/(block-)?\d+\.json", re.ASCII)


def begin_session(folder: RunFolder, survey: Callable[[], Ledger]) -> Journal:
    """Begin a session of the driver: take over the ledger that is in the store.

    Parameters
    ----------
    folder : RunFolder
    survey : callable
        () -> the entries in the folder that count.

    Raises
    ------
    InputError
        If another driver has begun a session meanwhile.
    ResourceError
        If the store does not answer, or does not take something.
    """
    store = store_of(folder.path)
    assert store is not None
    journal = bring_ledger(store, folder)
    ledger = survey()
    _begin(store, journal, ledger.entries, ledger.parts)
    return journal


def _begin(store: Objects, journal: Journal, counting: Iterable[int], parts: Iterable[Part]) -> None:
    """Begin a session, and remove parts that count no more.

    They are listed before it begins. So a part of a later session, with which another driver has gone on meanwhile, is
    never among them.
    """
    there = parts_listed(store)
    journal.begin(counting)
    for name in there - {part.name for part in parts}:
        logger.info("%s/bicliques/%s belongs to no committed slice and is removed", store.shown, name)
        store.remove(key_of(name))


def keep_steps(folder: RunFolder) -> None:
    """Put options and steps of a run, with their files, into its store. What is there already is not put again.

    If the run may replace another one (`pipeline.run.bringing.allow_replacing`), the other one is removed before. With
    its options it is no run any more, and with the session that begins then its driver can add nothing.
    """
    store = store_of(folder.path)
    assert store is not None
    if may_replace(folder.path):
        _remove_another(store, folder)
        forbid_replacing(folder.path)
    for step in BEFORE_MINING:
        record = read_regular(folder.step_file(step))
        is_known = store.get(f"steps/{step}.json") == record
        sizes = {name: (folder.path / name).stat().st_size for name in folder.checksums(step)}
        names = [name for name, size in sizes.items() if not (is_known and store.size(name) == size)]
        each(lambda name: store.put(name, folder.path / name), names)
        if not is_known:
            store.put(f"steps/{step}.json", record)
    options = read_regular(folder.path / OPTIONS_FILE)
    if store.get(OPTIONS_FILE) != options:
        store.put(OPTIONS_FILE, options)


def _remove_another(store: Objects, folder: RunFolder) -> None:
    """Remove the run that is there. It can be repeated after a kill: until the options are put, no run is there."""
    journal = Journal(store, folder.run_id(), replaces=True)
    if journal.is_first and store.size(OPTIONS_FILE) is None:
        return
    for key in (SUCCESS_FILE, MANIFEST_FILE, OPTIONS_FILE):
        store.remove(key)
    if journal.is_new:
        journal.begin(())
    logger.info("the run that was in %s is removed", store.shown)
    listed = [f"{place}/{name}" for place in FOLDERS for name in store.listed(place)]
    own = {name for step in BEFORE_MINING for name in (f"steps/{step}.json", *folder.checksums(step))}
    # what the new run puts at once is not removed: a request of a process that was killed may arrive late
    each(store.remove, {"steps/mine.json", *BESIDE, *CHANGES_KEYS, REPORT_FILE, *filter(_is_key, listed)} - own)


def _is_key(key: str) -> bool:
    """Whether a run has put an object under this key, and it is no session."""
    place, _, name = key.partition("/")
    return has_name_of_run(place, name) or _OF_LEDGER.fullmatch(key) is not None


def keep_result(folder: RunFolder, journal: Journal | None = None) -> None:
    """Put what a complete run has beside its parts into its store: the manifest last, and then ``_SUCCESS``.

    Before, a session is begun in which nothing is mined. So no other driver can have gone on with the run. Of a run
    that has all that already, only files are put that are missing there, or have another size.

    Parameters
    ----------
    folder : RunFolder
    journal : Journal or None
        That of the driver that has mined. None reads it anew.

    Raises
    ------
    InputError
        If another driver has gone on with the run.
    ResourceError
        If the store does not take something.
    """
    store, manifest = store_of(folder.path), folder.manifest()
    assert store is not None
    assert manifest is not None
    if journal is None:
        keep_steps(folder)  # what was lost there is made again here
    text = read_regular(folder.manifest_file)
    names = ["steps/mine.json", *BESIDE]
    sizes = {name: (folder.path / name).stat().st_size for name in names if (folder.path / name).exists()}
    if store.size(SUCCESS_FILE) is not None and store.get(MANIFEST_FILE) == text:
        for name, size in sizes.items():
            if store.size(name) != size:
                logger.warning("%s/%s is missing or damaged, and is put again", store.shown, name)
                store.put(name, folder.path / name)
        return
    journal = journal or Journal(store, folder.run_id())
    _begin(store, journal, [int(file.stem) for file in folder.entries_there()], manifest.parts)
    for name in sizes:
        store.put(name, folder.path / name)
    store.put(MANIFEST_FILE, text)
    store.put(SUCCESS_FILE, b"")
