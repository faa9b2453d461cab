"""The commands ``formats``, ``demo`` and ``generate``, which tell people what the program can do, or let them try."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicliques.kernels.engines import kinds
from bicliques.pipeline.cli.command import COMPLETE, Command, progress, say
from bicliques.pipeline.cli.mining import say_results, so_far
from bicliques.pipeline.cli.options import add_options, add_quiet, chosen
from bicliques.pipeline.run.progress import number, size
from bicliques.schemas.errors import InputError, as_word, on_terminal
from bicliques.schemas.values import local_path

if TYPE_CHECKING:
    from bicliques.pipeline.results.results import Results
    from bicliques.pipeline.synthetic.generating import Estimate, Generated

#: Options that are keywords of `bicliques.generate`.
_OPTIONS = (
    *("n_left", "n_right", "edges", "left_exponent", "right_exponent", "max_left_degree", "max_right_degree"),
    *("plant", "noise", "labels", "seed", "part_edges", "threads"),
)


def _add_generate(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    where = "folder of the graph: empty or new; needed but for --dry-run"
    add("-o", "--output", metavar="GRAPH", type=local_path, help=where)
    add("--n-left", type=int, required=True, metavar="N", help="left vertices")
    add("--n-right", type=int, required=True, metavar="N", help="right vertices")
    add("--edges", type=int, required=True, metavar="N", help="edges, exactly, with those of planted bicliques")
    for side in ("left", "right"):
        add(f"--{side}-exponent", metavar="X", help=f"exponent of the {side} degrees (default: 2.5)")
    for side in ("left", "right"):
        most = f"largest {side} degree beside planted edges (default: root of --edges, or twice the mean)"
        add(f"--max-{side}-degree", type=int, metavar="N", help=most)
    planted = "a biclique of L left and R right vertices; may be repeated, and no two share a vertex (default: none)"
    add("--plant", action="append", default=[], metavar="LxR", help=planted)
    add("--noise", default="0", metavar="X", help="share of planted edges that are removed, 0 to 1 (default: 0)")
    kinds = "integers, or text of 20 bytes (default: integers)"
    add("--labels", choices=("integers", "text"), default="integers", help=kinds)
    add("--seed", type=int, default=0, metavar="N", help="equal seeds give equal graphs anywhere (default: 0)")
    add("--part-edges", type=int, default=1 << 22, metavar="N", help="edges of a file, about (default: 4194304)")
    add("--threads", type=int, metavar="N", help="parts that are drawn at a time (default: one per core)")
    add("--overwrite", action="store_true", help="replace a generated graph (default: keep it)")
    add("--dry-run", action="store_true", help="say what it would take, and write nothing (default: write)")
    add_quiet(command)


def _generate(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.synthetic.generating import estimate, generate

    options: dict[str, Any] = {name: getattr(arguments, name) for name in _OPTIONS}
    if arguments.dry_run:
        expected = estimate(**options)
        say(arguments, lambda: vars(expected), lambda: estimate_card(expected))
        return COMPLETE
    if arguments.output is None:
        raise InputError("the graph needs a folder; name it with --output, or see what it takes with --dry-run")
    found = generate(arguments.output, overwrite=arguments.overwrite, progress=progress(arguments), **options)
    say(arguments, lambda: {"path": str(found.path)} | found.truth, lambda: graph_card(found))
    return COMPLETE


def estimate_card(expected: Estimate) -> str:
    """What generating a graph would take."""
    return (
        f"would draw {number(expected.edges, 'edge')} into {number(expected.parts, 'file')}\n"
        f"disk: about {size(expected.disk_bytes)}\nmemory: about {size(expected.memory_bytes)}\n"
        f"time: about {expected.seconds:.0f} s with {number(expected.threads, 'thread')}"
    )


def graph_card(found: Generated) -> str:
    """The numbers of a generated graph, and how to go on."""
    lines = [f"{number(found.edges, 'edge')} in {number(len(found.truth['parts']), 'file')}"]
    for side in ("left", "right"):
        n, with_edges, largest = (found.truth[side][key] for key in ("vertices", "with_edges", "largest_degree"))
        vertices = number(n, "vertex", "vertices")
        lines.append(f"{side}: {vertices}, {with_edges:,} of them with an edge, largest degree {largest:,}")
    for each in found.truth["planted"]:
        lines.append(f"planted: {each['n_left']} x {each['n_right']}, {number(each['edges'], 'edge')}")
    lines.append(f"fingerprint: {found.fingerprint}")
    return "\n".join([*lines, f"mine it with: bicliques mine {as_word(str(found.path))} --output OUT"])


_GRAPH = Path("examples/debian12_package_tag.parquet")
_PACKAGE = Path(__file__).parents[2]


def demo_source() -> Path:
    """The file of the packages of Debian 12 and their tags."""
    places = (_PACKAGE / _GRAPH, _PACKAGE.parent / _GRAPH)  # in a wheel, and in the repository
    for path in places:
        if path.exists():
            return path
    raise InputError(f"{places[0]} is not there; install the project again")


def how_to_read(results: Results) -> str:
    """The paths of the files, and three lines of pandas that read them."""
    files = "\n".join(f"  {file}" for file in results.files)
    return (
        f"The Parquet files:\n{files}\n\nRead them with pandas:\n\n"
        f"import pandas as pd\n"
        f'bicliques = pd.read_parquet("{results.path / "bicliques"}", columns=["n_left", "n_right", "left", "right"])\n'
        f'print(bicliques.sort_values("n_left").tail())'
    )


def _add_formats(command: argparse.ArgumentParser) -> None:
    pass  # the command has no options


def _add_demo(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        type=local_path,
        default=Path("demo-output"),
        help="folder of the run: empty or new (default: demo-output)",
    )
    add_options(command, "demo")


def _formats(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.cli import cards
    from bicliques.pipeline.ingest.readers import formats

    def names() -> dict[str, Any]:
        engines = {kind.name: kind.why_not() for kind in kinds()}
        return {"formats": {f.name: list(f.patterns) for f in formats()}, "engines": engines}

    say(arguments, names, cards.formats_table)
    return COMPLETE


def _demo(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.api import runs

    options = chosen(arguments, "demo")
    results = so_far(partial(runs.mine, demo_source(), arguments.output, progress=progress(arguments), **options))
    code = say_results(arguments, results)
    if code == COMPLETE and not arguments.json:
        print(on_terminal(f"\n{how_to_read(results)}"))
    return code


COMMANDS = (
    Command(
        name="generate",
        help="make a random graph with planted bicliques, to size a machine or to test",
        add_arguments=_add_generate,
        run=_generate,
        imports=("synthetic.generating",),
    ),
    Command(
        name="formats",
        help="list the formats that can be read and the engines that can run",
        add_arguments=_add_formats,
        run=_formats,
        imports=("cli.cards", "ingest.readers"),
    ),
    Command(
        name="demo",
        help="mine the graph that comes with the project and show how to read the result",
        add_arguments=_add_demo,
        run=_demo,
        imports=("api.runs", "cli.cards"),
        gets_ready=True,
    ),
)
