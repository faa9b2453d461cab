"""Edge lists in text, as programs and people write them: a line per edge."""

import bz2
import gzip
import lzma
from random import Random

import pyarrow as pa

from tests.pipeline.ingest.dialect_graphs import NO_BLANK, NUMBERS, PLAIN, Case, Edges, dialect, draw

USUAL = (
    ("user", "item"),
    ("user_id", "movie_id"),
    ("source", "target"),
    ("Author", "Paper"),
    ("customer id", "product"),
)
UNUSUAL = (("plant", "insect"), ("shop", "brand"), ("kind", "colour"))
TEXT = ("words", "codes", "unicode", "days")
ANY = (*NO_BLANK, "blanks", "missing", "marks", "mixed")
SUFFIX = {",": "csv", ";": "csv", "|": "csv", "\t": "tsv"}


def field(text: str, separator: str, quote: bool = False) -> str:
    """A field of a CSV, in quotes if it needs them."""
    needs = quote or any(c in text for c in (separator, '"', "\n")) or text != text.strip()
    return '"' + text.replace('"', '""') + '"' if needs else text


def lines_of(rows: list[list[str]], separator: str, quote: bool = False) -> list[str]:
    return [separator.join(field(text, separator, quote) for text in row) for row in rows]


def rows_of(edges: Edges) -> list[list[str]]:
    return [list(edge) for edge in edges]


def more(random: Random, rows: list[list[str]], first: bool = False) -> list[str]:
    """Put one or two more columns behind the rows. Returns their names; with `first`, numbers as names, too."""
    kinds = {
        "weight": lambda k: str(random.randint(0, 5)),
        "rating": lambda k: str(random.randint(1, 10) / 2),
        "year": lambda k: str(random.randint(1990, 2024)),
        "place": lambda k: random.choice(("north", "south", "east")),
        "day": lambda k: f"2024-0{random.randint(1, 9)}-11",
    }
    names = random.sample(list(kinds), random.randint(1, 2))
    for name in names:
        for k, row in enumerate(rows):
            row.append(kinds[name](k))
    return [random.choice(("2019", "2020", "1", "3.5")) for _ in names] if first else names


def text_of(random: Random, lines: list[str], is_odd: bool = True) -> bytes:
    """Lines as bytes, with line ends, blank lines and a mark at the beginning as they happen to be."""
    end = "\r\n" if is_odd and random.random() < 0.25 else "\n"
    if is_odd and random.random() < 0.2:
        lines = list(lines)
        lines.insert(random.randint(0, len(lines)), "")
    text = end.join(lines) + ("" if is_odd and random.random() < 0.2 else end)
    return ("\ufeff" if is_odd and random.random() < 0.15 else "").encode() + text.encode()


def case(random: Random, edges: Edges, name: str, lines: list[str], is_odd: bool = True, **rest: object) -> Case:
    return Case(frozenset(edges), name, text_of(random, lines, is_odd), **rest)  # type: ignore[arg-type]


@dialect(
    "usual header", "usual header, more columns", "quoted header", "usual header, odd labels", "hashes below a header"
)
def usual_header(random: Random, tag: str) -> Case:
    separator = random.choice(list(SUFFIX))
    odd, hashes = tag.endswith("odd labels"), tag.startswith("hashes")
    edges = draw(random, *((("hashes",), PLAIN) if hashes else (ANY if odd else PLAIN,) * 2))
    rows, names = rows_of(edges), list(random.choice(USUAL))
    if tag.endswith("columns"):
        names += more(random, rows)
    lines = lines_of([names, *rows], separator, tag == "quoted header")
    return case(random, edges, f"g.{SUFFIX[separator]}", lines, is_plain=not odd and not hashes)


@dialect("unusual header", "unusual header, --header", "unusual header, more columns", "columns by name")
def unusual_header(random: Random, tag: str) -> Case:
    separator, (left, right) = random.choice(list(SUFFIX)), random.choice(UNUSUAL)
    edges, names = draw(random), [left, right]
    rows = rows_of(edges)
    if tag.endswith("columns") or "name" in tag:
        names += more(random, rows, random.random() < 0.5)
    options = {"columns by name": {"left": left, "right": right}, "unusual header, --header": {"header": True}}.get(
        tag, {}
    )
    lines = lines_of([names, *rows], separator, random.random() < 0.2)
    return case(random, edges, f"g.{SUFFIX[separator]}", lines, options=options, is_plain=bool(options))


@dialect("number in a third name", "unusual and a number in a third name")
def number_in_header(random: Random, tag: str) -> Case:
    edges, names = draw(random, ANY, ANY), list(random.choice(USUAL if tag.startswith("number") else UNUSUAL))
    rows = rows_of(edges)
    names += more(random, rows, True)
    return case(random, edges, "g.csv", lines_of([names, *rows], ","))


@dialect("no header, numbers", "no header, text", "no header, more columns", "no header, --no-header")
def no_header(random: Random, tag: str) -> Case:
    separator, said = random.choice(list(SUFFIX)), tag.endswith("--no-header")
    kinds = (NUMBERS if "numbers" in tag else TEXT if tag.endswith("text") else PLAIN,) * 2
    edges = draw(random, *kinds)
    rows = rows_of(edges)
    if tag.endswith("columns"):
        more(random, rows)
    options = {"header": False} if said else {}
    # 0 and 1 on the first line are also the names that pandas gives to columns
    if rows[0][:2] == ["0", "1"]:
        rows = rows[::-1]
    is_plain = said or "numbers" in tag
    return case(random, edges, f"g.{SUFFIX[separator]}", lines_of(rows, separator), options=options, is_plain=is_plain)


@dialect("pandas header of numbers", "pandas index, usual names", "pandas index, unusual names", "row names of R")
def of_pandas(random: Random, tag: str) -> Case:
    if tag == "pandas header of numbers":  # over integers on both sides it could be an edge
        edges = draw(random, *random.choice(((TEXT, PLAIN), (PLAIN, TEXT))))
        rows = rows_of(edges)
        if random.random() < 0.5:
            more(random, rows)
        return case(random, edges, "g.csv", lines_of([[str(k) for k in range(len(rows[0]))], *rows], ","))
    edges = draw(random)
    rows, names = rows_of(edges), list(random.choice(UNUSUAL if "unusual" in tag else USUAL))
    if random.random() < 0.4:
        names += more(random, rows)
    of_r = tag.endswith("R")
    rows = [["", *names], *([str(k + of_r), *row] for k, row in enumerate(rows))]
    if of_r and random.random() < 0.5:
        rows[0] = rows[0][1:]  # as write.table does
    return case(random, edges, "g.csv", lines_of(rows, ",", of_r))


@dialect("header again", "unusual header again", "gzip members")
def header_again(random: Random, tag: str) -> Case:
    separator = random.choice(list(SUFFIX))
    edges, names = draw(random), list(random.choice(UNUSUAL if tag.startswith("unusual") else USUAL))
    rows = rows_of(edges)
    if random.random() < 0.4:
        names += more(random, rows)
    head, *lines = lines_of([names, *rows], separator)
    cut = random.randint(1, len(lines) - 1)
    name = f"g.{SUFFIX[separator]}"
    if tag == "gzip members":
        parts = [("\n".join([head, *part]) + "\n").encode() for part in (lines[:cut], lines[cut:])]
        return Case(frozenset(edges), f"{name}.gz", b"".join(map(gzip.compress, parts)))
    return case(random, edges, name, [head, *lines[:cut], head, *lines[cut:]])


@dialect("comments above a header", "comments and --header", "comments above edges", "comments, --skip-lines", "sep=")
def above_the_header(random: Random, tag: str) -> Case:
    separator, (left, right) = random.choice(list(SUFFIX)), random.choice(USUAL)
    edges = draw(random)
    body = lines_of(rows_of(edges), separator)
    if tag == "comments above edges" and body[0] == lines_of([["0", "1"]], separator)[0]:
        body.reverse()
    if tag != "comments above edges":
        body.insert(0, separator.join((left, right)))
    mark = random.choice(("#", "%", "//")) if tag != "comments, --skip-lines" else random.choice(("Report", "#", "--"))
    words = (" exported by tool", f" day{separator} 2026-11-01", " one, two; three | four", "", " a note")
    above = [mark + random.choice(words) for _ in range(random.randint(1, 3))]
    if tag == "sep=":
        above = [f"sep={separator}"]
    options = {"comments and --header": {"header": True}, "comments, --skip-lines": {"skip_lines": len(above)}}
    return case(random, edges, f"g.{SUFFIX[separator]}", above + body, False, options=options.get(tag, {}))


@dialect("trailing separators", "blanks behind separators", "text in another coding")
def trailing(random: Random, tag: str) -> Case:
    edges, names = draw(random), random.choice((*USUAL, *UNUSUAL))
    lines = lines_of([list(names), *rows_of(edges)], ",")
    if tag == "text in another coding":
        return Case(frozenset(edges), "g.csv", "\n".join(lines).encode("utf-16"))
    if tag.startswith("trailing"):
        first = random.randint(0, 1)
        lines = [line + "," * random.choice((1, 2)) if not first or k else line for k, line in enumerate(lines)]
        lines = [line.rstrip(",") + "," for line in lines] if random.random() < 0.6 else lines
        return case(random, edges, "g.csv", lines)
    edges = draw(random, NUMBERS, NUMBERS)
    return case(random, edges, "g.csv", [", ".join(row) for row in (names, *edges)])


@dialect("compressed", "tabs in .csv", "commas in .tsv", "table in .txt", "table in .edges", "no suffix")
def misnamed(random: Random, tag: str) -> Case:
    edges = draw(random)
    rows, names = rows_of(edges), list(random.choice(USUAL))
    if random.random() < 0.4:
        names += more(random, rows)
    separator = {"tabs in .csv": "\t", "compressed": ","}.get(tag, random.choice(",,;|"))
    name = {"commas in .tsv": "g.tsv", "table in .txt": "g.txt", "table in .edges": "g.edges", "no suffix": "g"}
    given = case(random, edges, name.get(tag, "g.csv"), lines_of([names, *rows], separator))
    if tag != "compressed":
        return given
    ending, squeeze = random.choice(
        (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress), ("zst", pa.Codec("zstd").compress))
    )
    squeezed = squeeze(given.data)
    return Case(given.edges, f"g.csv.{ending}", bytes(squeezed), is_plain=True)


def said_text(random: Random, edges: Edges) -> dict[str, object]:
    """What somebody says whose labels are text, because an edge list or transactions hold integers otherwise."""
    has_text = any(not label.isdecimal() for edge in edges for label in edge)
    return {"label_type": "string"} if random.random() < (0.8 if has_text else 0.2) else {}


@dialect("blanks", "blanks, text", "snap", "header in an edge list", "edges between commas")
def edge_list(random: Random, tag: str) -> Case:
    kinds = ((*TEXT, "ids") if "text" in tag else NO_BLANK[:5] if tag.startswith("header") else NUMBERS,) * 2
    edges = draw(random, *kinds)
    options = (
        {"label_type": "string"} if "text" in tag else said_text(random, edges) if tag.startswith("header") else {}
    )
    rows = rows_of(edges)
    if random.random() < 0.4:
        for row in rows:
            row.append(str(random.randint(0, 5)))
    separator = "," if tag.endswith("commas") else random.choice((" ", "\t"))
    lines = [separator.join(row) for row in rows]
    if tag == "snap":
        return case(random, edges, "g.txt", [f"# Nodes: 7 Edges: {len(edges)}", "# From\tTo", *lines], is_plain=True)
    if tag.startswith("header"):
        lines.insert(0, separator.join((*random.choice(USUAL[:3]), "weight")[: len(rows[0])]))
    elif list(edges[0]) == [str(len({edge[k] for edge in edges})) for k in (0, 1)]:
        lines.reverse()  # such a first line may be the numbers of vertices
    name = random.choice(("g.edges", "g.edgelist", "g.el"))
    return case(random, edges, name, lines, options=options, is_plain=tag.startswith("blanks"))


@dialect("counts n m e", "counts n m", "counts e", "comments in an edge list")
def counts_first(random: Random, tag: str) -> Case:
    # n and m over labels from 1 may be the edge of the last vertices
    kinds = (("from 0",),) * 2 if tag == "counts n m" else (NO_BLANK[:5],) * 2
    edges = draw(random, *kinds)
    n, m = (len({edge[k] for edge in edges}) for k in (0, 1))
    counts = {"counts n m e": [n, m, len(edges)], "counts n m": [n, m], "counts e": [len(edges)]}.get(tag)
    separator = random.choice((" ", "\t"))
    lines = [separator.join(edge) for edge in edges]
    marks = [random.choice(("#", "%", "//")) + " " + random.choice(("a note", "3 4", "left right"))]
    first = marks if counts is None else [separator.join(map(str, counts))]
    name = random.choice(("g.el", "g.edges", "g.edgelist"))
    return case(random, edges, name, first + lines, False, options=said_text(random, edges))


@dialect("konect", "konect, counts", "matrix-market", "nan in matrix-market")
def with_a_head(random: Random, tag: str) -> Case:
    edges = draw(random, ("from 1",), ("from 1",))
    n, m = (max(int(edge[k]) for edge in edges) for k in (0, 1))
    if tag.startswith("konect"):
        head = ["% bip unweighted"] + [f"% {len(edges)} {n} {m}"] * tag.endswith("counts")
        end = random.choice(("", " 1", " 2 1200000000"))
        return case(random, edges, "out.g", head + [" ".join(e) + end for e in edges], False, is_plain=True)
    kind = "real" if tag.startswith("nan") else random.choice(("pattern", "integer", "real"))
    values = {"pattern": "", "integer": " 3", "real": " -1.5"}
    lines = [" ".join(edge) + values[kind] for edge in edges]
    if tag.startswith("nan"):
        lines[0] = " ".join(edges[0]) + " nan"
    if kind != "pattern" and (gap := next(((u, v) for u in range(1, n + 1) for v in range(1, m + 1)
                                          if (str(u), str(v)) not in edges), None)):  # fmt: skip
        lines.append(f"{gap[0]} {gap[1]} 0")
    head = [f"%%MatrixMarket matrix coordinate {kind} general", "% a note", f"{n} {m} {len(lines)}"]
    data = "\n".join([*head, *lines, ""]).encode()
    return Case(None if tag.startswith("nan") else frozenset(edges), "g.mtx", data, is_plain=tag == "matrix-market")


@dialect("double colons", "double colons, --delimiter", "networkx", "weights above a limit")
def odd_columns(random: Random, tag: str) -> Case:
    edges = draw(random, NUMBERS, NUMBERS) if tag != "networkx" else draw(random, NO_BLANK[:5], NO_BLANK[:5])
    if tag == "networkx":
        ends = random.choice(
            (("{}",), ("{'weight': 3}",), ("{}", "{'weight': 2}"), ("{'kind': 'a b', 'weight': 1.5}",))
        )
        lines = [f"{u} {v} {random.choice(ends)}" for u, v in edges]
        name, options = random.choice(("g.edgelist", "g.edges", "g.txt")), said_text(random, edges)
        return case(random, edges, name, lines, False, options=options)
    if tag.startswith("double"):
        rows = rows_of(edges)
        if random.random() < 0.7:
            more(random, rows)
        options = {"format": "csv", "delimiter": "::"} if tag.endswith("delimiter") else said_text(random, edges)
        name = random.choice(("g.dat", "g.csv", "g.txt", "g.edges"))
        return case(random, edges, name, ["::".join(row) for row in rows], False, options=options)
    rows = [[u, v, str(random.randint(1, 3))] for u, v in edges]
    rows += [[u, v, "0"] for u in {u for u, _ in edges} for v in {v for _, v in edges} if (u, v) not in edges]
    rows = [["user", "item", "weight"], *rows]
    return case(random, edges, "g.csv", lines_of(rows, ","), options={"min_weight": 1}, is_plain=True)
