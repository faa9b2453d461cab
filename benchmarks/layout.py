"""Parquet layouts for lists of labels: bytes per biclique, seconds to encode and seconds to read back.

    python -m benchmarks.layout
    python -m benchmarks.layout mine.csv --rows 2000000

Every layout gets the same rows: the first ones that the CPU engine finds, in its order. One thread encodes to memory,
and its processor time is measured, so that the disk and other programs have no effect. The best of three runs is kept.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.command import add_data, add_output, chosen, new_parser, output_file, run, write
from benchmarks.runs import prepared_run
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.pipeline.output.part_writer import to_batch
from bicliques.pipeline.run.labels import Tables, open_labels
from bicliques.pipeline.run.plan import Plan
from bicliques.schemas.bicliques import Bicliques, emit_to
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees

#: Members of a row group, left and right together, unless a layout says otherwise.
_GROUP = 1 << 21
_REPEATS = 3
#: The graph of the example, and those of the table in docs/output.md (the first million rows).
EXAMPLE = "debian12_package_tag"
RECORDED = tuple(
    "debian12_package_tag movielens_ui youtube fimi_t10i4d100k bookcrossing_core cp4im_heart_cleveland".split()
)


class Layout(NamedTuple):
    """One way to write the rows."""

    name: str
    options: dict[str, Any]
    group_members: int = _GROUP
    arrange: Callable[[pa.Table], pa.Table] = lambda table: table


def _zstd(level: int, **more: Any) -> dict[str, Any]:
    return {"compression": "zstd", "compression_level": level, "use_dictionary": True} | more


def _delta(compression: str) -> dict[str, Any]:
    lists = {f"{side}.list.element": "DELTA_BINARY_PACKED" for side in ("left", "right")}
    return {"compression": compression, "use_dictionary": ["n_left", "n_right"], "column_encoding": lists}


def _sorted_members(table: pa.Table) -> pa.Table:
    """The rows with the members of every list in ascending order."""
    for name in ("left", "right"):
        column = table[name].combine_chunks()
        values, offsets = column.values, column.offsets.to_numpy()
        owner = np.repeat(np.arange(len(column)), np.diff(offsets))
        rank = pc.rank(values, tiebreaker="dense").to_numpy()
        order = np.lexsort((rank, owner))
        lists = pa.ListArray.from_arrays(column.offsets, values.take(pa.array(order)), type=column.type)
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), lists)
    return table


def _sorted_rows(*keys: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.sort_by([(key, "ascending") for key in keys])


LAYOUTS = (
    Layout("none, plain", {"compression": "none", "use_dictionary": False}),
    Layout("none, dictionary", {"compression": "none", "use_dictionary": True}),
    Layout("snappy, dictionary", {"compression": "snappy", "use_dictionary": True}),
    Layout("lz4, dictionary", {"compression": "lz4", "use_dictionary": True}),
    Layout("zstd 1, plain", _zstd(1, use_dictionary=False)),
    Layout("zstd 1, dictionary", _zstd(1)),
    Layout("zstd 3, dictionary", _zstd(3)),
    Layout("zstd 9, dictionary", _zstd(9)),
    Layout("zstd 3, dictionary, no statistics", _zstd(3, write_statistics=False)),
    Layout("zstd 3, dictionary, 256 Ki members", _zstd(3), 1 << 18),
    Layout("zstd 3, dictionary, 8 Mi members", _zstd(3), 1 << 23),
    Layout("zstd 3, dictionary, members sorted", _zstd(3), arrange=_sorted_members),
    Layout("zstd 3, dictionary, rows by size", _zstd(3), arrange=_sorted_rows("n_left", "n_right")),
    Layout("zstd 3, dictionary, rows by root", _zstd(3), arrange=_sorted_rows("root")),
)
#: Layouts for integers only.
DELTAS = (
    Layout("zstd, delta", _delta("zstd")),
    Layout("zstd, delta, members sorted", _delta("zstd"), arrange=_sorted_members),
)


class Enough(Exception):  # noqa: N818 - not an error
    """There are as many rows as wanted."""


def rows_of(source: Path, most: int, ids: str) -> pa.Table:
    """The first `most` bicliques of a graph, as the pipeline would write them, with labels or dense `ids`."""
    batches: list[pa.RecordBatch] = []
    found = 0
    with prepared_run(source) as folder:
        tables: Tables = (open_labels(folder, "left"), open_labels(folder, "right")) if ids == "labels" else None

        def keep(some: Bicliques) -> None:
            nonlocal found
            batches.append(to_batch(some, tables))
            found += len(some)

        work = Subtrees.of_roots(Plan.read(folder).roots)
        CpuEngine().mine(MiningGraph.open(folder.graph), work, Search(), Limits(rows=most), emit_to(keep))
        # copied, because the labels are mapped from files that are removed after the block
        return pa.Table.from_batches(batches).combine_chunks()


def groups(table: pa.Table, members: int) -> Iterator[pa.Table]:
    """The rows in pieces of at most `members` members, but of one row at least."""
    sizes = np.cumsum(table["n_left"].to_numpy().astype(np.int64) + table["n_right"].to_numpy())
    start = 0
    while start < len(table):
        reached = sizes[start - 1] if start else 0
        stop = max(int(np.searchsorted(sizes, reached + members, side="right")), start + 1)
        yield table.slice(start, stop - start)
        start = stop


def encode(table: pa.Table, layout: Layout) -> bytes:
    """The rows as a Parquet file in memory."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **layout.options) as writer:
        for group in groups(table, layout.group_members):
            writer.write_table(group, row_group_size=len(group))
    return sink.getvalue().to_pybytes()


def measure(table: pa.Table, layout: Layout) -> dict[str, Any]:
    """Sizes and times of one layout."""
    began = time.process_time()
    arranged = layout.arrange(table)
    arranging = time.process_time() - began if arranged is not table else 0.0
    encoding, reading, data = [], [], b""
    for _ in range(_REPEATS):
        began = time.process_time()
        data = encode(arranged, layout)
        encoding.append(time.process_time() - began)
        began = time.process_time()
        back = pq.read_table(pa.BufferReader(data), use_threads=False)
        reading.append(time.process_time() - began)
    assert back.num_rows == table.num_rows
    members = int(pc.sum(table["n_left"]).as_py() + pc.sum(table["n_right"]).as_py())
    return {
        "layout": layout.name,
        "bytes_a_biclique": round(len(data) / len(table), 2),
        "bits_a_member": round(8 * len(data) / members, 2),
        "arrange_s": round(arranging, 3),
        "encode_s": round(min(encoding), 3),
        "encode_members_a_s": round(members / min(encoding)),
        "read_s": round(min(reading), 3),
    }


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("layout", __doc__)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help=f"(default: {EXAMPLE}; with --record {RECORDED})")
    parser.add_argument("--rows", type=int, default=2_000_000, metavar="N", help="at most (default: 2,000,000)")
    parser.add_argument("--ids", choices=("labels", "dense", "both"), default="both")
    add_data(parser)
    add_output(parser, "layout.json")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one table per graph and kind of ids."""
    words = parser().parse_args(arguments)
    graphs, output = chosen(words, RECORDED, [EXAMPLE]), output_file(words, "layout")
    results = []
    for graph in graphs:
        for ids in ("labels", "dense") if words.ids == "both" else (words.ids,):
            table = rows_of(graph.path, words.rows, ids)
            types = {str(table.schema.field(name).type.value_type) for name in ("left", "right")}
            print(f"\n{graph.name}, {ids} ({', '.join(sorted(types))}), {len(table)} rows", flush=True)
            for layout in LAYOUTS + (DELTAS if "string" not in types else ()):
                line = {"graph": graph.name, "ids": ids, "rows": len(table)} | measure(table, layout)
                results.append(line)
                print(
                    f"{layout.name:40s} {line['bytes_a_biclique']:8.2f} B/biclique"
                    f" {line['bits_a_member']:6.2f} bit/member"
                    f" encode {line['encode_members_a_s'] / 1e6:7.1f} M members/s  read {line['read_s']:6.2f} s"
                    f"  arrange {line['arrange_s']:5.2f} s",
                    flush=True,
                )
    write(output, {"python": sys.version.split()[0], "results": results})
    print(f"numbers: {output}")


if __name__ == "__main__":
    run(main)
