"""The folder of a run: its files and what they say. `pipeline.run.names` says what the files are called."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from bicliques.pipeline import __version__
from bicliques.pipeline.run.files import checksum, checksums_of, disk_errors, read_json, write_json
from bicliques.pipeline.run.names import (
    LOCK_FILE,
    MANIFEST_FILE,
    OPTIONS_FILE,
    REPORT_FILE,
    day_in,
    has_name_of_run,
    ingest_files,
    is_entry,
    is_ours,
    is_part,
    refuse_links,
)
from bicliques.pipeline.run.resuming import how_to_resume, in_the_way, no_run, of_another_schema
from bicliques.pipeline.run.store import Store, store_at
from bicliques.schemas.bicliques import READ_VERSIONS, SCHEMA_VERSION
from bicliques.schemas.errors import IncompleteError, InputError, said
from bicliques.schemas.facts import STEPS, StepFiles
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.options import RunLimits, RunOptions, RunOrigin
from bicliques.schemas.records import check_facts, read_as
from bicliques.schemas.values import literal

_ANEW = "start the run again in another folder"
#: The folders that a step writes files into.
PLACES = {"ingest": ("edges", "labels"), "build": ("graph",), "plan": ("plan",)}

T = TypeVar("T")


def children_of(place: Path) -> list[Path]:
    """The paths in a folder of a run, sorted by name. An empty list if the folder is missing."""
    try:
        return sorted(place.iterdir())
    except FileNotFoundError:
        return []
    except NotADirectoryError as error:
        raise IncompleteError(in_the_way(place, "is a file, where the run has a folder", place.parent)) from error


@dataclass(frozen=True)
class RunFolder:
    """Paths below the folder of a run, and its JSON files."""

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", literal(self.path))

    @property
    def store(self) -> Store:
        """Where the run is kept."""
        return store_at(self.path)

    @property
    def graph(self) -> Path:
        """Folder of the reduced graph and of the memory-mapped labels."""
        return self.path / "graph"

    @property
    def plan(self) -> Path:
        """Folder of the roots in dealing order, and of their weights."""
        return self.path / "plan"

    @property
    def bicliques(self) -> Path:
        """Folder of the Parquet parts that count."""
        return self.path / "bicliques"

    @property
    def pending(self) -> Path:
        """Folder of the parts whose slice is not in the ledger yet; see `Store.commit`."""
        return self.path / "pending"

    @property
    def summary(self) -> Path:
        """Folder of the summary; see `pipeline.proof.summary`."""
        return self.path / "summary"

    @property
    def vertices(self) -> Path:
        """Folder of the numbers of every vertex; see `pipeline.proof.vertices`."""
        return self.path / "vertices"

    @property
    def report(self) -> Path:
        """The run as a page with pictures."""
        return self.path / REPORT_FILE

    @property
    def ledger(self) -> Path:
        """Folder of the ledger, with one JSON file per committed slice."""
        return self.path / "ledger"

    @property
    def manifest_file(self) -> Path:
        """The file of the manifest. It exists when the run is complete and proven."""
        return self.path / MANIFEST_FILE

    @property
    def lock_file(self) -> Path:
        """The file of the lock; see `pipeline.run.lock`."""
        return self.path / LOCK_FILE

    def options(self) -> RunOptions:
        """What identifies the run.

        Raises `InputError` if this is not the folder of a run, and `IncompleteError` if ``options.json`` is damaged.
        """
        return self._of_header("options", RunOptions.from_json)

    def limits(self) -> RunLimits:
        """The limits the run was last started with."""
        return self._of_header("limits", lambda data: read_as(RunLimits, data, "limits"))

    def origin(self) -> RunOrigin:
        """Which run this is among those that follow one another; see `schemas.options.RunOrigin`."""
        return self._of_header("origin", lambda data: read_as(RunOrigin, data, "origin"))

    def run_id(self) -> str:
        """The name that no other run has. It stays the same when the folder is moved."""
        return self.origin().run

    def write_options(
        self, options: RunOptions, limits: RunLimits, series: str | None = None, date: str | None = None
    ) -> None:
        """Store what identifies the run, and its limits. A later call replaces the limits and nothing else.

        Parameters
        ----------
        series, date : str or None
            See `schemas.options.RunOrigin`. Only a new run stores them. `date` None takes the day from the name of the
            folder, if the name holds one.
        """
        file = self.path / OPTIONS_FILE
        if file.exists():
            header = self._header()  # keeps fields that a later version of the package wrote there
            limits_there = header.get("limits")
            known = limits_there if isinstance(limits_there, dict) else {}
            write_json(file, header | {"version": __version__, "limits": known | vars(limits)})
            return
        created = datetime.now(UTC).isoformat(timespec="milliseconds")
        origin = RunOrigin(uuid.uuid4().hex, created, series, date or day_in(self.path.absolute().name))
        header = {
            "origin": asdict(origin),
            "version": __version__,
            "schema_version": SCHEMA_VERSION,
            "options": options.to_json(),
            "limits": vars(limits),
        }
        write_json(file, header)

    def facts(self, step: str) -> dict[str, Any] | None:
        """What a finished step wrote down. None if the step is not done.

        Raises `IncompleteError` if the record is damaged. Resuming the run mends it.
        """
        file = self.step_file(step)
        if not file.exists():
            return None
        facts = self._record(file, STEPS.get(step))
        facts.pop("files", None)
        return facts

    def need(self, step: str) -> dict[str, Any]:
        """What a finished step wrote down."""
        facts = self.facts(step)
        if facts is None:
            raise IncompleteError(f"step {step} of {self.path} is not done; continue with: {how_to_resume(self.path)}")
        return facts

    def finish(self, step: str, facts: Mapping[str, Any], files: Iterable[Path] | Mapping[Path, int] = ()) -> None:
        """Mark a step as done. This is written after all `files` that the step made, or their checksums."""
        with disk_errors(self.step_file(step)):
            self.step_file(step).parent.mkdir(exist_ok=True)
            found = files if isinstance(files, Mapping) else checksums_of(sorted(files))
            sums = {str(file.relative_to(self.path)): crc for file, crc in found.items()}
        write_json(self.step_file(step), {**facts, **({"files": sums} if sums else {})})

    def checksums(self, step: str) -> dict[str, int]:
        """CRC-32 of the files that a finished step made, as it wrote them down, by their paths below the folder."""
        sums: dict[str, int] = self._record(self.step_file(step), STEPS.get(step)).get("files", {})
        self._refuse_strange(step, sums)  # files are written by these names, and a store may have the record
        return sums

    def edge_files(self) -> list[Path]:
        """The files of the table of edges, in order."""
        return [self.path / file for file in ingest_files(self.checksums("ingest"))[2:]]

    def keep_checksums(self, step: str) -> dict[str, int]:
        """The checksums of the files of a step that is to be done again.

        A damaged record is replaced by one that has only these checksums. If the damaged record does not tell them,
        they are computed from the files that are there. So the step can be compared with what it gave before, even if
        it is interrupted again.
        """
        file = self.step_file(step)
        try:
            sums = read_json(file).get("files")
            check_facts(StepFiles, {"files": sums}, step)
            self._refuse_strange(step, sums or {})
        except IncompleteError:
            sums = None
        if not isinstance(sums, dict):
            there = (path for name in PLACES[step] for path in children_of(self.path / name))
            found = checksums_of([path for path in there if path.is_file()])
            sums = {str(path.relative_to(self.path)): crc for path, crc in found.items()}
        try:
            self.facts(step)
        except IncompleteError:
            write_json(file, {"files": sums})
        return sums

    def broken(self, step: str) -> Path | None:
        """The first file that is missing or is not as a finished step made it. None if all files are."""
        for name, expected in self.checksums(step).items():
            file = self.store.local(self.path / name)
            try:
                found = checksum(file)
            except OSError:
                return file
            if found != expected:
                return file
        return None

    def check(self, *steps: str) -> None:
        """Refuse to go on with files that are not as the steps made them."""
        for step in steps:
            self.need(step)
            file = self.broken(step)
            if file is not None:
                raise IncompleteError(f"{file} is missing or damaged; mend it with: {how_to_resume(self.path)}")

    def step_file(self, step: str) -> Path:
        """The file in which a step writes down that it is done."""
        return self.path / "steps" / f"{step}.json"

    def fresh(self, folder: Path) -> Path:
        """Make `folder`, and remove files that an interrupted step may have left there. Files of users stay."""
        refuse_links(self.path)
        with disk_errors(folder):
            folder.mkdir(exist_ok=True)
        for file in self.own_files(folder):
            with disk_errors(file):
                file.unlink()
        return folder

    def own_files(self, folder: Path) -> list[Path]:
        """The files in one of the run's folders whose names are names that a run gives there."""
        return sorted(filter(is_ours, folder.iterdir()))

    def manifest(self) -> Manifest | None:
        """The manifest of a complete run. None while there is none."""
        if not self.manifest_file.exists():
            return None
        try:
            return Manifest.from_json(read_json(self.manifest_file))
        except IncompleteError as error:
            raise IncompleteError(self._mendable(self.manifest_file, error)) from error

    def parts_there(self) -> dict[str, int]:
        """Size in bytes of every part in ``bicliques/``, by its name."""
        sizes = {}
        for path in children_of(self.bicliques):
            if is_part(path):
                if not path.is_file():
                    raise IncompleteError(in_the_way(path, "is not a file, and has the name of a part", self.path))
                sizes[path.name] = path.stat().st_size
            elif path.suffix == ".parquet" and not path.name.startswith((".", "_")):
                raise IncompleteError(
                    in_the_way(path, "is not of this run, and would be read as a part of it", self.path)
                )
        return sizes

    def pending_there(self) -> list[Path]:
        """The files in ``pending/`` that have the name of a part, finished or not."""
        parts = [path for path in children_of(self.pending) if is_part(path)]
        for path in parts:
            if not path.is_file():
                raise IncompleteError(in_the_way(path, "is not a file, and has the name of a part", self.path))
        return parts

    def entries_there(self) -> list[Path]:
        """The files in ``ledger/`` that have the name of an entry. Other files do not belong to the run."""
        entries = [path for path in children_of(self.ledger) if is_entry(path.name)]
        for path in entries:
            if not path.is_file():
                raise IncompleteError(in_the_way(path, "is not a file, and has the name of a ledger entry", self.path))
        return entries

    def damage(self, manifest: Manifest) -> str | None:
        """One sentence about the first part whose size is not as the manifest says. None if all sizes are.

        Raises `IncompleteError` where `parts_there` raises it.
        """
        named = {part.name: part.bytes for part in manifest.parts}
        there = self.store.sizes(manifest.parts) | self.parts_there()
        for name in sorted(named.keys() | there.keys()):
            size, expected = there.get(name, "no"), named.get(name, "none")
            if name not in named or size != expected:
                return f"{self.bicliques / name} has {size} bytes, but the manifest says {expected}"
        return None

    def _mendable(self, file: Path, error: IncompleteError) -> str:
        """The text of `error` about a record that resuming makes again, with that remedy."""
        text = str(error) if said(str(file)) in str(error) else f"{file} cannot be used ({error})"
        return f"{text}; mend it with: {how_to_resume(self.path)}"

    def _refuse_strange(self, step: str, names: Iterable[str]) -> None:
        """Refuse the record of a step that names other files than those of a run, such as one outside its folder."""
        for name in names:
            place, _, rest = name.partition("/")
            if not has_name_of_run(place, rest):
                record = self.store.shown("steps", f"{step}.json")
                raise IncompleteError(
                    f"{record} names {name}, which is no file of a run; remove it, then continue with: "
                    f"{how_to_resume(self.path)}"
                )

    def _record(self, file: Path, kind: type | None) -> dict[str, Any]:
        try:
            data = read_json(file)
            if kind is not None:
                check_facts(kind, data, file.stem)
        except IncompleteError as error:
            raise IncompleteError(self._mendable(file, error)) from error
        return data

    def _of_header(self, name: str, read: Callable[[Any], T]) -> T:
        try:
            return read(self._header().get(name))
        except IncompleteError as error:
            if str(self.path / OPTIONS_FILE) in str(error):
                raise
            raise IncompleteError(f"{self.path / OPTIONS_FILE} cannot be used ({error}); {_ANEW}") from error

    def _header(self) -> dict[str, Any]:
        file = self.path / OPTIONS_FILE
        if not os.path.exists(file):  # noqa: PTH110 - Path.exists raises where the name is too long or may not be seen
            raise InputError(no_run(Path(self.store.shown())))
        try:
            header = read_json(file)
        except IncompleteError as error:
            raise IncompleteError(f"{error}; {_ANEW}") from error
        schema, version = header.get("schema_version"), header.get("version")
        if schema is None or version is None:
            raise IncompleteError(f"{file} does not say which version wrote it; {_ANEW}")
        if schema not in READ_VERSIONS:
            raise InputError(of_another_schema(self.path, schema, version))
        return header
