"""PostgreSQL as Prefect's database: a real one, started for the test by whoever may start it."""

import asyncio
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.flows.deployed import free_port, server, wait_for
from tests.flows.grouped import grouped
from tests.support.runs import ROOT, answer, manifest_pair, random_edges, write_edges

EDGES = random_edges(14, 11, 0.4, 2)


def binaries() -> Path | None:
    """The folder of initdb and postgres: the newest of Debian's, else what is on the path."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = str(debian[-1]) if debian else shutil.which("initdb")
    return Path(found).parent if found else None


@contextmanager
def postgresql(programs: Path) -> Iterator[str]:
    """A database server; the address of an empty database."""
    nobody = pwd.getpwnam("nobody")
    is_root = os.geteuid() == 0  # it refuses to run as root
    who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []} if is_root else {}
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="postgresql-") as place:
        if is_root:
            os.chown(place, nobody.pw_uid, nobody.pw_gid)
        data = Path(place) / "data"
        common = {"cwd": place, "stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT, **who}
        words = ["-D", str(data), "-U", "prefect", "--auth", "trust", "--encoding", "UTF8", "--no-sync"]
        subprocess.run([programs / "initdb", *words], check=True, timeout=300, **common)
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": place, "fsync": "off"}
        words = ["-D", str(data), "-p", str(port), *(f"-c{name}={value}" for name, value in options.items())]
        process = subprocess.Popen([programs / "postgres", *words], **common)
        try:
            address = f"prefect@127.0.0.1:{port}"
            wait_for(lambda: is_up(f"postgresql://{address}/postgres"), 120, lambda: "postgres did not come up")
            asyncio.run(ask(f"postgresql://{address}/postgres", "CREATE DATABASE prefect"))
            yield f"{address}/prefect"
        finally:
            process.terminate()
            process.wait(120)


async def ask(address: str, query: str) -> list[Any]:
    connection = await asyncpg.connect(address)
    try:
        return list(await connection.fetch(query))
    finally:
        await connection.close()


def is_up(address: str) -> bool:
    try:
        asyncio.run(ask(address, "SELECT 1"))
    except (OSError, asyncpg.PostgresError):
        return False
    return True


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_a_run_is_kept_in_postgresql(tmp_path):
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL server on this machine (Debian: apt-get install postgresql)")
    source = write_edges(tmp_path / "g.parquet", EDGES)
    options = grouped(workers=0, report=False)
    call = f"from bicliques.flows.mine import mine; mine({str(source)!r}, {str(tmp_path / 'out')!r}, **{options})"
    with (
        postgresql(programs) as database,
        server(tmp_path, PREFECT_SERVER_DATABASE_CONNECTION_URL=f"postgresql+asyncpg://{database}") as prefect,
    ):
        subprocess.run([sys.executable, "-c", call], cwd=ROOT, env=prefect.environment, check=True, timeout=120)
        runs = asyncio.run(ask(f"postgresql://{database}", "SELECT state_type::text FROM flow_run"))
        keys = asyncio.run(ask(f"postgresql://{database}", "SELECT key FROM artifact_collection"))
    assert [tuple(run) for run in runs] == [("COMPLETED",)]
    assert {key.partition("-in-")[0] for (key,) in keys} >= {"mining", "proving", "run-card"}
    assert not list(tmp_path.glob("*.db")), "nothing went to SQLite"
    assert manifest_pair(tmp_path / "out") == answer(EDGES)
