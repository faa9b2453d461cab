"""The folder of a run: what is where, and files that are either whole or not there.

OUT/options.json                what identifies the run
    steps/{ingest,build,plan}.json   a step's facts, written last: the step is done
    edges/  labels/             the normalised input (`pipeline.ingest`)
    graph/                      the reduced graph and the labels, memory-mapped by workers
    plan/                       roots in dealing order, and their weights
    bicliques/part-*.parquet    the results
    summary/                    how many of each size, the largest, and in how many each vertex takes part
    ledger/<slice>.json         one entry a committed slice
    manifest.json               the proof, once complete
    report.html                 the run as a page with pictures
    run.lock                    while a driver works on the run
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from pipeline.files import checksum, disk_errors, read_json, write_json
from pipeline.version import __version__
from schemas.bicliques import SCHEMA_VERSION
from schemas.errors import IncompleteError, InputError
from schemas.manifest import Manifest
from schemas.options import RunLimits, RunOptions, RunOrigin

__all__ = ["LOCK_FILE", "RunFolder", "day_in", "how_to_resume", "without_days"]

LOCK_FILE = "run.lock"

_DAY = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")


def how_to_resume(path: Path | str | os.PathLike[str], outcome: str = "") -> str:
    """The command that goes on with the run in `path`, to be pasted into a shell whatever the folder is called.

    Parameters
    ----------
    path : path
    outcome : str
        How the run ended: a limit on the number of results that was reached would be reached again at once, and is
        lifted.
    """
    return f"bicliques resume {shlex.quote(str(path))}{' --max-results none' if outcome == 'max_results' else ''}"


def day_in(name: str) -> str | None:
    """The only day that a name holds, as in ``2026-01-31`` or ``day=2026-01-31``; None for none and for several."""
    days = _DAY.findall(name)
    try:
        return date.fromisoformat(days[0]).isoformat() if len(days) == 1 else None
    except ValueError:  # 2026-99-99
        return None


def without_days(name: str) -> str:
    """The same with ``{date}`` for every day in it: what the names of one night's and the next night's input share."""
    return _DAY.sub("{date}", name)


@dataclass(frozen=True)
class RunFolder:
    """Paths below the folder of a run, and its JSON files.

    Parameters
    ----------
    path : Path
    """

    path: Path

    @property
    def graph(self) -> Path:
        """The reduced graph and the memory-mapped labels."""
        return self.path / "graph"

    @property
    def plan(self) -> Path:
        """Roots in dealing order, and their weights."""
        return self.path / "plan"

    @property
    def bicliques(self) -> Path:
        """The Parquet parts."""
        return self.path / "bicliques"

    @property
    def summary(self) -> Path:
        """See `pipeline.summary`."""
        return self.path / "summary"

    @property
    def report(self) -> Path:
        """The run as a page with pictures."""
        return self.path / "report.html"

    @property
    def ledger(self) -> Path:
        """One JSON file a committed slice."""
        return self.path / "ledger"

    @property
    def manifest_file(self) -> Path:
        """There when the run is complete and proven."""
        return self.path / "manifest.json"

    @property
    def lock_file(self) -> Path:
        """See `pipeline.lock`."""
        return self.path / LOCK_FILE

    def options(self) -> RunOptions:
        """What identifies the run.

        Raises
        ------
        InputError
            If this is not the folder of a run.
        """
        return RunOptions.from_json(self._header()["options"])

    def limits(self) -> RunLimits:
        """The limits the run was last started with."""
        return RunLimits(**self._header()["limits"])

    def origin(self) -> RunOrigin:
        """Where the run stands among others."""
        return RunOrigin(**self._header()["origin"])

    def run_id(self) -> str:
        """A name no other run has, wherever its folder is."""
        return self.origin().run

    def write_options(
        self, options: RunOptions, limits: RunLimits, series: str | None = None, date: str | None = None
    ) -> None:
        """Store what the run is; `limits` may be replaced later, the rest may not.

        Parameters
        ----------
        options : RunOptions
        limits : RunLimits
        series, date : str or None
            See `schemas.options.RunOrigin`; of a new run. None takes the day from the name of the folder, if it holds
            one.
        """
        file = self.path / "options.json"
        if file.exists():
            origin = self.origin()
        else:
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
        """What a finished step wrote down; None when it is not done."""
        file = self.step_file(step)
        if not file.exists():
            return None
        try:
            facts = read_json(file)
        except IncompleteError as error:
            raise IncompleteError(f"{error}; delete it and resume the run") from error
        facts.pop("files", None)
        return facts

    def need(self, step: str) -> dict[str, Any]:
        """What a finished step wrote down.

        Raises
        ------
        IncompleteError
            If the step is not done.
        """
        facts = self.facts(step)
        if facts is None:
            raise IncompleteError(f"step {step} of {self.path} is not done; continue with: {how_to_resume(self.path)}")
        return facts

    def finish(self, step: str, facts: dict[str, Any], files: Iterable[Path] = ()) -> None:
        """Mark a step as done: written after everything else of the step; `files` are what it made."""
        self.step_file(step).parent.mkdir(exist_ok=True)
        sums = {str(file.relative_to(self.path)): checksum(file) for file in sorted(files)}
        write_json(self.step_file(step), facts | ({"files": sums} if sums else {}))

    def checksums(self, step: str) -> dict[str, int]:
        """CRC-32 of the files a finished step made, by path below the folder, as the step wrote them down."""
        sums: dict[str, int] = read_json(self.step_file(step)).get("files", {})
        return sums

    def broken(self, step: str) -> Path | None:
        """A file that is not, or not any more, what a finished step made; None when all are."""
        for name, expected in self.checksums(step).items():
            file = self.path / name
            try:
                found = checksum(file)
            except OSError:
                return file
            if found != expected:
                return file
        return None

    def check(self, *steps: str) -> None:
        """Refuse to go on with files that are not what the steps made.

        Raises
        ------
        IncompleteError
            If a step is not done, or naming the first such file.
        """
        for step in steps:
            self.need(step)
            file = self.broken(step)
            if file is not None:
                raise IncompleteError(f"{file} is missing or damaged; mend it with: {how_to_resume(self.path)}")

    def step_file(self, step: str) -> Path:
        """Where a step writes down that it is done."""
        return self.path / "steps" / f"{step}.json"

    def fresh(self, folder: Path) -> Path:
        """Make `folder`, empty, removing what an interrupted step may have left there."""
        with disk_errors(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        return folder

    def manifest(self) -> Manifest | None:
        """The proof of a complete run; None while there is none."""
        if not self.manifest_file.exists():
            return None
        try:
            return Manifest.from_json(read_json(self.manifest_file))
        except IncompleteError as error:
            raise IncompleteError(f"{error}; delete {self.manifest_file} and resume the run") from error

    def damage(self, manifest: Manifest) -> str | None:
        """The first file in ``bicliques/`` that is not as the manifest says, in words; None when all are."""
        named = {part.name: part.bytes for part in manifest.parts}
        there = {path.name: path.stat().st_size for path in self.bicliques.iterdir()}
        for name in sorted(named.keys() | there.keys()):
            size, expected = there.get(name, "no"), named.get(name, "none")
            if name not in named or size != expected:
                return f"{self.bicliques / name} has {size} bytes, but the manifest says {expected}"
        return None

    def _header(self) -> dict[str, Any]:
        file = self.path / "options.json"
        if not os.path.exists(file):  # noqa: PTH110 - Path.exists raises where the name is too long or may not be seen
            raise InputError(f"{self.path} is not the folder of a run: it has no options.json")
        try:
            header = read_json(file)
        except IncompleteError as error:
            raise IncompleteError(f"{error}; start the run again in another folder") from error
        if header.get("schema_version") != SCHEMA_VERSION:
            raise InputError(
                f"{self.path} was made with schema version {header.get('schema_version')}, and this package reads "
                f"version {SCHEMA_VERSION}; use version {header.get('version')} of the package"
            )
        return header
