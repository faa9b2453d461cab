"""Labels, names of columns, files and folders that are programs, through Prefect: all of them are shown as they are."""

import json
import logging
import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from prefect.client.schemas.objects import State

from bicliques.flows import progress
from bicliques.flows.cards import plain, table_of_rows
from bicliques.flows.events import asset_key
from bicliques.flows.mine import mine
from tests.flows.emitted import COMPLETE, MADE, events
from tests.flows.grouped import grouped
from tests.flows.states import artifacts, descriptions, everything, read

#: Labels, and how a page shows them: on one line, and without what turns the direction of text.
HOSTILE = {
    "<script>alert(1)</script>": "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>": "<img src=x onerror=alert(1)>",
    "<br>": "<br>",
    "a|b": "a|b",
    "a\\|b": "a\\|b",
    "\\": "\\",
    "a\nb": r"'a\nb'",
    "\r\n| x |": r"'\r\n| x |'",
    "\t=1": r"'\t=1'",
    '=HYPERLINK("http://x.invalid","y")': '=HYPERLINK("http://x.invalid","y")',
    "+1": "+1",
    "-1": "-1",
    "@SUM(A1)": "@SUM(A1)",
    "\uff1d1": "\uff1d1",
    "[x](http://x.invalid)": "[x](http://x.invalid)",
    "![x](http://x.invalid/y.png)": "![x](http://x.invalid/y.png)",
    "http://x.invalid": "http://x.invalid",
    "see HTTPS://x.invalid": "see HTTPS://x.invalid",
    "www.x.invalid": "www.x.invalid",
    "ann@x.invalid": "ann@x.invalid",
    "javascript:alert(1)": "javascript:alert(1)",
    "`code`": "`code`",
    "```": "```",
    "**bold** _it_ ~~gone~~": "**bold** _it_ ~~gone~~",
    "# title": "# title",
    "1. one": "1. one",
    "12. twelve": "12. twelve",
    "---": "---",
    "&lt;b&gt; &#61;": "&lt;b&gt; &#61;",
    "'": "'",
    '"': '"',
    "\u202egnp": r"'\u202egnp'",
    "a\u200fb": r"'a\u200fb'",
    "\x1b[31mred": r"'\x1b[31mred'",
    "\u2028": r"'\u2028'",
    "{{ event.payload }}": "{{ event.payload }}",
    "%s {0} {date}": "%s {0} {date}",
    "é 東京 🌟": "é 東京 🌟",
}
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
#: What the dialect of Prefect's page takes for a link without any sign around it.
BARE = re.compile(r"(https?|ftp)://|\bwww\.|[\w.+-]@[\w-]", re.IGNORECASE)
#: What may be something else than text in Markdown, or is a backslash before it.
SPECIAL = re.compile(r"[\\`*{}\[\]<>()#+!|&~=@]|//|^[-\d]")


def text_of(tokens: list[Token]) -> str:
    """What is shown. A line that was broken is one line. No text between two tags is a link without any sign."""
    parts = [""]
    for token in tokens:
        if token.type == "html_inline":
            assert token.content in ("<br>", "<wbr>"), token.content
            parts += [{"<br>": "\n", "<wbr>": ""}[token.content], ""]
        else:
            assert token.type in ("text", "text_special", "softbreak"), token
            parts[-1] += token.content if token.type.startswith("text") else "\n"
    assert [part for part in parts if BARE.search(part)] == []
    return "".join(parts)


def cells(text: str) -> list[list[str]]:
    """The rows of a Markdown table, of which there is one and nothing else."""
    assert not BARE.search(text), text
    tokens = MARKDOWN.parse(text)
    kinds = {token.type.rpartition("_")[0] for token in tokens if token.type != "inline"}
    assert kinds <= {"table", "thead", "tbody", "tr", "th", "td"}, kinds
    rows = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        if token.type == "inline":
            rows[-1].append(text_of(token.children or []))
    assert len({len(row) for row in rows}) == 1
    return rows


def line(text: str) -> str:
    """What is shown of text that is no table: one paragraph, in which nothing is anything but text."""
    assert not BARE.search(text), text
    assert "\n" not in text
    assert text.isprintable()
    tokens = MARKDOWN.parse(text)
    assert [token.type for token in tokens] in (["paragraph_open", "inline", "paragraph_close"], []), text
    return text_of(tokens[1].children or []) if tokens else ""


@pytest.mark.parametrize("label", HOSTILE, ids=ascii)
def test_a_label_is_shown_as_it_is(label):
    assert line(plain(label)) == HOSTILE[label]
    head, (one, number) = cells(table_of_rows([{"label": label, "n": -1}]))
    assert (head, "".join(one.split("\n")), number) == (["label", "n"], HOSTILE[label], "-1")
    (_, _), (shown, after) = cells(f"| a | b |\n| --- | --- |\n| {plain(label)} | c |")
    assert (shown, after) == (HOSTILE[label], "c")


class Lines(logging.Handler):
    """The lines of a log."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record: logging.LogRecord):
        self.lines.append(record.getMessage())


@pytest.mark.parametrize("label", HOSTILE, ids=ascii)
def test_a_line_of_the_log_is_one_line(monkeypatch, label):
    """Whether the flow says something of a name or the pipeline does."""
    log, lines = logging.Logger("of a flow run"), Lines()
    log.addHandler(lines)
    monkeypatch.setattr(progress, "get_run_logger", lambda: log)
    with progress.run_logs():
        logging.getLogger("bicliques.pipeline.publishing").warning("%s", f"12 files are at {label}")
    progress.say(f"looked into {label}")
    told = (f"12 files are at {label}", f"looked into {label}")
    assert lines.lines == [text if text.isprintable() else repr(text) for text in told]


def night(place: Path, day: str, edges: set[tuple[str, str]], **options) -> State[Any]:
    """A run of a file, in a folder, with columns, that are hostile, too."""
    left, right = zip(*sorted(edges), strict=True)
    place.mkdir(exist_ok=True)
    table = pa.table({"=user|<b>\n": left, "![film](http://x.invalid)": right})
    pq.write_table(table, place / f"<i>in`|{day}.parquet")
    given = grouped(workers=0, report=True, changes=True, latest=True, **options)
    return mine(f"{place}/<i>in`|{{date}}.parquet", f"{place}/runs/{{date}}", date=day, **given, return_state=True)


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize("name", [b"\xff.csv", "\u202e<b>\n\x1b[31m.csv".encode()], ids=["no UTF-8", "odd"])
def test_a_file_with_a_hostile_name_is_refused_in_a_line(tmp_path, name):
    (tmp_path / "in").mkdir()
    Path(os.fsdecode(os.path.join(os.fsencode(tmp_path / "in"), name))).write_text("user,film\na,x\nb\n")  # noqa: PTH118
    state = mine(f"{tmp_path}/in/", f"{tmp_path}/out", **grouped(workers=0), return_state=True)
    assert state.is_failed()
    shown = ascii(os.fsdecode(name))[1:-1]
    assert f"InputError: {tmp_path}/in/{shown}, line 3: 1 column where the first line has 2" in str(state.message)
    assert str(state.message).isprintable()
    assert read(state).state.message == state.message


@pytest.mark.usefixtures("prefect_server")
def test_nothing_hostile_is_anything_but_text_in_prefect(tmp_path):
    labels = list(HOSTILE)
    edges = {(a, b) for k, a in enumerate(labels) for b in labels[k // 2 :]}
    place = tmp_path / "\u202e=<b>(http:__x)\n| y`"
    night(place, "2026-01-01", edges)
    state = night(place, "2026-01-02", edges - {(labels[0], labels[-1]), (labels[1], labels[-2])})
    assert state.name == "Completed", state.message
    shown = artifacts(state)
    folder = f"{place}/runs/2026-01-02"
    card = {row[0]: "".join(row[1].split("\n")) for row in cells(shown["run-card"])}
    assert {"bicliques", "input", "files", "fingerprint", "manifest"} <= card.keys()
    assert card.keys() == {row[0] for row in cells(shown["run-card"])}
    assert repr(folder)[1:-1] in card["files"]
    for name in ("largest", "balanced", "largest-new"):
        rows = cells(shown[name])
        assert rows[0] == ["#", "left", "right", "edges", "left members", "right members"]
        assert [row[0] for row in rows[1:]] == [str(rank) for rank in range(1, len(rows))]
    for name in ("participants", "vertices"):
        head, *rows = cells(shown[name])
        found = {row[head.index("label")] for row in rows}
        assert found <= set(HOSTILE.values())
        assert len(found) >= 10
    assert cells(shown["workers"])[0][0] == "worker"
    for name in ("numbers", "changes"):
        for row in json.loads(shown[name]):
            for text in (*row, *(value for value in row.values() if isinstance(value, str))):
                assert not SPECIAL.search(text), "a table artifact is shown as Markdown, or not"
    told = descriptions(state)
    assert {"run-card", "largest", "participants", "vertices"} <= told.keys()
    for name in told.keys() - {"mining", "proving"}:
        assert "gnp" in line(told[name]) or repr(folder)[1:-1] in line(told[name])
    assert read(state).name.isprintable()
    assert str(state.message).isprintable()
    for record in json.loads(f"[{','.join(everything(state).splitlines())}]"):
        assert "message" not in record or str(record["message"]).isprintable(), record["message"]
    (event,) = [event for event in events(1, COMPLETE, name=folder)]
    assert event.payload["folder"] == folder, "programs get the name as it is"
    assert event.payload["series"] == f"{place}/<i>in`|{{date}}.parquet"
    key = asset_key(f"{place}/runs/{{date}}")
    assert re.fullmatch(r"file:///[^\s<>\[\]|`]+/runs/date-[0-9a-f]{6}", key)
    assert [str(made.resource.name).isprintable() for made in events(2, MADE, id=key)] == [True, True]
