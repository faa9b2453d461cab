"""What a bucket is asked for, and in which order; what it must not be told; and who can read it afterwards."""

import json
import logging
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest
from pyarrow.fs import FileSystem

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.schemas.errors import InputError, ResourceError
from tests.support.bucket import ACCESS_KEY, NAME, SECRET_KEY, Bucket
from tests.support.published import check_complete, check_honest, contents

PREFIX = "nights/2026-11-24"


def publish(run: Path, bucket: Bucket, **how: bool) -> bq.Published:
    return bq.publish(run, bucket.url(PREFIX), progress=False, **how)


def names(keys: list[str]) -> list[str]:
    return [key.removeprefix(f"{PREFIX}/") for key in keys]


def test_rows_come_first_and_the_mark_comes_last(run: Path, bucket: Bucket) -> None:
    publish(run, bucket)
    order = names(bucket.completed())
    assert order[0] == "_published.json", "it tells whose the files are"
    files = [name for name in order if name != "_published.json"]
    n_parts = sum(name.startswith("bicliques/") for name in contents(run))
    assert {name.partition("/")[0] for name in files[:n_parts]} == {"bicliques"}
    assert set(files[n_parts:-2]) == contents(run).keys() - set(files[:n_parts]) - {"manifest.json"}
    assert files[-2:] == ["manifest.json", "_SUCCESS"]
    assert order[-2:] == ["_published.json", "_SUCCESS"]
    assert len(files) == len(set(files)), "each file is written once"
    assert bucket.whats("delete") == []
    read = names(bucket.whats("get"))
    assert set(contents(run)) <= set(read), "each file is read back"


def test_again_nothing_is_written_and_no_file_is_read(run: Path, bucket: Bucket) -> None:
    publish(run, bucket)
    bucket.asked.clear()
    publish(run, bucket)
    assert [asked for asked in bucket.asked if asked.changes] == []
    assert set(names(bucket.whats("get"))) == {"_published.json"}
    assert len(bucket.asked) < 20, "not a request for each file"


def test_a_place_is_honest_at_every_moment(run: Path, other: Path, bucket: Bucket) -> None:
    """Before every request that changes something, while one run replaces another one, and is replaced by it again."""
    looks = 0

    def look(asked: object) -> None:
        nonlocal looks
        if asked.changes:  # type: ignore[attr-defined]
            looks += 1
            check_honest(bucket.below(PREFIX), run, other)

    bucket.fault = look
    for each in (run, other, run):
        publish(each, bucket, overwrite=True)
    bucket.well()
    assert looks > 60
    check_complete(bucket.below(PREFIX), run)


def test_the_mark_goes_before_anything_else_is_changed(run: Path, other: Path, bucket: Bucket) -> None:
    publish(run, bucket)
    bucket.asked.clear()
    publish(other, bucket, overwrite=True)
    changing = [asked for asked in bucket.asked if asked.changes]
    assert (changing[0].what, changing[0].key) == ("delete", f"{PREFIX}/_SUCCESS")
    deleted = names(bucket.whats("delete"))
    assert deleted[1] == "manifest.json"
    old = [name for name in contents(run) if name.startswith("bicliques/")]
    assert deleted[2 : 2 + len(old)] == sorted(old)
    last_deletion = max(k for k, asked in enumerate(bucket.asked) if asked.what == "delete")
    first_part = min(
        k
        for k, asked in enumerate(bucket.asked)
        if asked.what in ("put", "complete") and asked.key.endswith(".parquet")
    )
    assert last_deletion < first_part, "rows of two runs are never beside each other"


def test_no_secret_is_in_a_file_the_log_or_an_error(run, bucket, caplog, capsys):
    for name in ("bicliques", "fsspec"):
        caplog.set_level(logging.DEBUG, name)
    user, password = "otheruser", "other%2Fgeheim"
    url = bucket.url(PREFIX).replace("s3://", f"s3://{user}:{password}@")
    assert main.main(["publish", str(run), url, "--log", "text"]) == 0
    assert main.main(["publish", str(run), url, "--json"]) == 0
    assert main.main(["publish", str(run), url.replace(NAME, "nobucket"), "--quiet"]) == 1
    said = capsys.readouterr()
    assert f"s3://***@{NAME}/{PREFIX}" in said.out
    assert "s3://***@nobucket" in said.err
    text = said.out + said.err + caplog.text + b"".join(bucket.below(PREFIX).values()).decode(errors="replace")
    for secret in (user, "geheim", "other%2F", ACCESS_KEY, SECRET_KEY, SECRET_KEY[-10:]):
        assert secret not in text


def test_a_bucket_that_is_not_there(run: Path, bucket: Bucket) -> None:
    with pytest.raises((InputError, ResourceError), match=r"^s3://nobucket/x.* cannot be (read|written) \("):
        bq.publish(run, bucket.url("x").replace(NAME, "nobucket"), progress=False)


def test_the_top_of_a_bucket(run: Path, bucket: Bucket) -> None:
    bucket.put("mine.txt", b"mine")
    bq.publish(run, bucket.url(), progress=False)
    check_complete(bucket.objects(), run, {"mine.txt": b"mine"})


def test_others_read_it(run: Path, bucket: Bucket) -> None:
    publish(run, bucket)
    count = json.loads(bucket.below(PREFIX)["manifest.json"])["count"]
    system, path = FileSystem.from_uri(bucket.url(f"{PREFIX}/bicliques"))
    dataset = ds.dataset(path, filesystem=system)
    assert dataset.count_rows() == count
    assert len(pd.read_parquet(path, filesystem=system, columns=["id"])) == count
    assert duckdb.sql("SELECT count(*) FROM dataset").fetchall() == [(count,)]
    options = {"aws_endpoint_url": f"http://{bucket.address}", "aws_allow_http": "true", "aws_region": "us-east-1"}
    rows = pl.scan_parquet(f"s3://{NAME}/{PREFIX}/bicliques/*.parquet", storage_options=options)
    assert rows.select(pl.len()).collect().item() == count
