"""Graphs as people have them in memory, and as pandas stores them in Parquet: frames with and without an index."""

import io
from random import Random
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa

from tests.pipeline.ingest.dialect_edges import TEXT, UNUSUAL, USUAL
from tests.pipeline.ingest.dialect_graphs import NUMBERS, Case, Edges, dialect, draw, neighbours
from tests.pipeline.ingest.dialect_tables import baskets_of, numbered

KINDS = (*NUMBERS, *TEXT)


def typed(edges: Edges) -> list[tuple[Any, Any]]:
    """The edges with integers where a side has integers only."""
    sides = [
        [int(x) for x in side] if all(x.isdecimal() for x in side) else list(side) for side in zip(*edges, strict=True)
    ]
    return list(zip(*sides, strict=True))


def frame_of(random: Random, edges: Edges, names: tuple[str, str], n_more: int = 0) -> pd.DataFrame:
    frame = pd.DataFrame(typed(edges), columns=list(names))
    for name in ("n", "place")[:n_more]:
        frame[name] = [random.randint(0, 5) if name == "n" else random.choice("ab") for _ in range(len(frame))]
    return frame


@dialect("frame, pandas", "frame, polars", "frame, arrow", "parquet", "pairs", "frame, columns by name")
def frame(random: Random, tag: str) -> Case:
    edges, names = draw(random, KINDS, KINDS), random.choice(USUAL if "name" not in tag else UNUSUAL)
    made: Any = frame_of(random, edges, names, random.randint(0, 2) if tag != "pairs" else 0)
    options = {}
    if tag == "frame, pandas" and random.random() < 0.3:
        made = made.iloc[::-1]
    elif tag.endswith("polars"):
        made = pl.DataFrame(made.to_dict("list"))
    elif tag.endswith("arrow"):
        made = pa.Table.from_pandas(made)
    elif tag == "pairs":
        made = typed(edges)
    elif tag.endswith("name"):
        made, options = made[made.columns[::-1]], {"left": names[0], "right": names[1]}
    if tag == "parquet":
        return Case(frozenset(edges), "g.parquet", stored(made), is_plain=True)
    return Case(frozenset(edges), source=made, options=options, is_plain=True)


def stored(frame: pd.DataFrame) -> bytes:
    target = io.BytesIO()
    frame.to_parquet(target)
    return target.getvalue()


@dialect(
    "index is left", "index is both sides", "index is a row number", "index is a name besides", "index is left, by name"
)
@dialect(
    "index is left, parquet", "index is both sides, parquet", "index is both sides, arrow", "index is left, feather"
)
def index(random: Random, tag: str) -> Case:
    """An index that is not named has positions, or whatever was kept by a filter; a named one has labels."""
    what, _, kept = tag.removeprefix("index is ").partition(", ")
    edges, names = draw(random, KINDS, KINDS), random.choice((*USUAL, *UNUSUAL))
    made = frame_of(random, edges, names, random.randint(1, 2))
    options = {}
    if what == "left":
        made = made.set_index(names[0])
    elif what == "both sides":
        made = made.set_index(list(names))
    elif what == "a row number":
        made.index += random.choice((1, 100))
    else:
        made = frame_of(random, edges, random.choice(USUAL), 1)
        made.index = pd.Index([f"o{k}" for k in range(len(made))], name="order")
    if kept == "by name":
        options = {"left": names[0], "right": names[1]}
    if kept == "parquet":
        return Case(frozenset(edges), "g.parquet", stored(made))
    if kept == "feather":
        table, target = pa.Table.from_pandas(made), io.BytesIO()
        with pa.ipc.new_file(target, table.schema) as writer:
            writer.write_table(table)
        return Case(frozenset(edges), "g.feather", target.getvalue())
    source: Any = pa.Table.from_pandas(made) if kept == "arrow" else made
    return Case(frozenset(edges), source=source, options=options, is_plain=kept == "by name" or what == "a row number")


@dialect("integer names", "integer names, polars")
def integer_names(random: Random, tag: str) -> Case:
    """Columns called 1, 2, 3, as `read_csv(header=None, usecols=[1, 2, 3])` calls them, and chosen by these names."""
    edges, first = draw(random, KINDS, KINDS), random.choice((1, 2))
    made: Any = frame_of(random, edges, ("a", "b"), 1)
    made.columns = range(first, first + 3)
    if tag.endswith("polars"):
        made = pl.DataFrame({str(name): made[name].tolist() for name in made})
        return Case(frozenset(edges), source=made, options={"left": str(first), "right": str(first + 1)}, is_plain=True)
    return Case(frozenset(edges), source=made, options={"left": first, "right": first + 1})


@dialect(
    "crosstab", "crosstab, index reset", "pivot of pandas", "pivot of polars", "crosstab, arrow", "crosstab of bool"
)
@dialect("cross frame of words", "crosstab, parquet")
def crosstab(random: Random, tag: str) -> Case:
    edges = draw(random, KINDS, KINDS, least=4)
    long = pd.DataFrame(typed(edges) + random.choices(typed(edges), k=3), columns=["u", "i"])
    if tag == "pivot of polars":
        wide = pl.DataFrame(long.to_dict("list")).pivot("i", index="u", values="i", aggregate_function="len")
        return Case(frozenset(edges), source=wide.fill_null(0) if random.random() < 0.5 else wide)
    table: Any = pd.crosstab(long.u, long.i)
    if tag == "pivot of pandas":
        table = long.assign(n=1).pivot_table(index="u", columns="i", values="n", aggfunc="sum")
    elif tag == "crosstab of bool":
        return Case(frozenset(edges), source=table > 0, is_plain=True)
    elif tag == "cross frame of words":
        table = (table > 0).replace({True: random.choice(("X", "yes")), False: random.choice(("", "no"))})
    table.columns = [str(name) for name in table.columns] if random.random() < 0.5 or "," in tag else table.columns
    if tag == "crosstab, parquet":
        return Case(frozenset(edges), "g.parquet", stored(table))
    if tag == "crosstab, index reset":
        table = table.reset_index()
    return Case(frozenset(edges), source=pa.Table.from_pandas(table) if tag.endswith("arrow") else table)


@dialect("ragged baskets, pandas", "ragged baskets, polars", "lists of baskets")
def ragged(random: Random, tag: str) -> Case:
    """A row per basket, filled up with nothing. Every basket has two items at least, so that two columns are full."""
    drawn = draw(random, NUMBERS, TEXT, least=4)
    baskets = [basket for basket in baskets_of(drawn, random) if len(basket) > 1]
    have = sorted({right for _, right in drawn})
    baskets += [have[:3], have[1:3]]
    if tag == "lists of baskets":
        made: Any = pd.DataFrame({"basket": [f"b{k}" for k in range(len(baskets))], "items": baskets})
        edges = frozenset((f"b{k}", item) for k, basket in enumerate(baskets) for item in basket)
        return Case(edges, source=made, is_plain=True)
    made = pd.DataFrame(baskets)
    if tag.endswith("polars"):
        most = max(map(len, baskets))
        filled = [basket + [None] * (most - len(basket)) for basket in baskets]
        made = pl.DataFrame({f"item{k}": [basket[k] for basket in filled] for k in range(most)})
    return Case(numbered(baskets), source=made, left_is_counted=True)


def of_neighbours(edges: Edges) -> dict[str, set[str]]:
    return {left: set(rights) for left, rights in neighbours(edges).items()}


@dialect("dict of sets")
def mapping(random: Random, tag: str) -> Case:
    edges = draw(random, TEXT, TEXT)
    return Case(frozenset(edges), source=of_neighbours(edges), is_plain=True)
