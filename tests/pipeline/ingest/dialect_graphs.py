"""Small random graphs with labels of many kinds, the number of their maximal bicliques, and the cases made of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

Edges = list[tuple[str, str]]

#: Kinds of labels: what each makes of a number from 0.
WORDS = ("tea", "milk", "jam", "bread", "honey", "rice", "salt", "oats")
_KINDS: dict[str, Callable[[int], str]] = {
    "from 0": str,
    "from 1": lambda k: str(k + 1),
    "ids": lambda k: str(1000 + 37 * k),
    "words": lambda k: WORDS[k],
    "codes": lambda k: f"u{k}",
    "blanks": lambda k: f"{WORDS[k]} of day {k}",
    "unicode": lambda k: f"{'éßж日'[k % 4]}{WORDS[k]}",
    "zeros": lambda k: f"{k + 7:04d}",
    "negative": lambda k: str(k - 3),
    "decimals": lambda k: f"{k}.5",
    "missing": lambda k: ("NA", "nan", "null", "None", "N/A", "none", "-", "?")[k],
    "marks": lambda k: f'{WORDS[k]}, {k}" wide; |{k}',
    "hashes": lambda k: f"#{k}",
    "days": lambda k: f"2024-01-{k + 1:02d}",
    "mixed": lambda k: str(k) if k % 2 else f"x{k}",
}
NUMBERS = ("from 0", "from 1", "ids")
PLAIN = (*NUMBERS, "words", "codes", "unicode")
NO_BLANK = (*NUMBERS, "words", "codes", "unicode", "zeros", "negative", "decimals", "days")


@dataclass(frozen=True)
class Case:
    """An input, and what a person means by it.

    Parameters
    ----------
    edges : frozenset of (str, str) or None
        The labels of each edge. None: whatever is read would be wrong.
    name, data : str, bytes
        The file.
    source : object
        Instead of a file: an object in memory.
    options : dict
        What a user says, mostly nothing.
    is_plain : bool
        It must be read. Others may be refused.
    left_is_counted : bool
        The left vertices have no labels, so only their neighbourhoods are compared.
    is_only_counted : bool
        Only the number of maximal bicliques can be compared, because the labels may be read in two ways.
    """

    edges: frozenset[tuple[str, str]] | None
    name: str = ""
    data: bytes = b""
    source: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    is_plain: bool = False
    left_is_counted: bool = False
    is_only_counted: bool = False
    tag: str = ""

    def put(self, folder: Path) -> Any:
        """The source: the object, or the file in `folder`."""
        if self.source is not None:
            return self.source
        (folder / self.name).write_bytes(self.data)
        return folder / self.name

    def is_right(self, read: Iterable[tuple[str, str]]) -> bool:
        """Whether these edges are the ones that are meant."""
        if self.edges is None:
            return False
        if self.is_only_counted:
            return number_of_bicliques(read) == number_of_bicliques(self.edges)
        if self.left_is_counted:
            return _neighbourhoods(read) == _neighbourhoods(self.edges)
        return frozenset(read) == self.edges


def neighbours(edges: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The right vertices of each left one, in order."""
    found: dict[str, list[str]] = {}
    for left, right in edges:
        if right not in found.setdefault(left, []):
            found[left].append(right)
    return found


def _neighbourhoods(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    return sorted(sorted(own) for own in neighbours(edges).values())


def number_of_bicliques(edges: Iterable[tuple[str, str]]) -> int:
    """Maximal bicliques: the intersections of neighbourhoods that are not empty."""
    closed: set[frozenset[str]] = set()
    for own in neighbours(edges).values():
        closed |= {frozenset(own), *(frozenset(own) & other for other in closed)}
    return len(closed - {frozenset()})


#: Tag -> what draws a case of it.
DIALECTS: dict[str, Callable[[Random], Case]] = {}


def dialect(*tags: str) -> Callable[[Callable[[Random, str], Case]], Callable[[Random, str], Case]]:
    """Register a writer under tags, of which it gets the one that is asked for."""

    def register(write: Callable[[Random, str], Case]) -> Callable[[Random, str], Case]:
        for tag in tags:
            assert tag not in DIALECTS, tag
            DIALECTS[tag] = lambda random, tag=tag: write(random, tag)
        return write

    return register


def case_of(seed: int, k: int) -> Case:
    """Case number `k`. Every dialect has its turn."""
    tag = list(DIALECTS)[k % len(DIALECTS)]
    case = DIALECTS[tag](Random(f"{seed} {k}"))
    return Case(**{**vars(case), "tag": tag})


def draw(
    random: Random, left: tuple[str, ...] = PLAIN, right: tuple[str, ...] = PLAIN, least: int = 3, most: int = 6
) -> Edges:
    """Edges in some order, each once. Every side has `least` to `most` vertices, and some left vertex has two edges."""
    names = [_KINDS[random.choice(kinds)] for kinds in (left, right)]
    while True:
        sizes, density = [random.randint(least, most) for _ in names], random.uniform(0.25, 0.8)
        pairs = [(u, v) for u in range(sizes[0]) for v in range(sizes[1]) if random.random() < density]
        n_left, n_right = (len({pair[k] for pair in pairs}) for k in (0, 1))
        if [n_left, n_right] == sizes and n_left < len(pairs) < n_left * n_right:
            break
    if random.random() < 0.5:
        random.shuffle(pairs)
    return [(names[0](u), names[1](v)) for u, v in pairs]
