"""What the page of a run shows: the right numbers, for any run, in bounded size."""

import base64
import json
import re
import shutil
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.cli import main
from bicliques.pipeline.cli.about import demo_source
from bicliques.pipeline.results.facts import why_none
from bicliques.pipeline.results.report.content import content_of
from bicliques.pipeline.results.report.page import Page, many
from bicliques.pipeline.results.report.timeline import timeline
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.errors import IncompleteError, InputError, ResourceError
from bicliques.schemas.search import Search
from bicliques.schemas.sizes import SizeCounts
from tests.support.runs import OWN, QUIET, environment, ledger_entry, random_edges, rewrite_record, session, write_edges

EDGES = random_edges(60, 40, 0.3, 11)
ALONE = ("--workers", "0", "--quiet")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    bq.mine(write_edges(folder / "g.parquet", EDGES, strings=True), folder / "out", **OWN)
    return folder / "out"


def words_of(page: Path) -> str:
    """The text of a page, without scripts and styles."""
    text = re.sub(r"<(script|style).*?</\1>", "", page.read_text(), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def test_the_page_of_the_largest_says_that_it_has_no_others(out, tmp_path):
    bq.largest(str(out), tmp_path / "largest", top=2, by="balance", **OWN)
    assert "The 2 largest groups by balance of users that share items" in words_of(tmp_path / "largest" / "report.html")


def test_every_complete_run_has_a_report_page(out):
    text = words_of(out / "report.html")
    count = len(bq.open_run(out))
    assert f"All {count:,} groups of users that share items" in text
    assert bq.open_run(out).manifest.input["digest"] in text
    assert "not complete" not in text
    html = (out / "report.html").read_text()
    markup = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?!data:|#)[^"]+"', markup), "it needs something from elsewhere"
    assert "script>" not in html.partition("<body>")[0], "a library"
    assert len(html) < 120_000


def test_the_numbers_are_those_of_the_files(out):
    content, frame = content_of(Run.at(out)), bq.open_run(out).to_pandas()
    assert content.sizes.total == len(frame)
    for side in ("left", "right"):
        counted = pd.Series([label for members in frame[side] for label in members]).value_counts()
        assert [p.bicliques for p in content.participants[side]] == counted.head(20).tolist()
        assert all(counted[p.label] == p.bicliques for p in content.participants[side])
        column = {"left": 0, "right": 1}[side]
        assert np.array_equal(content.degrees[side], np.bincount(np.bincount(EDGES[:, column])))
    best = content.participants["left"][0]
    labels = pd.read_parquet(out.parent / "g.parquet")
    assert best.degree == (labels.user == best.label).sum()
    edges = frame.n_left * frame.n_right
    assert np.prod(content.listed.sizes(0)) == edges.max()
    assert dict(content.steps).keys() == {"startup", "ingest", "build", "plan", "mine", "prove"}
    assert content.busy_ratio == bq.open_run(out).manifest.mining["busy_ratio"]


def test_the_answer_comes_first_and_the_facts_of_the_run_last(out):
    text, frame = words_of(out / "report.html"), bq.open_run(out).to_pandas()
    edges, smaller = frame.n_left * frame.n_right, np.minimum(frame.n_left, frame.n_right)
    first = frame.assign(edges=edges, smaller=smaller).sort_values(["edges", "n_left"]).iloc[-1]
    balanced = frame.assign(edges=edges, smaller=smaller).sort_values(["smaller", "edges", "n_left"]).iloc[-1]
    answer = (
        f"All {len(frame):,} groups of users that share items between 60 \u00d7 40 user \u00d7 item "
        f"most edges {first.n_left} \u00d7 {first.n_right} user \u00d7 item: {first.edges} edges "
        f"most balanced {balanced.n_left} \u00d7 {balanced.n_right} user \u00d7 item: {balanced.edges} edges"
    )
    assert answer in text
    text = text[text.index(answer) :]
    parts = [answer, "How many bicliques have so many", "are on this page", "In how many bicliques a label is"]
    parts += ["How many vertices of each side", "Time of each step", "What every worker did"]
    parts += ["What was found", "What was read", "How it was mined"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    for group, facts in (
        ("What was found", "fingerprint"),
        ("What was read", "BLAKE3"),
        ("How it was mined", "engine"),
    ):
        after = places[parts.index(group)]
        later = [place for place in places if place > after] or [len(text)]
        assert after < text.index(facts, places[-3]) < min(later)


def test_the_page_of_the_graph_that_ships_is_small(tmp_path):
    results = bq.mine(demo_source(), tmp_path / "out", **OWN)
    assert (results.path / "report.html").stat().st_size < 400_000
    assert '"most":null' in zlib.decompress(base64.b64decode(data_of(results.path / "report.html"))).decode()


def test_the_template_is_compiled_once(monkeypatch):
    Page()
    monkeypatch.delattr("jinja2.Environment.from_string")
    Page()


def data_of(page: Path) -> str:
    found = re.search(r'<script type="text/plain" id="labels">(.*?)</script>', page.read_text(), re.DOTALL)
    return found[1]


def test_a_page_with_long_lists_and_many_slices_is_small_too(tmp_path):
    """Each of these alone would be more than the page may have."""
    draw = np.random.default_rng(5)
    words = pa.array([bytes(draw.integers(97, 123, 90, np.uint8)).decode() for _ in range(12_000)])
    long = pa.array(["x" * 100_000, "y"])
    left = pa.concat_arrays([words, words, long])
    right = [*(int(k) for k in draw.integers(0, 30, 24_000)), 1, 1]
    table = pa.table({"l": left, "r": right})
    results = bq.mine(table, tmp_path / "out", **QUIET)
    content = content_of(Run.at(results.path))
    many = [
        ledger_entry(k, count=1, began=100.0 + draw.random() * 1000, seconds=0.01, worker=f"worker {k % 90}")
        for k in range(9000)
    ]
    times = timeline(many, [session(100.0, 1000.0)])
    sizes = SizeCounts.of(*draw.integers(1, 4000, (2, 100_000)))
    html = Page().html_of(replace(content, timeline=times, sizes=sizes))
    assert len(html.encode()) < 400_000
    assert 0 < sum(len(lane.blocks) for lane in times.lanes) <= 600
    assert "x" * 1000 not in html


def test_report_makes_a_removed_page_again(out, capsys):
    before = words_of(out / "report.html")
    (out / "report.html").unlink()
    assert main.main(["report", str(out), "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out) == {"report": str(out / "report.html")}
    assert words_of(out / "report.html") == before
    assert bq.report(out) == out / "report.html"
    assert main.main(["report", str(out)]) == 0
    assert capsys.readouterr().err == "writing the report\n", "once"


def test_no_page_is_written_after_a_limit_or_with_no_report(tmp_path, capsys):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    assert main.main(["mine", str(source), "-o", str(tmp_path / "a"), "--max-results", "9", *ALONE]) == 3
    assert not (tmp_path / "a" / "report.html").exists(), "it would take time that a limit does not give"
    assert main.main(["resume", str(tmp_path / "a"), "--max-results", "none", "--no-report", *ALONE]) == 0
    assert not (tmp_path / "a" / "report.html").exists()
    bq.mine(source, tmp_path / "b", **QUIET)
    assert not (tmp_path / "b" / "report.html").exists()
    capsys.readouterr()


def test_a_run_that_is_not_complete(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = bq.mine(source, tmp_path / "out", **OWN, max_results=700, ids="dense")
    content = content_of(Run.at(results.path))
    frame = results.to_pandas()
    assert content.sizes.total == 700
    members = np.concatenate(frame.right.to_list())
    assert [p.bicliques for p in content.participants["right"]] == sorted(np.bincount(members))[::-1][:20]
    assert content.participants["right"][0].label == str(7 * int(np.bincount(members).argmax()) + 1)
    text = words_of(bq.report(results.path))
    assert "This run is not complete: the limit on the number of results was reached" in text
    assert "--max-results none" in text


def test_the_card_of_a_run_that_is_not_complete_says_what_it_is_of(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    options = {"min_left": 2, "max_right": 9, "root_side": "left"}
    results = bq.mine(source, tmp_path / "2026-01-31", **OWN, max_results=7, **options)
    facts, origin = dict(content_of(Run.at(results.path)).facts), RunFolder(results.path).origin()
    assert facts["only with"] == "at least 2 left members, at most 9 right members"
    assert facts["BLAKE3 of the input"] == RunFolder(results.path).need("ingest")["digest"]
    assert (facts["root side"], facts["stands for"], facts["begun"]) == ("left", "2026-01-31", origin.created)
    text = words_of(bq.report(results.path))
    assert "7 groups so far of at least 2 users that share items, with at most 9 right members" in text


@pytest.mark.parametrize(
    ("search", "names", "words"),
    [
        (Search(min_left=500), {}, "no right vertex has 500 neighbours; the most is 159"),
        (Search(min_left=500), {"right_name": "item"}, "no item has 500 neighbours; the most is 159"),
        (Search(min_right=3), {"left_name": "user"}, "no user has 3 neighbours; the most is 2"),
        (Search(min_left=9, min_right=2), {}, "the two thresholds together leave nothing of the graph"),
        (Search(max_left=1), {}, "no maximal biclique has the sizes that were asked for"),
    ],
)
def test_an_empty_result_says_why(search, names, words):
    graph = {"profile": {"left": {"max": 2}, "right": {"max": 159}}, "merged_edges": 0 if search.min_left == 9 else 5}
    assert why_none(names, graph, search) == words


def test_the_page_of_a_run_that_has_not_begun_to_mine_says_so(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    bq.mine(source, tmp_path / "a", **OWN, max_results=1)
    folder = RunFolder(tmp_path / "a")
    steps.start(source, tmp_path / "out", folder.options(), folder.limits(), False)
    text = words_of(bq.report(tmp_path / "out"))
    assert "mining has not begun" in text
    assert "No slice was mined" in text


@pytest.mark.parametrize("sizes", [False, True])
def test_a_run_that_only_counted(tmp_path, sizes):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = bq.mine(source, tmp_path / "out", count_only=True, sizes=sizes, **OWN)
    text = words_of(results.path / "report.html")
    assert "counted and not listed" in text
    assert "it lists no bicliques" in text
    assert ("The sizes were not counted" in text) != sizes
    assert content_of(Run.at(results.path)).timeline.lanes


@pytest.mark.parametrize(("least", "count"), [(5, 0), (3, 1), (1, 2)])
def test_the_page_of_a_run_with_no_one_or_a_few_bicliques(tmp_path, least, count):
    table = pa.table({"l": [1, 1, 2, 2, 3], "r": ["a", "b", "a", "b", "b"]})
    results = bq.mine(table, tmp_path / "out", min_left=least, **OWN)
    assert len(results) == count
    text = words_of(results.path / "report.html")
    lead = {
        0: "No maximal biclique",
        1: "The only group of at least 3 l that share r",
        2: "All 2 groups of l that share r",
    }
    assert lead[count] in text
    why = "No maximal biclique with at least 5 left members: no r has 5 neighbours; the most is 3"
    assert (why in text) == (count == 0)
    assert (" Groups " in text) == (count > 0), "sections with nothing in them"


def test_labels_are_text_and_not_html(tmp_path):
    evil = ["<b>bold</b>", "</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>']
    results = bq.mine(pa.table({"l": evil, "r": ["x", "x", "x"]}), tmp_path / "out", **OWN)
    html = (results.path / "report.html").read_text()
    assert "<b>bold" not in html
    assert "alert(1)</script>" not in html
    assert "<img" not in html
    assert "&lt;b&gt;bold&lt;/b&gt;" in html


def test_no_control_of_a_label_a_name_or_a_path_is_in_the_page(tmp_path):
    controls = "".join(chr(k) for k in (*range(9), 11, 12, *range(14, 32), *range(127, 160), 0xFFFE, 0xFFFF))
    table = pa.table({f"l{controls}": [f"a{controls}", "\x00", "b"], f"r{controls}": ["x\x00y", "x\x00y", "z"]})
    results = bq.mine(table, tmp_path / "\x01" / "out\x7f", **OWN)
    html = (results.path / "report.html").read_bytes().decode()
    assert not set(html) & set(controls), "browsers replace NUL, and validators refuse all of them"
    text = words_of(results.path / "report.html")
    assert "x\u2400y" in text
    assert "a\u2400\u2401" in text
    assert "out\u2421: maximal" in text
    notebook = results._repr_html_()
    assert not set(notebook) & set(controls)
    assert "x\u2400y" in notebook


def test_labels_that_are_in_no_biclique_are_not_listed(tmp_path):
    table = pa.table({"l": ["a", "a", "b"], "r": ["x", "y", "x"]})
    results = bq.mine(table, tmp_path / "out", min_left=2, **OWN)
    found = content_of(Run.at(results.path)).participants
    assert {side: [p.label for p in found[side]] for side in found} == {"left": ["a", "b"], "right": ["x"]}


def test_many_members_and_vertices_make_no_large_page(tmp_path):
    wide = pa.table({"l": np.repeat(np.arange(20_000), 2), "r": np.tile([0, 1], 20_000)})
    results = bq.mine(wide, tmp_path / "out", **OWN)
    assert len(results) == 1
    assert (results.path / "report.html").stat().st_size < 150_000
    assert "and 19,996 more" in words_of(results.path / "report.html")


def test_a_full_disk_leaves_the_old_page(out, monkeypatch):
    before = (out / "report.html").read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(ResourceError, match=r"report.html \(No space left on device\)"):
        bq.report(out)
    assert (out / "report.html").read_bytes() == before
    assert not list(out.glob(".*.tmp"))


def test_damage_is_named(out, tmp_path):
    with pytest.raises(InputError, match="is not the folder of a run"):
        bq.report(tmp_path)
    file = out / "summary" / "sizes.parquet"
    before = file.read_bytes()
    file.write_bytes(b"nothing")
    with pytest.raises(IncompleteError, match="summary cannot be read"):
        bq.report(out)
    file.write_bytes(before)


@pytest.mark.exhaustive
def test_memory_does_not_grow_with_the_rows(out, tmp_path):
    """Two million rows, which are the files of a run many times over, without the summary that the proof makes."""
    tiny = shutil.copytree(out, tmp_path / "tiny", ignore=shutil.ignore_patterns("summary"))
    out = tmp_path / "out"
    results = bq.mine(demo_source(), out, **QUIET)
    program = (
        "import sys, bicliques as bq\n"
        "from tests.support.own_memory import OwnMemory\n"
        "bq.report(sys.argv[1])  # imports what it needs\n"
        "memory = OwnMemory()\n"
        "bq.report(sys.argv[2])\n"
        "print(memory.peak() >> 20)"
    )

    def peak_mib() -> int:
        command = [sys.executable, "-c", program, str(tiny), str(out)]
        ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=True)
        return int(ended.stdout)

    shutil.rmtree(out / "summary")
    small = peak_mib()
    manifest = json.loads((out / "manifest.json").read_text())
    (part,) = manifest["parts"]
    names = [f"part-000001-000000000000-{k}.parquet" for k in range(40)]
    for name in names:
        (out / "bicliques" / name).hardlink_to(out / "bicliques" / part["name"])
    manifest["parts"] += [part | {"name": name} for name in names]
    manifest["count"] = 41 * len(results)
    rewrite_record(out / "manifest.json", **manifest)
    large = peak_mib()
    assert len(bq.open_run(out)) == 2_324_208
    assert large < small + 250, (small, large)  # the page has 200 rows, here the longest ones; all would be gigabytes
    assert large < 400


def test_energy_is_shown_where_it_is_counted(out):
    file = out / "steps" / "mine.json"
    before = json.loads(file.read_text())
    (session,) = before["sessions"]
    count = len(bq.open_run(out))
    rewrite_record(file, sessions=[session | {"seconds": 2.0, "processors": {"joules": 90.0}}])
    text = words_of(bq.report(out))
    assert f"90 J, 45 W on average, {90e6 / count:,.1f} J per million bicliques" in text
    rewrite_record(file, sessions=[session | {"processors": {"not_readable": "it is night"}}])
    text = words_of(bq.report(out))
    assert "Not measured: energy of the processors (it is night)" in text
    assert text.index("Not measured") > text.index("What every worker did"), "it is not what a reader came for"
    file.write_text(json.dumps(before))


def noted(real, read: list[Any]):
    return lambda *args, **options: read.append(options.get("columns")) or real(*args, **options)


def test_the_summary_of_a_run_is_read_and_the_rows_are_not(out, monkeypatch):
    monkeypatch.setattr(
        "bicliques.pipeline.results.report.content.read_part", lambda *_: pytest.fail("the rows were read")
    )
    read = []
    for name in ("read_row_group", "read_row_groups", "iter_batches"):
        monkeypatch.setattr(pq.ParquetFile, name, noted(getattr(pq.ParquetFile, name), read))
    content_of(Run.at(out))
    assert ["left", "right"] in read, "the edges"
    assert read.count(["n_left", "n_right"]) == 2, "the sizes of the only row group, for examples and surprising ones"
    assert read.count(None) == 2, "the row group, once for what is surprising, and once for what the page has"


def test_surprising_ones_of_a_large_run_are_those_of_a_named_sample(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("bicliques.pipeline.output.stretch.GROUP_MEMBERS", 3000)  # many row groups
        results = bq.mine(write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "out", **OWN)
    whole = content_of(Run.at(results.path)).listed
    assert "of a sample" not in words_of(results.path / "report.html")
    monkeypatch.setattr("bicliques.pipeline.results.report.listed.MAY_TAKE", (30_000, 0, 0))
    some = content_of(Run.at(results.path)).listed
    assert 0 < some.scored < whole.scored == len(results)
    best = results.top(9, "surprise")["id"].to_pylist()
    assert whole.rows["id"].take(whole.lists["surprise"][:9]).to_pylist() == best
    assert f"those of a sample of {some.scored:,}." in words_of(bq.report(results.path))


def test_what_a_group_is_about_stands_before_who_is_in_it(out, tmp_path):
    """The side with fewer vertices: 40 items of 60 users. The other way round it is the left one."""
    turned = bq.mine(EDGES[:, ::-1].copy(), tmp_path / "turned", **OWN).path
    for run, first in ((out, "right"), (turned, "left")):
        data = json.loads(zlib.decompress(base64.b64decode(data_of(run / "report.html"))))
        assert (data["sides"][0], data["shown"][first]) == (first, 12)
        assert re.findall(r'<div class="members (\w+)( main)?">', (run / "report.html").read_text())[:2] == [
            (first, " main"),
            (data["sides"][1], ""),
        ]


def test_labels_with_the_same_numbers_are_one_row_of_who_takes_part(tmp_path):
    table = pa.table({"user": ["ann", "ann", "bob", "bob", "cyd"], "item": ["a", "b", "a", "b", "a"]})
    page = bq.mine(table, tmp_path / "out", **OWN).path / "report.html"
    part = page.read_text().partition('<section id="participation">')[2].partition("</section>")[0]
    rows = [re.findall(r">(ann|bob|cyd)<", row) for row in part.split("<tr>") if 'data-side="left"' in row]
    assert rows == [["ann", "bob"], ["cyd"]]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *(("left", "left members"), ("tag", "tags"), ("category", "categories"), ("day", "days"), ("match", "matches")),
        *(
            ("works", "works"),
            ("r", "r"),
            ("UserId", "UserId"),
            ("user_id", "user_ids"),
            ("size 2", "size 2"),
            ("", ""),
        ),
    ],
)
def test_names_of_columns_that_may_be_words_are_told_in_the_plural(name, words):
    assert many(name) == words
