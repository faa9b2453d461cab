"""Sources on other machines give what files of this machine give, and no secret of theirs is written anywhere."""

import gzip
import io
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSystem

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.ingest.readers.files import find
from bicliques.pipeline.ingest.sources.at_hand import digest_of
from bicliques.pipeline.ingest.sources.names import is_there, recorded
from bicliques.pipeline.ingest.step import ingest
from bicliques.pipeline.remote.urls import file_system, without_secrets
from bicliques.pipeline.run.folder import RunFolder
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from tests.support.inputs import read_edges
from tests.support.servers import Server, bucket_server, file_server

CSV = b"user,item\nann,1\nann,2\nbob,2\n"
WANTED = [("ann", 1), ("ann", 2), ("bob", 2)]
USER, PASSWORD, KEY = "someuser", "geheim/word", "c0ffee4711"


def parquet(u: list[int], v: list[str]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"u": u, "v": v}), out)
    return out.getvalue()


LAKE = {
    "ratings/day=1/a.parquet": parquet([1], ["x"]),
    "ratings/day=1/b.parquet": parquet([1, 2], ["y", "x"]),
    "ratings/day=2/c.parquet": parquet([3], ["x"]),
    "ratings/_SUCCESS": b"",
    "ratings/_tmp/d.parquet": b"not one",
    "one.csv": CSV,
}


@pytest.fixture
def server() -> Iterator[Server]:
    files = {"/x.csv": CSV, "/my file.csv": CSV, "/x.csv.gz": gzip.compress(CSV), "/download": gzip.compress(CSV)}
    with file_server({**files, "/bad.csv": b"user,item\nann,1\nbob,x\n"}) as told:
        yield told


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", USER)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)


@pytest.fixture
def bucket(credentials: None) -> Iterator[str]:
    """What follows the address of a file in the bucket."""
    with bucket_server(dict(LAKE)) as told:
        yield told_by(told)


def told_by(server: Server) -> str:
    host = server.url.partition("://")[2]
    return f"?endpoint_override={host}&scheme=http&region=here&allow_bucket_creation=false"


@pytest.fixture
def memory() -> Iterator[str]:
    system = fsspec.filesystem("memory")
    system.store.clear()
    for name, data in LAKE.items():
        system.pipe(f"/lake/{name}", data)
    yield "memory://lake"
    system.store.clear()


@pytest.fixture
def local(tmp_path: Path) -> Path:
    for name, data in LAKE.items():
        (tmp_path / "lake" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lake" / name).write_bytes(data)
    return tmp_path / "lake"


def no_copy_is_left() -> bool:
    import tempfile

    return not list(Path(tempfile.gettempdir()).glob("bicliques-*/0/0/*"))


@pytest.mark.parametrize("path", ["x.csv", "my%20file.csv", "x.csv.gz"])
def test_a_file_by_http(server: Server, tmp_path: Path, path: str) -> None:
    found, summary = read_edges(f"{server.url}/{path}", tmp_path / "out")
    assert (found, summary.source) == (WANTED, f"{server.url}/{path}")
    assert summary.digest == digest_of(recorded(f"{server.url}/{path}"))
    assert find(tmp_path).digest() != summary.digest


def test_a_name_that_tells_nothing_needs_a_format(server: Server, tmp_path: Path) -> None:
    assert read_edges(f"{server.url}/download", tmp_path, format="csv")[0] == WANTED
    with pytest.raises(InputError, match=rf"^neither the name nor the first line of {server.url}/download tells its"):
        read_edges(f"{server.url}/download", tmp_path)
    with pytest.raises(
        InputError, match=rf"^{server.url}/bad\.csv, line 3: the right label 'x' is not a plain integer"
    ):
        read_edges(f"{server.url}/bad.csv", tmp_path)


def test_several_addresses_and_files(server: Server, tmp_path: Path) -> None:
    (tmp_path / "y.csv").write_text("user,item\ncy,3\n")
    found, summary = read_edges([f"{server.url}/x.csv", tmp_path / "y.csv"], tmp_path / "out")
    assert found == [*WANTED, ("cy", 3)]
    assert summary.source == f"{server.url}/x.csv and {tmp_path / 'y.csv'}"


@pytest.mark.values
@pytest.mark.parametrize("kind", ["memory", "bucket"])
@pytest.mark.parametrize(
    ("tail", "where"),
    [("ratings", ()), ("ratings/", ()), ("ratings/day=*/*.parquet", ()), ("rat*/**", ()), ("ratings", ("day<2",))],
)
def test_folders_and_patterns_are_as_on_this_machine(kind, tail, where, local, tmp_path, request):
    given = request.getfixturevalue(kind)
    url = f"{given}/{tail}" if kind == "memory" else f"s3://lake/{tail}{given}"
    here = read_edges(str(local / tail), tmp_path / "here", where=where)
    there = read_edges(url, tmp_path / "there", where=where)
    assert (
        there[0] == here[0] == ([(1, "x"), (1, "y"), (2, "x")] if where else [(1, "x"), (1, "y"), (2, "x"), (3, "x")])
    )
    assert there[1].digest == here[1].digest
    assert ("day" in there[1].source) == bool(where or "day" in tail)


def test_a_delta_table_is_refused(memory: str, tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe("/lake/ratings/_delta_log/0.json", b"{}")
    with pytest.raises(InputError, match=r"^memory://lake/ratings is a Delta table, whose files also hold rows"):
        read_edges(f"{memory}/ratings", tmp_path)


def test_a_run_below_an_address_is_refused(memory: str, tmp_path: Path) -> None:
    for name in ("_old/run.lock", "OUT/run.lock"):
        fsspec.filesystem("memory").pipe(f"/lake/ratings/{name}", b"{}")
    with pytest.raises(InputError, match=r"^memory://lake/ratings/OUT is where a run is to be kept"):
        read_edges(f"{memory}/ratings", tmp_path)
    assert read_edges(f"{memory}/ratings/day=*/*.parquet", tmp_path)[1].n_edges > 0
    fsspec.filesystem("memory").rm("/lake/ratings/OUT", recursive=True)
    assert read_edges(f"{memory}/ratings", tmp_path / "again")[1].n_edges > 0


def test_one_object_of_a_bucket(bucket: str, tmp_path: Path) -> None:
    found, summary = read_edges(f"s3://lake/one.csv{bucket}", tmp_path)
    assert (found, summary.source) == (WANTED, "s3://lake/one.csv?***")
    for address, said in (
        ("lake/none.csv", "does not exist; check the address"),
        ("lake/no*.csv", "has no files to read"),
    ):
        with pytest.raises(InputError, match=rf"s3://{address}\?\*\*\* {said}".replace("no*.", r"no\*\.")):
            read_edges(f"s3://{address}{bucket}", tmp_path)


def test_a_dataset_reads_only_the_columns_that_are_needed(credentials: None, tmp_path: Path) -> None:
    """An address is copied whole, because its digest is that of all bytes."""
    rng = np.random.default_rng(5)
    columns = {f"c{k}": rng.random(20_000) for k in range(10)}
    sides = {name: rng.integers(0, 1000, 20_000) for name in ("user", "item")}
    out = io.BytesIO()
    pq.write_table(pa.table(columns | sides), out, row_group_size=5000)
    data, named = out.getvalue(), {"left": "user", "right": "item"}
    (tmp_path / "x.parquet").write_bytes(data)
    wanted = read_edges(tmp_path / "x.parquet", tmp_path / "here", **named)[0]
    with bucket_server({"wide/x.parquet": data}) as server:
        system, path = FileSystem.from_uri(f"s3://lake/wide{told_by(server)}")
        found, summary = read_edges(ds.dataset(path, filesystem=system), tmp_path / "dataset", **named)
        assert (found, summary.left_name, summary.format) == (wanted, "user", "arrow")
        assert len(data) > 1_600_000
        assert sum(server.sent) < 250_000, "two small columns of twelve, and the end of the file twice"
        server.sent.clear()
        assert read_edges(f"s3://lake/wide{told_by(server)}", tmp_path / "copied", **named)[0] == wanted
        assert len(data) <= sum(server.sent) < len(data) + 10_000, "once, and the list of files"


def test_a_file_url_is_a_path(local: Path, tmp_path: Path) -> None:
    assert read_edges(f"file://{local}/one.csv", tmp_path)[0] == WANTED
    assert recorded(f"file://{local}/a%20b.csv") == f"{local}/a b.csv"


def test_what_cannot_be_read_is_said_in_one_sentence(server: Server, tmp_path: Path) -> None:
    cases = {
        f"{server.url}/none.csv": r"none\.csv cannot be read \(HTTP 404 Not Found\); check the address",
        "http://127.0.0.1:9/x.csv": r"x\.csv cannot be read \(.*refused\); check the address, the connection and",
        f"{server.url}/busy.csv": r"busy\.csv cannot be read \(HTTP 503 .*\); its server cannot answer now",
        f"{server.url}/round.csv": r"round\.csv cannot be read \(HTTP 302 [^\n]*\); check the address$",
        "nosuch://bucket/x.csv": r"^nosuch://bucket/x\.csv cannot be read \(Protocol not known: nosuch",
        "abcfs+x://b/x": r"cannot be read \(",
    }
    server.failing["/busy.csv"], server.moved["/round.csv"] = 503, "/round.csv"
    for url, said in cases.items():
        with pytest.raises(InputError, match=said):
            read_edges(url, tmp_path / "out")
        assert not list((tmp_path / "out").iterdir())
    server.cut_at = 5
    with pytest.raises(InputError, match=rf"x\.csv ended after 5 of {len(CSV)} bytes; the connection was cut, so try"):
        read_edges(f"{server.url}/x.csv", tmp_path / "out")
    assert no_copy_is_left()


PACKAGES = {"sftp": "paramiko", "az": "adlfs", "adl": "adlfs", "hf": "huggingface_hub", "oss": "ossfs"}


@pytest.mark.parametrize("scheme", PACKAGES)
def test_a_package_that_is_missing_is_named(scheme: str, tmp_path: Path) -> None:
    said = rf"^{scheme}://host/x\.csv cannot be read without another package \(.*{PACKAGES[scheme]}"
    with pytest.raises(InputError, match=said):
        read_edges(f"{scheme}://host/x.csv", tmp_path)


SERVICES = {
    "s3://lake/a/x.csv?region=here": ("s3", "lake/a/x.csv"),
    "gs://anonymous@lake/a/x.csv": ("gcs", "lake/a/x.csv"),
    "gcs://anonymous@lake/a/x.csv": ("gcs", "lake/a/x.csv"),
    "abfs://account.blob.core.windows.net/lake/a/x.csv": ("abfs", "lake/a/x.csv"),
    "abfss://lake@account.dfs.core.windows.net/a/x.csv": ("abfs", "lake/a/x.csv"),
}


@pytest.mark.parametrize("url", SERVICES)
def test_the_address_of_a_service_goes_to_its_file_system(url: str, credentials: None) -> None:
    """Nothing is asked of the services."""
    system, path = file_system(url)
    assert (system.type_name, path) == SERVICES[url]


def test_addresses_that_arrow_does_not_know_go_to_fsspec() -> None:
    system, path = file_system("memory://lake/x.csv")
    assert (system.type_name, path) == ("py::fsspec+memory", "/lake/x.csv")


SECRET_URLS = {
    "https://host/x.csv?sig=c0ffee4711": "https://host/x.csv?***",
    "https://someuser:geheim%2Fword@host:8443/a/x.csv": "https://***@host:8443/a/x.csv",
    "s3://someuser:geheim/word@lake/one.csv": "s3://***@lake/one.csv",
    "gs://anonymous@lake/one.csv#x": "gs://***@lake/one.csv?***",
    "https://host/at@home/x.csv": "https://host/at@home/x.csv",
    "s3://lake/one.csv": "s3://lake/one.csv",
}


@pytest.mark.parametrize("url", SECRET_URLS)
def test_a_url_is_shown_and_recorded_without_secrets(url: str) -> None:
    assert without_secrets(url) == recorded(url) == SECRET_URLS[url]
    assert is_there(recorded(url)) == ("***" not in SECRET_URLS[url]), "without its secrets it cannot be read again"
    assert recorded([url, url]).count(SECRET_URLS[url]) == 2


def test_no_secret_is_in_the_folder_the_log_or_the_output(server, tmp_path, capsys, caplog):
    caplog.set_level(logging.DEBUG)
    server.user, server.query = f"{USER}:{PASSWORD}", f"sig={KEY}"
    host = server.url.partition("://")[2]
    url = f"http://{USER}:geheim%2Fword@{host}/x.csv?sig={KEY}"
    out = tmp_path / "out"
    assert main.main(["mine", url, "-o", str(out), "--log", "text"]) == 0
    assert main.main(["status", str(out)]) == main.main(["show", str(out)]) == 0
    assert main.main(["mine", url, "-o", str(out), "--quiet"]) == 0, "the same run is there"
    assert main.main(["mine", url, "-o", str(out), "--min-left", "2", "--quiet"]) == 2, "the folder is taken"
    assert main.main(["count", url.replace(KEY, "c0ffee4712"), "--quiet"]) == 2
    said = capsys.readouterr()
    assert (
        f"http://***@{host}/x.csv?*** cannot be read (HTTP 403 Forbidden); give credentials that may read" in said.err
    )
    everything = said.out + said.err + caplog.text
    everything += "".join(p.read_bytes().decode(errors="replace") for p in out.rglob("*") if p.is_file())
    assert "x.csv?***" in RunFolder(out).options().source
    for secret in (USER, "geheim", KEY, "c0ffee4712"):
        assert secret not in everything


def test_no_secret_is_in_an_exception_of_python(tmp_path: Path, bucket: str) -> None:
    for url in (
        f"http://{USER}:geheim%2Fword@127.0.0.1:9/x.csv?sig={KEY}",
        f"nosuch://{USER}:geheim%2Fword@host/x.csv?sig={KEY}",
        f"s3://{USER}:geheim%2Fword@lake/none.csv{bucket}&sig={KEY}",
        f"http://{USER}:geheim/word@[bad/x.csv?sig={KEY}",
    ):
        with pytest.raises(InputError) as caught:
            bq.count(url, progress=False)
        text = "".join(traceback.format_exception(caught.value))
        for secret in (USER, "geheim", KEY):
            assert secret not in text.partition("bicliques.count(url")[2] + str(caught.value), url


def test_a_password_is_not_sent_to_where_a_server_leads(server: Server, tmp_path: Path) -> None:
    with file_server({"/x.csv": CSV}) as other:
        server.moved["/x.csv"] = f"{other.url}/x.csv"
        host = server.url.partition("://")[2]
        assert read_edges(f"http://{USER}:word@{host}/x.csv", tmp_path)[0] == WANTED
        assert [headers.get("Authorization") is not None for _, headers in server.asked] == [True]
        assert [headers.get("Authorization") for _, headers in other.asked] == [None]


def test_a_changed_file_is_another_input(memory: str, tmp_path: Path) -> None:
    before = ingest(f"{memory}/ratings", IngestOptions(), tmp_path).digest
    assert digest_of(recorded(f"{memory}/ratings")) == before
    fsspec.filesystem("memory").pipe("/lake/ratings/day=3/e.parquet", parquet([9], ["z"]))
    assert digest_of(recorded(f"{memory}/ratings")) != before
