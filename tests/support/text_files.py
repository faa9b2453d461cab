"""Edge lists as text, most of them right, and what a reader makes of them."""

from pathlib import Path

import pyarrow as pa
from hypothesis import strategies as st

from bicliques.pipeline.ingest.readers import open_source
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions

ODD_NUMBERS = ("0", "-1", "007", "0x1F", str(2**63 - 1), str(2**63), "1.5", "nan", "1e999", " 2", "+2")
QUOTED = ('"a"', '"a""b"', '"a,b"', '"a', 'a"b', '"a"b', '""', '"', '"1"')
ODD = st.sampled_from(
    (*ODD_NUMBERS, *QUOTED, "a", "a b", "\u00e9", "", "%", "# a", "\x00", "\x0b", "\ufeff", "1 2", "3\t")
)
GOOD = st.sampled_from(["1", "2", "17"])
ENDS = st.sampled_from(["\n"] * 12 + ["\r\n", "\n\n", " \n", "\n ", "\r", "\n\t\n"])


@st.composite
def files(draw, separator: str) -> str:
    """Lines of a table, most of them right, with a few odd fields, separators, lengths and line ends."""
    width, oddness = draw(st.integers(2, 4)), draw(st.sampled_from([0, 5, 30]))
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        odd = [draw(st.integers(1, 100)) <= oddness for _ in range(width + 2)]
        fields = [draw(ODD if odd[k] else GOOD) for k in range(width)]
        fields = fields[: draw(st.integers(0, width))] if odd[-1] else fields
        rows.append(("  " if odd[-2] else separator).join(fields) + draw(ENDS))
    return "".join(rows)


def type_of(labels: pa.Array) -> pa.DataType:
    """The type of the labels themselves. Some batches have them in a dictionary."""
    return labels.type.value_type if pa.types.is_dictionary(labels.type) else labels.type


def edges_of(stream) -> list:
    """All edges of a stream, in order."""
    edges, labels = [], []
    for batch in stream.chunks():
        edges.extend(zip(batch["left"].to_pylist(), batch["right"].to_pylist(), strict=True))
        labels.append([pa.array(column.to_pylist(), type_of(column)) for column in batch.columns])
    sides = [pa.concat_arrays(side) for side in zip(*labels, strict=True)]
    stream.check(*(side.unique() for side in sides), len(sides[0]))
    return edges


def outcome(path: Path, options: IngestOptions):
    """The edges, lines left out and rows of a file, or the sentence that refuses it."""
    try:
        stream = open_source(path, options)
        edges = edges_of(stream)
    except InputError as error:
        return str(error)
    return edges, stream.skipped, stream.rows


SEPARATORS = {"konect": " ", "snap": "\t", "csv": ",", "tsv": "\t", "matrix-market": " ", "fimi": " ", "adjacency": " "}
