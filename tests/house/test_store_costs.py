"""The benchmark of runs in a store counts the requests of each beside the same run on a disk."""

import json

import pytest

from benchmarks import store


@pytest.mark.exhaustive
def test_requests_of_a_store_are_counted_beside_a_disk(tmp_path, capsys):
    file = tmp_path / "store.json"
    store.main(["unicode_languages", "--repeats", "1", "--output", str(file)])
    [(kind, result)] = json.loads(file.read_text()).items()
    entry = result["graphs"]["unicode_languages"]
    for what, parts in (("list", 1), ("count", 0)):
        disk, kept = entry[what]["folder"], entry[what]["store"]
        assert (disk["count"], kept["count"]) == (460, 460)
        assert (disk["requests"], disk["bytes"]) == ({}, {"sent": 0, "received": 0})
        assert min(kept["requests"][verb] for verb in ("PUT", "GET", "HEAD", "LIST")) > 0
        assert kept["bytes"]["sent"] > 10_000
        assert (kept["slices"] >= 1, kept["parts"] >= parts) == (True, True)
    capsys.readouterr()
    store.main(["--table", str(file)])
    assert capsys.readouterr().out.splitlines()[2].startswith(f"| {kind} | unicode_languages | list | 460 | ")
