"""The command or the call that goes on with a run. Errors and results name it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from bicliques.pipeline.run.names import PUBLISHED_FILE, is_file, is_store, url_of
from bicliques.pipeline.run.store import store_at
from bicliques.schemas.errors import BicliqueError, as_word, in_both

#: What says which of two runs is damaged.
VERIFY = in_both("bicliques verify", "bicliques.verify")


def how_to_resume(path: Path | str | os.PathLike[str], outcome: str = "") -> str:
    """The command or call that goes on with the run in `path`; see `schemas.errors.in_both`.

    Parameters
    ----------
    outcome : str
        How the run ended. After "max_results" the command lifts that limit, because the run would reach it again at
        once.
    """
    with suppress(BicliqueError):  # the sentence is part of another error
        path = url_of(path) or store_at(Path(path)).url or path
    words, call = f"bicliques resume {as_word(str(path))}", f"bicliques.resume({str(path)!r}"
    if outcome == "max_results":
        return in_both(f"{words} --max-results none", f"{call}, max_results=None)")
    return in_both(words, f"{call})")


def in_the_way(path: Path, what: str, run: Path) -> str:
    """A sentence about a path in the folder of a run that has to be moved away before the run can go on."""
    return f"{path} {what}; move it away, then continue with: {how_to_resume(run)}"


def no_run(path: Path) -> str:
    """Why a path is no folder of a run, in words. What was published of a run is none."""
    url = url_of(path)
    if url is not None:
        from bicliques.pipeline.remote.urls import without_secrets  # here, because most commands need it not

        shown = without_secrets(url)
        if is_store(url):
            return (
                f"{shown} holds no run: it has no options.json, which comes with the plan; if a run was to begin "
                f"there, give the same command again; what is in {shown}/bicliques can be read with other programs"
            )
        return f"{shown} is a URL, and runs are opened on this machine; read {shown}/bicliques with other programs"
    if not os.path.lexists(path):
        return f"{path} is not the folder of a run: it does not exist; check its name, and the current folder"
    why = f"{path} is not the folder of a run: it has no options.json"
    if os.path.lexists(path / "options.json"):
        return f"{path / 'options.json'} is a link that leads nowhere; start the run again in another folder"
    if is_file(path / PUBLISHED_FILE):
        why += f", because a run was published there; read {path / 'bicliques'} with other programs"
    return why


def of_another_schema(folder: Path, schema: object, version: object) -> str:
    """Why a run of another schema version, which that version of the package wrote, is not used, and what helps."""
    from bicliques.schemas.bicliques import READ_VERSIONS  # not for other sentences: it imports Arrow

    remedy = f"use version {version} of the package"
    if isinstance(schema, int) and schema < min(READ_VERSIONS):
        remedy = f"mine again into another folder, or read the Parquet files in {folder / 'bicliques'} directly"
    versions = " and ".join(map(str, READ_VERSIONS))
    return f"{folder} was made with schema version {schema}, and this package reads versions {versions}; {remedy}"
