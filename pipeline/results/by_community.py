"""What the results of a run say of communities, and the files in which a run keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bicliques.pipeline.output.part_writer import LAYOUT, part_schema, to_batch
from bicliques.pipeline.output.stretch import LabelRoom, row_groups
from bicliques.pipeline.results.by_id import ById, as_id
from bicliques.pipeline.run.files import disk_errors, whole_file
from bicliques.pipeline.run.names import COMMUNITIES, COMMUNITIES_FILES, refuse_links
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.tables import open_part, read_table
from bicliques.schemas.errors import IncompleteError, InputError, UnknownIdError
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.search import search_words
from bicliques.schemas.values import whole

#: The metadata of both files that says what they are.
_RECORD = b"bicliques.communities"


@dataclass(frozen=True)
class Communities:
    """Communities of the bicliques of a run, as its folder keeps them.

    Parameters
    ----------
    path : Path
        The folder with ``communities.parquet`` and ``bicliques.parquet``.
    settings : list of dict
        How many ``bicliques`` have at least ``left`` x ``right`` members, how many ``communities`` are joined by as
        many, and how many bicliques the ``largest`` has. The files are of the first setting, and higher ones follow.
    fingerprint : int
        Sum modulo 2**64, over communities, of `schemas.hashes.splitmix64` of the sum of the ids of their bicliques.
    """

    path: Path
    settings: list[dict[str, int]]
    fingerprint: int

    def __len__(self) -> int:
        return self.settings[0]["communities"]

    @property
    def table(self) -> pa.Table:
        """A row per community: ``id``, ``left``, ``right``, ``n_left``, ``n_right`` and the number of ``bicliques``.

        Those with most bicliques come first. The id is the least id of the bicliques.
        """
        return read_table(self.path / COMMUNITIES_FILES[1])

    @property
    def of_bicliques(self) -> pa.Table:
        """The ``id`` of every biclique that is large enough, and that of its ``community``."""
        return read_table(self.path / COMMUNITIES_FILES[0])


class ByCommunity(ById):
    """What `pipeline.results.results.Results` has by community."""

    def communities(self, a: int | None = None, b: int | None = None) -> Communities:
        """The communities of bicliques that share at least `a` left and at least `b` right members.

        Raises `IncompleteError` if the run is not complete, or a file is missing or damaged.

        Parameters
        ----------
        a, b : int or None
            Bicliques with fewer members are in no community. None: the communities that were found last.

        Returns
        -------
        Communities
            The folder of the run keeps them, in the place of others that it kept before.
        """
        run = self._mined.exact("communities rest on rows of which every pair is an edge")
        if a is None and b is None:
            if (kept := kept_communities(run, self._manifest)) is not None:
                return kept
            raise InputError(f"{self.path} keeps no communities; find those of one setting first, as of 3x3")
        a, b = (whole(n, f"the number of {side} members to share", 1) for n, side in ((a, "left"), (b, "right")))
        self._refuse_count_only()
        search, manifest = run.options.search, self.manifest
        more = search.min_left > a or search.min_right > b or search.largest is not None
        if more or search.has_filters or search.is_containing:
            which = f"the {search.largest:,} largest" if search.largest else f"those with {search_words(search)}"
            why = f"communities at {a}x{b} need all bicliques of this size, and {self.path} has only {which}"
            raise InputError(f"{why}; mine again for all of them")
        if run.store.url is not None:
            raise InputError(f"{run.store.shown()} is in a store, where no communities are kept; copy the run here")
        # here, because it imports compiled code, and so do these
        from bicliques.pipeline.results.communities import find_communities
        from bicliques.pipeline.results.edges import Parts, edge_groups

        parts = Parts(run, self.files)
        settings, fingerprint, found, rows = find_communities(parts, run.hashes, edge_groups(run), (a, b))
        record = {"of": str(manifest.fingerprint), "settings": settings, "fingerprint": str(fingerprint)}
        fields = [field if field.name != "root" else field.with_name("bicliques") for field in part_schema(run.tables)]
        schema, folder = pa.schema(fields, {_RECORD: json.dumps(record)}), run.path / COMMUNITIES
        groups = (to_batch(group, run.tables).columns for group in row_groups(found, LabelRoom(run.tables)))
        refuse_links(run.path)
        with disk_errors(folder):
            folder.mkdir(exist_ok=True)
            (folder / COMMUNITIES_FILES[1]).unlink(missing_ok=True)  # which is never there beside rows of another one
        _write(folder / COMMUNITIES_FILES[0], rows.schema, [rows])
        _write(folder / COMMUNITIES_FILES[1], schema, (pa.table(each, schema=schema) for each in groups))
        return Communities(folder, settings, fingerprint)

    def _of_community(self, id: int | str) -> np.ndarray:
        own: np.ndarray = self.communities().of_bicliques.filter(pc.field("community") == as_id(id))["id"].to_numpy()
        if not len(own):
            raise UnknownIdError(f"{self.path} has no community with the id {id}; communities.parquet has all ids")
        return own

    def _with_community(self, rows: pa.Table) -> pa.Table:
        known = self.communities().of_bicliques
        at = pc.index_in(rows["id"], value_set=known["id"].combine_chunks())
        return rows.append_column("community", known["community"].take(at))


def kept_communities(run: Run, manifest: Manifest | None) -> Communities | None:
    """The communities that a run keeps. None if it keeps none, or those of other bicliques."""
    folder = run.path / COMMUNITIES
    try:
        with open_part(folder / COMMUNITIES_FILES[1]) as file:
            told = json.loads(file.schema_arrow.metadata[_RECORD])
        same = manifest is not None and told["of"] == str(manifest.fingerprint)
        return Communities(folder, told["settings"], int(told["fingerprint"])) if same else None
    except (IncompleteError, KeyError, TypeError, ValueError):
        return None


def _write(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    how = {name: LAYOUT[name] for name in ("use_dictionary", "write_page_checksum")} | {"compression": "zstd"}
    with whole_file(path) as file, pq.ParquetWriter(file, schema, **how) as out:
        for table in tables:
            out.write_table(table)
