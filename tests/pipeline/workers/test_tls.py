"""Only clients with the key reach workers that are set up as docs/multi-gpu.md says."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest
import yaml

import bicliques as bq
from bicliques.pipeline.workers.dask_pool import DaskPool
from bicliques.schemas.errors import ResourceError
from tests.support.runs import ROOT, answer, random_edges, write_edges

DOCUMENT = (ROOT / "docs" / "multi-gpu.md").read_text()
EDGES = random_edges(40, 30, 0.4, 3)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Dask's configuration after the commands of the page. The folder of the page is replaced by one of this test."""
    if shutil.which("openssl") is None:
        pytest.skip("the page makes its certificate with openssl, which is not installed")
    folder = tmp_path_factory.mktemp("tls") / "data"
    [commands] = [block for block in re.findall(r"(?ms)^```sh\n(.*?)^```", DOCUMENT) if "openssl" in block]
    [settings] = [block for block in re.findall(r"(?ms)^```yaml\n(.*?)^```", DOCUMENT) if "require-encryption" in block]
    made = subprocess.run(
        ["sh", "-ec", commands.replace("/data", str(folder))], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert {file.stat().st_mode & 0o777 for file in (folder / "tls").iterdir()} == {0o600}
    return dict(dotted(yaml.safe_load(settings.replace("/data", str(folder)))))


def dotted(settings: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a tree of settings with dotted names. Dask then keeps other settings of the same branch."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from dotted(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


@pytest.fixture
def scheduler(certified: dict[str, Any]) -> Iterator[str]:
    """The address of a scheduler that asks for a certificate, and has one worker."""
    with (
        dask.config.set(certified),
        distributed.LocalCluster(
            1, threads_per_worker=1, processes=False, protocol="tls", dashboard_address=None
        ) as ours,
    ):
        yield ours.scheduler_address


def test_workers_with_certificates_find_everything(certified: dict[str, Any], scheduler: str, tmp_path: Path) -> None:
    assert scheduler.startswith("tls://127.0.0.1:")
    source = write_edges(tmp_path / "g.parquet", EDGES)
    found = bq.count(source, scheduler=scheduler, fingerprint=True, progress=False)
    assert (found.count, found.fingerprint) == answer(EDGES)


def test_a_client_without_a_key_cannot_connect(scheduler: str) -> None:
    nothing = {f"distributed.comm.tls.{what}": None for what in ("ca-file", "client.cert", "client.key")}
    with dask.config.set({"distributed.comm.require-encryption": False} | nothing):
        with pytest.raises(ResourceError, match=r"wants a certificate, and Dask's configuration names none; name one"):
            DaskPool.connect(scheduler, patience_s=1.0)
        with pytest.raises(ResourceError, match="does not answer"):
            DaskPool.connect(scheduler.replace("tls://", "tcp://"), patience_s=1.0)


def test_a_configuration_that_requires_keys_refuses_plain_connections(certified: dict[str, Any]) -> None:
    with dask.config.set(certified), pytest.raises(ResourceError, match="encryption required by Dask configuration"):
        DaskPool.connect("tcp://127.0.0.1:1")


def test_the_error_of_a_missing_certificate_names_the_file(certified: dict[str, Any]) -> None:
    moved = certified | {"distributed.comm.tls.client.cert": "/not/there.pem"}
    with (
        dask.config.set(moved),
        pytest.raises(ResourceError, match=r"certificate for .* cannot be read .*No such file"),
    ):
        DaskPool.connect("tls://127.0.0.1:1")


def test_local_workers_use_tls_where_the_configuration_requires_it(certified: dict[str, Any]) -> None:
    with dask.config.set(certified):
        pool = DaskPool.local(1)
        try:
            addresses = [pool.client.scheduler.address, *pool.client.nthreads()]
        finally:
            pool.close()
    assert {address.partition(":")[0] for address in addresses} == {"tls"}
