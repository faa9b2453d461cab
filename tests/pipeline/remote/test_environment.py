"""The variables of the environment mean the same for a run in a store, a publication, and a source."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.kernels.compiled.jit import code_folder
from bicliques.pipeline.remote.objects import Objects, objects_at
from bicliques.pipeline.remote.urls import as_asked, file_system
from bicliques.pipeline.run.store import places_here
from bicliques.schemas.errors import InputError
from tests.support.bucket import ACCESS_KEY, NAME, SECRET_KEY, Bucket, bucket_of_moto
from tests.support.servers import bucket_server

VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
CSV = b"user,item\nann,1\nann,2\nbob,1\nbob,2\n"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bucket]:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(code_folder().parent))  # asked for before the next one is another
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with bucket_of_moto(monkeypatch) as there:
        there.put("in/one.csv", CSV)
        yield there


@pytest.mark.parametrize("variable", VARIABLES)
def test_each_variable_is_an_endpoint(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, f"http://{bucket.address}/")
    system, path = file_system(f"s3://{NAME}/in/one.csv")
    assert system.get_file_info(path).size == Objects(f"s3://{NAME}/in").size("one.csv") == len(CSV)


def test_an_endpoint_with_http_is_that_of_all_three(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLES[0], f"http://{bucket.address}/")
    results = bq.mine(f"s3://{NAME}/in/one.csv", f"s3://{NAME}/run", progress=False, report=False)
    assert (len(results), results.to_arrow().num_rows) == (1, 1)
    assert bq.publish(f"s3://{NAME}/run", f"s3://{NAME}/copy", progress=False).count == 1
    assert bq.verify(f"s3://{NAME}/run", progress=False).count == 1
    assert {"run/_SUCCESS", "copy/_SUCCESS"} <= bucket.objects().keys()


def test_the_address_is_stronger_than_the_environment(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    url = bucket.url("in/one.csv")
    assert as_asked(url) == url
    system, path = file_system(url)
    assert system.get_file_info(path).size == Objects(bucket.url("in")).size("one.csv") == len(CSV)


def test_the_variable_for_s3_alone_is_stronger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://all.example")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://s3.example:9000")
    assert as_asked("s3://lake/a") == "s3://lake/a?endpoint_override=s3.example:9000&scheme=https"
    assert as_asked("s3://lake/a?scheme=http") == "s3://lake/a?scheme=http&endpoint_override=s3.example:9000"
    assert as_asked("gs://lake/a") == "gs://lake/a"


@pytest.mark.parametrize("value", ["minio:9000", "ftp://minio", "http://", "http://user:geheim@minio", "http://a b"])
def test_an_endpoint_that_is_no_address_is_refused(monkeypatch: pytest.MonkeyPatch, value: str, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", value)
    said = r"^AWS_ENDPOINT_URL is no address of a store; write it as in http://minio:9000$"
    with pytest.raises(InputError, match=said):
        bq.count("s3://lake/x.csv", progress=False)
    with pytest.raises(InputError, match=said):
        bq.status("s3://lake/night")


def test_another_endpoint_is_another_store(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients and copies of what a store has are kept by the address that is asked, and not by its name alone."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{bucket.address}")
    bq.mine(f"s3://{NAME}/in/one.csv", f"s3://{NAME}/run", progress=False, report=False)
    assert bq.status(f"s3://{NAME}/run").state == "complete"
    with bucket_server({}) as empty:
        monkeypatch.setenv("AWS_ENDPOINT_URL", empty.url)
        assert objects_at(f"s3://{NAME}/run").size("options.json") is None
        with pytest.raises(InputError, match="holds no run"):
            bq.status(f"s3://{NAME}/run")
    assert len([place for place in places_here().iterdir() if place.is_dir()]) == 2


@pytest.mark.parametrize("name", [None, "night"])
def test_the_keys_of_a_profile_are_those_of_all_three(bucket, monkeypatch, tmp_path, name):
    file = tmp_path / "credentials"
    file.write_text(
        f"[{name or 'default'}]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n"
        "[other]\naws_access_key_id = x\naws_secret_access_key = y\n"
    )
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    if name is not None:
        monkeypatch.setenv("AWS_PROFILE", name)
    with bucket_server({"run/a": b"x"}) as server:
        url = f"s3://{NAME}/run?endpoint_override={server.url.partition('://')[2]}&scheme=http&region=here"
        assert Objects(url).size("a") == 1
        system, path = file_system(url)
        assert system.get_file_info(f"{path}/a").size == 1
        signed = [headers.get("authorization", headers.get("Authorization", "")) for _, headers in server.asked]
    assert len(signed) == 2
    assert all(f"Credential={ACCESS_KEY}/" in text for text in signed)


def test_a_profile_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    for variable in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(variable, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_PROFILE", "night")
    with pytest.raises(InputError, match=r"^AWS_PROFILE is 'night', a profile without aws_access_key_id in .*/none; "):
        bq.status("s3://lake/night")
