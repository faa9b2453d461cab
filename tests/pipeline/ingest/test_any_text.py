"""Any text is read or refused in one sentence, whatever its name, its format and the options are."""

import random
from pathlib import Path

import pytest

from bicliques.pipeline.ingest.step import ingest
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions

WORDS = [
    *("1", "2", "0", "-1", "1e3", "nan", "a", "b c", "X", ".", "yes", "", " ", ",", ";", "\t", "|", "::", '"', "{}"),
    *("\n", "\n", "\n", "\r\n", "#", "%", "//", "@ITEM=1=a\n", "sep=;\n", "user,item\n", "B\n", "3 3 5\n"),
    *("\x00", "\xff", "\u00e9", "\ufeff"),
]
NAMES = ["x.csv", "x.tsv", "x.el", "x.edgelist", "x.dat", "x.adj", "x.cxt", "out.x", "x.mtx", "x.txt"]
OPTIONS = {
    "header": (True, False),
    "label_type": ("string", "int"),
    "skip_bad_lines": (True,),
    "skip_lines": (0, 1, 3),
    "delimiter": (",", "::", "\\t", " ", ";"),
    "format": ("csv", "tsv", "snap", "fimi", "adjacency", "table", "cxt", "konect", "matrix-market"),
    "min_weight": (1.0,),
}


@pytest.mark.parametrize(
    "seeds",
    [pytest.param(range(400), id="few"), pytest.param(range(400, 6000), id="many", marks=pytest.mark.exhaustive)],
)
def test_any_text_is_read_or_refused_in_one_sentence(seeds: range, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for seed in seeds:
        draw = random.Random(seed)
        path = tmp_path / draw.choice(NAMES)
        content = "".join(draw.choice(WORDS) for _ in range(draw.randint(0, 25)))
        path.write_bytes(content.encode("latin-1", "replace") if draw.random() < 0.05 else content.encode())
        options = {name: draw.choice(values) for name, values in OPTIONS.items() if draw.random() < 0.25}
        sentence = ""
        try:
            ingest(path, IngestOptions(**options), tmp_path / "out")  # type: ignore[arg-type]
        except InputError as refused:
            sentence = str(refused)
        except Exception as error:
            raise AssertionError((seed, path.name, options, content)) from error
        assert "\n" not in sentence, (seed, path.name, options, content)
