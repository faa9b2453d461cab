"""Draws small errors: operators, conditions, constants, arguments and calls, in every room by its size."""

import ast
import hashlib
import itertools
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

ROOMS = ("schemas", "kernels", "pipeline", "flows", "bicliques")
_OTHER = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "is": "is not", "is not": "is"},
    **{"in": "not in", "not in": "in", "+": "-", "-": "+", "*": "//", "//": "*", "/": "*", "%": "//", "**": "*"},
    **{"|": "&", "&": "|", "^": "|", "<<": ">>", ">>": "<<"},
}
_OPERATOR = re.compile(r"is\s+not|not\s+in|is|in|<<|>>|<=|>=|==|!=|\*\*|//|[<>+\-*/%|&^]")
#: Calls that give back their only argument, or the object they are a method of, in another form.
_FORMS = {"abs", "frozenset", "int", "list", "reversed", "set", "sorted", "tuple"}
#: Arguments that change no result: texts, and what only tells of errors in the code.
_FOR_PEOPLE = (None, "help", "metavar", "description", "strict", "stacklevel")
_METHODS = {"casefold", "copy", "lower", "resolve", "rstrip", "strip"}


@dataclass(frozen=True)
class Drawn:
    """A change of one place, as `tests.mutants.table.Mutant` is. `start` and `stop` are bytes of the file."""

    kind: str
    file: str
    line: int
    statement: int
    start: int
    stop: int
    new: str
    says: str
    tests: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of its own: two changes of one place differ in the digest."""
        digest = hashlib.sha256(self.new.encode()).hexdigest()[:6]
        return f"{self.file}:{self.line}:{self.start}-{digest} {shorten(self.says, 90)}"

    def applied(self, text: str) -> str:
        """The text of the file with the change."""
        data = text.encode()
        return (data[: self.start] + self.new.encode() + data[self.stop :]).decode()


def room_of(file: str) -> str:
    """The room of a file: a folder of `pipeline` or `kernels`, or a package."""
    parts = Path(file).parts
    return "/".join(parts[:2]) if parts[0] in ("pipeline", "kernels") and len(parts) > 2 else parts[0]


def places(file: str, text: str) -> list[Drawn]:
    """All that can be drawn in a file."""
    lines = [0]
    for line in text.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    data, found = text.encode(), []

    def at(node) -> tuple[int, int]:
        return lines[node.lineno - 1] + node.col_offset, lines[node.end_lineno - 1] + node.end_col_offset

    def source(node: ast.AST) -> str:
        start, stop = at(node)
        return data[start:stop].decode()

    for node, statement, is_inside in _walk(ast.parse(text)):
        for kind, first, last, change in _changes(node, source, is_inside):
            start, stop = (at(first)[0], at(last)[1]) if change[0] != "between" else (at(first)[1], at(last)[0])
            old, new = data[start:stop].decode(), change[1]
            if change[0] == "between":
                operator = _OPERATOR.search(old)
                if operator is None or (new := _OTHER.get(" ".join(operator[0].split()), "")) == "":
                    continue
                start, stop = start + len(old[: operator.start()].encode()), start + len(old[: operator.end()].encode())
                old, new = operator[0], new
            says = " ".join(f"{old} -> {new}".split())
            found.append(Drawn(kind, file, node.lineno, statement, start, stop, new, says))
    return found


def _means_another(drawn: Drawn, text: str) -> bool:
    try:
        return ast.dump(ast.parse(drawn.applied(text))) != ast.dump(ast.parse(text))
    except SyntaxError:
        return False


def _walk(tree: ast.Module) -> Iterator[tuple[Any, int, bool]]:
    """Nodes with the line of their statement, and whether they are in a function; not annotations, texts and errors."""
    waiting = [(tree, 1, False)]
    while waiting:
        node, statement, is_inside = waiting.pop()
        if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert)) or _is_for_types(node) or _is_for_people(node):
            continue
        statement = node.lineno if isinstance(node, ast.stmt) else statement
        yield node, statement, is_inside
        is_inside = is_inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list", "type_params"):
                some = value if isinstance(value, list) else [value]
                waiting += [(child, statement, is_inside) for child in some if isinstance(child, ast.AST)]


def _is_for_types(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in ("__all__", "__slots__")


def _is_for_people(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and node.arg is not None and node.arg in _FOR_PEOPLE


_Change = tuple[str, ast.AST, ast.AST, tuple[str, str]]


def _changes(node, source: Callable[[ast.AST], str], is_inside: bool) -> Iterator[_Change]:
    """(kind, first node, last node, what takes their place); ``between`` is the operator between the two."""

    def instead(kind: str, new: str, of: ast.AST = node) -> _Change:
        return kind, of, of, ("instead", new)

    match node:
        case ast.Compare():
            sides = [node.left, *node.comparators]
            yield from (("operator", a, b, ("between", "")) for a, b in itertools.pairwise(sides))
        case ast.BinOp() if not any(_is_text(side) for side in (node.left, node.right)):
            yield "operator", node.left, node.right, ("between", "")
        case ast.AugAssign():
            yield "operator", node.target, node.value, ("between", "")
        case ast.BoolOp():
            word = " and " if isinstance(node.op, ast.And) else " or "
            for k in range(len(node.values)):
                kept = [f"({source(value)})" for value in (*node.values[:k], *node.values[k + 1 :])]
                yield instead("condition", f"({word.join(kept)})")
        case ast.UnaryOp(op=ast.Not()):
            yield instead("condition", f"({source(node.operand)})")
        case ast.If() | ast.IfExp():
            yield instead("condition", "True", node.test)
            yield instead("condition", "False", node.test)
        case ast.While() if not isinstance(node.test, ast.Constant):
            yield instead("condition", "False", node.test)
        case ast.Continue():
            yield instead("condition", "break")
        case ast.Constant(value=bool()):
            yield instead("constant", str(not node.value))
        case ast.Constant(value=int() | float()) if is_inside or abs(node.value) <= 2:  # others are often tuned
            yield instead("constant", str(node.value + 1))
            if isinstance(node.value, int):
                yield instead("constant", f"({node.value - 1})")
        case ast.Expr(value=ast.Call() | ast.Await()) if "logger." not in source(node):
            yield instead("call", "pass")
        case ast.Call():
            yield from (instead("argument" if "(" in new else "call", new) for new in _calls(node, source))
        case _:
            pass


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _calls(node: ast.Call, source: Callable[[ast.AST], str]) -> Iterator[str]:
    """The same call with an argument fewer, or two that change places; or what it is called for or of."""
    function, values = source(node.func), [source(argument) for argument in node.args]
    words = [source(keyword) for keyword in node.keywords]
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and not values + words:
        yield source(node.func.value)
    if function in _FORMS and len(values) == 1 and not words:
        yield f"({values[0]})"
    if function in ("min", "max"):
        yield f"{'max' if function == 'min' else 'min'}({', '.join(values + words)})"
    for k, keyword in enumerate(node.keywords):
        if keyword.arg not in _FOR_PEOPLE:
            yield f"{function}({', '.join(values + words[:k] + words[k + 1 :])})"
    for k in range(len(values) - 1 if function not in ("min", "max", "isinstance") else 0):
        if not any(isinstance(argument, ast.Starred) for argument in node.args[k : k + 2]):
            yield f"{function}({', '.join([*values[:k], values[k + 1], values[k], *values[k + 2 :], *words])})"


def draw(texts: dict[str, str], n: int, seed: int, lines: dict[str, set[int]] | None = None) -> list[Drawn]:
    """Draw places without repetition, a room by its size, and in it each kind as often as the others.

    Parameters
    ----------
    texts : dict
        (file) -> its text.
    n, seed : int
    lines : dict or None
        (file) -> the lines to draw in, in whole files if None.
    """
    rooms = defaultdict(lambda: defaultdict(list))
    sizes = defaultdict(int)
    for file, text in sorted(texts.items()):
        for place in places(file, text):
            if lines is None or place.line in lines.get(file, ()):
                rooms[room_of(file)][place.kind].append(place)
                sizes[room_of(file)] += 1
    drawn = []
    for room, kinds in sorted(rooms.items()):
        chance = random.Random(f"{seed} {room}")
        for kind in sorted(kinds):
            chance.shuffle(kinds[kind])
        share = min(max(round(n * sizes[room] / sum(sizes.values())), 1), sizes[room])
        while share and any(kinds.values()):
            kind = chance.choice([kind for kind in sorted(kinds) if kinds[kind]])
            one = kinds[kind].pop()
            if _means_another(one, texts[one.file]):
                drawn.append(one)
                share -= 1
    random.Random(seed).shuffle(drawn)  # so that the first ones are of all rooms, if there is no time for all
    return drawn
