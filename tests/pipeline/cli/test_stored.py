"""Commands that take the address of a run: each does what it does with a folder, and nobody is told of the cache."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.remote.objects import objects_at
from tests.support.runs import OWN
from tests.support.stored import PREFIX, Machines, machines_with_a_bucket, source_in


@dataclass
class Kept:
    """The same run in a folder and in a store."""

    machines: Machines
    folder: Path

    @property
    def shown(self) -> str:
        return objects_at(self.machines.url).shown

    @property
    def cache(self) -> str:
        return str(self.machines.top)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    top, elsewhere = tmp_path_factory.mktemp("caches"), tmp_path_factory.mktemp("here")
    with pytest.MonkeyPatch.context() as patch, machines_with_a_bucket(top, patch) as machines:
        source = source_in(elsewhere)
        for place in (elsewhere / "night", machines.url):
            bq.mine(source, place, **OWN, per_vertex=True)
        machines.change()
        yield Kept(machines, elsewhere / "night")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main.main(list(words))
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.mark.parametrize(
    "words",
    [
        "show --top 5 --full --ids",
        "show --top 3 --by surprise --distinct 0.8",
        "cover --top 5",
        "sample -n 3",
        "sizes",
        "--json sizes",
        "--json explain",
        "explain",
        "export --format csv",
        "export --format spmf",
        "export --format cxt",
        "verify --quiet --json",
    ],
)
@pytest.mark.first(6)
def test_a_command_says_of_an_address_what_it_says_of_a_folder(kept, capsys, words):
    first, *others = [word for word in words.split() if word != "--json"]
    more = ["--json"] if "--json" in words else []
    answers = [said(capsys, first, place, *others, *more) for place in (str(kept.folder), kept.machines.url)]
    (code, here), (code_there, there) = answers
    assert code == code_there == 0
    assert kept.cache not in there
    here, there = (
        here.replace(str(kept.folder), "RUN"),
        there.replace(kept.machines.url, "RUN").replace(kept.shown, "RUN"),
    )
    if first == "verify":
        assert json.loads(there) | {"seconds": 0} == json.loads(here) | {"seconds": 0}
    else:
        assert there == here


@pytest.mark.parametrize("words", ["plot", "export --format jsonl", "export --format adj", "cover"])
def test_a_file_that_is_written_is_the_same(kept, tmp_path, capsys, words):
    (first, *others), suffix = words.split(), ".svg" if words == "plot" else ""
    for name, place in (("here", str(kept.folder)), ("there", kept.machines.url)):
        code, text = said(capsys, first, place, *others, "--output", str(tmp_path / f"{name}{suffix}"))
        assert (code, kept.cache in text) == (0, False)
    assert (tmp_path / f"here{suffix}").read_bytes() == (tmp_path / f"there{suffix}").read_bytes()


def test_status_says_the_address(kept, capsys):
    code, text = said(capsys, "status", kept.machines.url, "--json")
    told = json.loads(text)
    assert (code, told["folder"], told["state"], kept.cache in text) == (0, kept.machines.url, "complete", False)
    code, text = said(capsys, "status", kept.machines.url)
    assert (code, kept.cache in text) == (0, False)


def test_the_page_says_the_address(kept, capsys):
    code, text = said(capsys, "report", kept.machines.url, "--quiet")
    assert (code, text) == (0, f"report: {kept.shown}/report.html\n")
    code, text = said(capsys, "report", kept.machines.url, "--quiet", "--json")
    assert json.loads(text) == {"report": f"{kept.shown}/report.html"}
    page = kept.machines.there()["report.html"].decode()
    assert kept.cache not in page
    assert f"<title>{kept.shown.rpartition('/')[2]}" in page
    assert f"read_parquet(&#39;{kept.shown}/bicliques/*.parquet&#39;)" in page
    assert f"{kept.shown}/bicliques" in page


def test_two_runs_are_compared(kept, tmp_path, capsys):
    url, here = kept.machines.url, str(kept.folder)
    for k, (old, new) in enumerate([(url, here), (here, url), (url, url)]):
        code, text = said(capsys, "diff", old, new, "--output", str(tmp_path / str(k)), "--quiet")
        record = json.loads((tmp_path / str(k) / "diff.json").read_text())
        assert (code, kept.cache in text) == (0, False)
        assert (record["old_run"]["folder"], record["new_run"]["folder"]) == (old, new)
        assert (record["gone"]["count"], record["new"]["count"]) == (0, 0)


def test_a_run_is_published_from_a_store(kept, tmp_path, capsys):
    copy = tmp_path / "copy"
    code, text = said(capsys, "publish", kept.machines.url, str(copy), "--quiet")
    assert (code, kept.cache in text) == (0, False)
    there = kept.machines.there()
    parts = {key for key in there if key.startswith(("bicliques/", "summary/", "labels/", "edges/", "vertices/"))}
    for key in (*parts, "manifest.json", "report.html"):
        assert (copy / key).read_bytes() == there[key]
    code, text = said(capsys, "publish", kept.machines.url, str(copy), "--quiet", "--json")
    assert (code, json.loads(text)["written"]) == (0, 0)
    (copy / sorted(parts)[0]).write_bytes(b"damaged")
    assert bq.publish(kept.machines.url, copy, progress=False).written == 1
    assert bq.publish(kept.machines.url, kept.machines.bucket.url("copies"), progress=False).written > 9
    for place in (kept.machines.url, kept.machines.url.replace("?", "/below?")):
        code, text = said(capsys, "publish", kept.machines.url, place, "--quiet")
        assert (code, "is the folder of the run, or lies in it" in text, kept.cache in text) == (2, True, False)
    assert kept.machines.there() == there


def test_sentences_name_the_address(kept, capsys):
    """Also those about a run that is damaged or not complete, and what a notebook shows."""
    machines, there = kept.machines, kept.machines.there()
    results = bq.open_run(machines.url)
    told = [repr(results), results._repr_html_(), repr(results.explain(results.top(1)["id"][0].as_py()))]
    with pytest.raises(KeyError) as unknown:
        results.members(1)
    with pytest.raises(IndexError) as none:
        results[10**9]
    told += [str(unknown.value), str(none.value)]
    manifest = json.loads(there["manifest.json"])
    part = manifest["parts"][0]["name"]
    damages = [
        (f"bicliques/{part}", there[f"bicliques/{part}"] + b"1"),
        (f"bicliques/{part}", None),
        ("manifest.json", b"{}"),
        ("manifest.json", None),
        ("graph/root_indices.npy", None),
        ("steps/build.json", b"{}"),
        ("summary/sizes.parquet", b"1"),
        ("plan/roots.npy", b"1"),
        ("ledger/1/0.json", b"{}"),
    ]
    for key, data in damages:
        machines.change()
        machines.bucket.delete(f"{PREFIX}/{key}") if data is None else machines.put(key, data)
        for words in (["verify", "--quiet"], ["status", "--json"], ["explain"], ["show"]):
            code, text = said(capsys, words[0], machines.url, *words[1:])
            assert kept.cache not in text, (key, words)
            assert code == 0 or kept.shown in text or machines.url in text, (key, words, text)
        machines.put(key, there[key])
    machines.change()
    for text in told:
        assert kept.cache not in text
        assert kept.shown in text or machines.url in text
