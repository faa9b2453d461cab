"""What is not a line per edge: transactions, lists of neighbours, and tables with a column per right vertex."""

from random import Random

from tests.pipeline.ingest.dialect_edges import TEXT, field, said_text, text_of
from tests.pipeline.ingest.dialect_graphs import NUMBERS, WORDS, Case, Edges, dialect, draw, neighbours

#: Marks of an edge and of no edge in a cross table.
MARKS = {
    "0 and 1": ("1", "0"),
    "X and nothing": ("X", ""),
    "x and nothing": ("x", ""),
    "X and a dot": ("X", "."),
    "yes and no": ("yes", "no"),
    "Y and N": ("Y", "N"),
    "true and false": ("true", "false"),
    "True and False": ("True", "False"),
    "1 and nothing": ("1", ""),
    "counts": ("", "0"),
    "counts and nothing": ("", ""),
    "amounts": ("", "0.0"),
}


def baskets_of(edges: Edges, random: Random) -> list[list[str]]:
    """A list of items per left vertex. None has the same number of items everywhere, and one has one or five."""
    baskets = list(neighbours(edges).values())
    have = sorted({right for _, right in edges})
    if not {len(basket) for basket in baskets} & {1, 5, 6}:
        baskets.append([random.choice(have)])
    if len({len(basket) for basket in baskets}) == 1:
        baskets.append(random.sample(have, 2 if len(baskets[0]) == 1 else 1))
    return baskets


def numbered(baskets: list[list[str]]) -> frozenset[tuple[str, str]]:
    return frozenset((str(k), item) for k, basket in enumerate(baskets, 1) for item in basket)


def counted(name: str, baskets: list[list[str]], lines: list[str], **rest: object) -> Case:
    data = ("\n".join(lines) + "\n").encode()
    return Case(numbered(baskets), name, data, left_is_counted=True, **rest)  # type: ignore[arg-type]


@dialect(
    "fimi", "fimi, text", "adjacency", "transactions with separators", "transactions, --delimiter", "baskets in .csv"
)
def transactions(random: Random, tag: str) -> Case:
    kinds = NUMBERS if tag in ("fimi", "adjacency") else TEXT if "text" in tag or "csv" in tag else (*NUMBERS, *TEXT)
    baskets = baskets_of(draw(random, NUMBERS, kinds), random)
    separator = random.choice((",", ";", "|", "\t", ", ")) if tag.startswith("transactions") else " "
    options: dict[str, object] = {}
    name = "g.adj" if tag == "adjacency" else "g.dat"
    if tag == "transactions, --delimiter":
        options = {"format": "fimi", "delimiter": separator[0], "label_type": "string"}
    elif tag == "fimi, text":
        options = {"label_type": "string"}
    elif tag.startswith("transactions"):
        name, options = (
            random.choice(("g.dat", "g.txt", "g.adj")),
            said_text(random, [("1", basket[0]) for basket in baskets]),
        )
    elif tag == "baskets in .csv":
        separator, name = ",", "g.csv"
        if random.random() < 0.5:  # padded, as a spreadsheet does
            most = max(map(len, baskets)) + random.randint(0, 1)
            return counted(name, baskets, [separator.join(b + [""] * (most - len(b))) for b in baskets])
    is_plain = tag in ("fimi", "fimi, text", "adjacency")
    return counted(name, baskets, [separator.join(b) for b in baskets], options=options, is_plain=is_plain)


@dialect("spmf")
def spmf(random: Random, tag: str) -> Case:
    baskets = baskets_of(draw(random, NUMBERS, ("from 1",)), random)
    items = sorted({item for basket in baskets for item in basket})
    head = ["@CONVERTED_FROM_TEXT", *(f"@ITEM={item}={WORDS[int(item)]}" for item in items)]
    lines = [" ".join(sorted(basket, key=int)) for basket in baskets]
    name = random.choice(("g.dat", "g.txt"))
    options = said_text(random, [("1", "1")])
    return counted(name, baskets, head + lines, is_only_counted=True, options=options)


@dialect(
    "neighbours in an edge list", "adjlist of networkx", "neighbours with a colon", "table in .dat", "text in .dat"
)
def lists(random: Random, tag: str) -> Case:
    if tag.endswith(".dat"):
        return _table_in_dat(random, tag == "text in .dat")
    edges = draw(random, NUMBERS, ("ids",))
    own = neighbours(edges)
    if len({*map(len, own.values())}) == 1:  # may be edges with weights
        edges = [*edges, (next(iter(own)), "7")]
        own = neighbours(edges)
    end = ":" if tag.endswith("colon") else ""
    lines = [" ".join([left + end, *rights]) for left, rights in own.items()]
    name = random.choice(("g.edgelist", "g.edges") if not end else ("g.adj", "g.edgelist", "g.dat"))
    if tag.startswith("adjlist"):
        lines = ["#program.py", "# GMT Fri Nov 27 2026", "# ", *lines, *sorted({right for _, right in edges})]
        name = random.choice(("g.adjlist", "g.txt"))
    return Case(frozenset(edges), name, text_of(random, lines, False))


def _table_in_dat(random: Random, has_header: bool) -> Case:
    edges = draw(random, NUMBERS, NUMBERS)
    separator, n = random.choice("\t ,"), random.randint(0, 2)
    rows = [[*edge, *(str(random.randint(1, 9)) for _ in range(n))] for edge in edges]
    if has_header:
        rows.insert(0, ["userID", "artistID", "weight", "time"][: n + 2])
    data = text_of(random, [separator.join(row) for row in rows], False)
    return Case(frozenset(edges), "g.dat", data, options=said_text(random, edges))


def cells(random: Random, edges: Edges, marks: str) -> list[list[str]]:
    """The names of the columns, with an empty corner, and a row per left vertex."""
    one, none = MARKS[marks]
    there, rights = set(edges), sorted({right for _, right in edges})

    def cell(left: str, right: str) -> str:
        if (left, right) not in there:
            return none
        if marks == "amounts":
            return str(random.randint(1, 9) / 2)
        return one or str(random.randint(1, 5))

    return [["", *rights], *([left, *(cell(left, right) for right in rights)] for left in neighbours(edges))]


@dialect(*(f"cross table of {marks}" for marks in MARKS))
@dialect(*(f"cross table of {marks}, --header" for marks in ("X and nothing", "yes and no", "counts", "X and a dot")))
@dialect(*(f"cross table of {marks}, no header" for marks in ("counts", "X and nothing", "yes and no")))
@dialect(*(f"cross table of {marks}, row names of R" for marks in ("counts", "0 and 1", "true and false")))
@dialect(*(f"cross table of {marks}, --format table" for marks in ("counts", "X and nothing", "0 and 1", "yes and no")))
def cross_table(random: Random, tag: str) -> Case:
    marks, _, how = tag.removeprefix("cross table of ").partition(", ")
    # columns called by numbers are those of years, too
    edges = draw(random, (*NUMBERS, *TEXT), TEXT if random.random() < 0.7 else ("ids", "from 1", *TEXT), least=4)
    rows = cells(random, edges, marks)
    corner = random.choice(("plant", "animal", "name", "", "", "id"))
    rows[0][0] = corner
    options: dict[str, object] = {}
    if how == "--header":
        options["header"] = True
    elif how == "no header":
        rows = rows[1:]
    elif how == "row names of R":
        rows[0] = rows[0][1:]
    elif how == "--format table":
        options["format"] = "table"
    separator = random.choice(",,\t;")
    lines = [separator.join(field(text, separator, how == "row names of R" and not k) for text in row)
             for k, row in enumerate(rows)]  # fmt: skip
    name = "g.tsv" if separator == "\t" else "g.csv"
    return Case(frozenset(edges), name, text_of(random, lines, False), options=options)


@dialect("burmeister")
def burmeister(random: Random, tag: str) -> Case:
    edges = draw(random, TEXT, TEXT)
    _, *rows = cells(random, edges, "X and a dot")
    rights = sorted({right for _, right in edges})
    name = random.choice(("", "pond"))
    lines = ["B", name, str(len(rows)), str(len(rights)), "", *(row[0] for row in rows), *rights]
    lines += ["".join(row[1:]) for row in rows]
    return Case(frozenset(edges), "g.cxt", ("\n".join(lines) + "\n").encode(), is_plain=True)
