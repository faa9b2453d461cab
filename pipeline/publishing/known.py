"""What is in a place before a run is published there. A place that holds something else is refused."""

from __future__ import annotations

from collections.abc import Collection

from bicliques.pipeline.ingest.readers.files import is_hidden
from bicliques.pipeline.publishing.contents import Contents, is_published
from bicliques.pipeline.publishing.listing import LAYOUT, Listing
from bicliques.pipeline.publishing.place import Place, Seen
from bicliques.pipeline.run.names import OPTIONS_FILE, PUBLISHED_FILE, SUCCESS_FILE
from bicliques.pipeline.run.progress import number
from bicliques.pipeline.run.version import __version__
from bicliques.schemas.errors import IncompleteError, InputError


def refuse_place(place: Place, contents: Contents) -> None:
    """Refuse a place inside the folder of the run or of another one, whose readers would take its files for rows.

    Raises
    ------
    InputError
    """
    store = contents.run.store.shown()
    if place.is_below(contents.path) or f"{place.shown}/".startswith(f"{store}/"):
        raise InputError(f"{place.shown} is the folder of the run, or lies in it; name a folder elsewhere")
    place.refuse_inside_run()


def known_listing(place: Place, there: dict[str, Seen], contents: Contents, overwrite: bool) -> Listing | None:
    """The record of what was published in a place. None if nothing was.

    Parameters
    ----------
    place : Place
    there : dict of str to Seen
        The files in the place.
    contents : Contents
        What is to be published.
    overwrite : bool
        Whether another run may be there.

    Raises
    ------
    InputError
        If there is another run and it may not be, a file of somebody else in the place of one of ours, or a Parquet
        file among the rows that readers would take for rows.
    """
    if OPTIONS_FILE in there:
        raise InputError(f"{place.shown} is the folder of a run, which is not published into; name another one")
    if PUBLISHED_FILE not in there:
        ours = next((name for name in sorted(there) if is_published(name) or name == SUCCESS_FILE), None)
        if ours is not None:
            raise InputError(f"{place.shown} holds {ours}, which was not published there; name another folder")
        refuse_readable(place, there, ())
        return None
    try:
        found = Listing.from_bytes(b"".join(place.read(PUBLISHED_FILE)))
    except IncompleteError as error:
        found = _made_up(place, there, contents, error)
    if found.run != contents.run.identity and not overwrite:
        same = "the same" if found.fingerprint == str(contents.manifest.fingerprint) else "other"
        raise InputError(
            f"{place.shown} holds another run, of {found.created}, with {number(found.count, 'biclique')} ({same} "
            "ones); name another folder, or replace it with --overwrite"
        )
    refuse_readable(place, there, found.names | set(contents.names))
    return found


def refuse_readable(place: Place, there: Collection[str], ours: Collection[str]) -> None:
    """Refuse files of somebody else that a reader of the rows would read, too.

    Raises
    ------
    InputError
    """
    for name in sorted(there):
        is_row = name.startswith("bicliques/") and name.endswith(".parquet") and not is_hidden(name)
        if is_row and name not in ours:
            raise InputError(
                f"{place.shown}/{name} is of somebody else, and would be read as rows of the run; move it away"
            )


def _made_up(place: Place, there: Collection[str], contents: Contents, error: IncompleteError) -> Listing:
    """A record in the place of one that cannot be read, if all files there have names of the run at hand.

    A store that does not write a file whole or not at all may leave a record that was cut off. Names of parts belong to
    one run.
    """
    manifest, ours = contents.manifest, {name for name in there if is_published(name)}
    if SUCCESS_FILE in there or not ours <= set(contents.names):
        raise InputError(
            f"{place.shown}/{PUBLISHED_FILE} cannot be used ({error}), so nobody knows which files were published "
            "there; delete them, or name another folder"
        ) from error
    number = str(manifest.fingerprint)
    return Listing(
        LAYOUT, __version__, contents.run.identity, manifest.created, manifest.count, number, "", {}, tuple(ours)
    )
