"""Commands about the results of a run, and about one biclique of it (``explain`` and ``plot``)."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from bicliques.pipeline.cli.command import COMPLETE, Command, in_file, progress, say
from bicliques.pipeline.cli.options import Gather, add_quiet, add_run, natural, pair
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.search import MEASURES
from bicliques.schemas.values import local_path

if TYPE_CHECKING:
    import pyarrow as pa

    from bicliques.pipeline.results.results import Results


def _add_verify(command: argparse.ArgumentParser) -> None:
    add_run(command)
    command.add_argument(
        "--bound-time",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="of the largest: most seconds for a second search, which counts that nothing is larger (default: 60)",
    )
    command.add_argument(
        "--complete",
        nargs="?",
        const=(1, 1),
        type=pair,
        metavar="PxQ",
        help="look for missing rows, too: draw bicliques of P x Q from the input, and see that all maximal ones around "
        "them are rows (without PxQ: 1x1, which are edges and find most; default: do not look)",
    )
    command.add_argument(
        "--sample",
        type=natural,
        default=1000,
        metavar="ROWS",
        help="rows to compare with the input, and bicliques to draw (default: 1000)",
    )
    command.add_argument("--seed", type=natural, default=0, metavar="N", help="of the choice of rows (default: 0)")
    add_quiet(command)


def _add_show(command: argparse.ArgumentParser) -> None:
    add_run(command)
    _add_rows(command, "-n", "--top")
    command.add_argument(
        "--by",
        choices=(*MEASURES, "surprise"),
        default="edges",
        help="number of edges, of vertices, size of the smaller side, left side, right side, or how unlikely it is by "
        "chance, in bits (default: edges)",
    )
    command.add_argument(
        "--distinct",
        type=float,
        metavar="SHARE",
        help="leave out what has more than this share of its edges in one that is listed before it, as 0.8 "
        "(default: leave out nothing)",
    )
    command.add_argument(
        "--community",
        nargs="?",
        const=True,
        metavar="ID",
        help="show the community of each, or only those of the one with this id; see communities (default: neither)",
    )
    for side in ("left", "right"):
        command.add_argument(
            f"--containing-{side}",
            action=Gather,
            nargs="+",
            default=(),
            metavar="LABEL",
            help=f"only bicliques that have all of these {side} members (default: any)",
        )


def _add_cover(command: argparse.ArgumentParser) -> None:
    add_run(command)
    _add_rows(command, "-n", "--top")
    command.add_argument(
        "-o",
        "--output",
        type=local_path,
        metavar="FILE",
        help="also write the table to this Parquet file, or replace it",
    )


def _add_communities(command: argparse.ArgumentParser) -> None:
    add_run(command)
    command.add_argument("--at", type=pair, required=True, metavar="AxB", help="how many members to share, as 3x3")


def _add_sample(command: argparse.ArgumentParser) -> None:
    add_run(command)
    _add_rows(command, "-n")
    command.add_argument("--seed", type=natural, default=0, metavar="N", help="of the choice (default: 0)")


def _add_rows(command: argparse.ArgumentParser, *names: str) -> None:
    command.add_argument(*names, dest="n", type=int, default=20, metavar="N", help="how many (default: 20)")
    command.add_argument(
        "--full", action="store_true", help="show all members, in long lines (default: as many as fit the terminal)"
    )
    command.add_argument("--ids", action="store_true", help="show ids, too, by which explain asks for a biclique")


def _verify(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.cli import cards
    from bicliques.pipeline.proof.verification import verify_run

    how = {name: getattr(arguments, name) for name in ("sample", "seed", "bound_time", "complete")}
    found = verify_run(arguments.run, progress=progress(arguments), **how)
    say(arguments, lambda: vars(found) | {"fingerprint": str(found.fingerprint)}, lambda: cards.verify_card(found))
    return COMPLETE


def _say_rows(arguments: argparse.Namespace, rows: pa.Table) -> int:
    from bicliques.pipeline.results import listing

    width = None if arguments.full else listing.width()
    say(arguments, rows.to_pylist, lambda: listing.top_table(rows, width, arguments.ids))
    return COMPLETE


def _show(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.results.results import open_results

    names = ("n", "by", "distinct", "community", "containing_left", "containing_right")
    rows = open_results(arguments.run).top(**{name: getattr(arguments, name) for name in names})
    return _say_rows(arguments, rows)


def _cover(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.results.interesting import refuse_target, write_table
    from bicliques.pipeline.results.results import open_results

    if arguments.output is not None:
        refuse_target(arguments.output)
    rows = open_results(arguments.run).cover(arguments.n)
    if arguments.output is not None:
        write_table(rows, arguments.output)
    return _say_rows(arguments, rows)


def _communities(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.cli import cards
    from bicliques.pipeline.results.results import open_results

    found = open_results(arguments.run).communities(*arguments.at)
    say(arguments, lambda: vars(found) | {"fingerprint": str(found.fingerprint)}, lambda: cards.communities_card(found))
    return COMPLETE


def _sample(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.results.results import open_results

    rows = open_results(arguments.run).sample(arguments.n, arguments.seed)
    return _say_rows(arguments, rows)


def _sizes(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.cli import cards
    from bicliques.pipeline.results.results import open_results

    sizes = open_results(arguments.run).sizes()
    say(arguments, sizes.to_json, lambda: cards.size_table(sizes))
    return COMPLETE


def _report(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.api import steps
    from bicliques.pipeline.run.store import store_at

    page = steps.report(arguments.run, progress(arguments))
    shown = store_at(page.parent).shown(page.name)
    say(arguments, lambda: {"report": shown}, lambda: f"report: {shown}")
    return COMPLETE


def _add_report(command: argparse.ArgumentParser) -> None:
    add_run(command)
    add_quiet(command)


def _add_which(command: argparse.ArgumentParser, n: int, of_what: str) -> None:
    add_run(command)
    command.add_argument(
        "--id", metavar="ID", help="id of the biclique, as show --ids prints it (default: the largest by edges)"
    )
    command.add_argument(
        "--missing",
        type=natural,
        default=1,
        metavar="N",
        help="a vertex nearly belongs if it misses at most so many members of the other side (default: 1)",
    )
    command.add_argument("-n", type=int, default=n, metavar="N", help=f"most {of_what} (default: {n})")


def _add_explain(command: argparse.ArgumentParser) -> None:
    _add_which(command, 20, "members, vertices that nearly belong, and overlapping bicliques")
    command.add_argument(
        "--full", action="store_true", help="show all members, in long lines (default: as many as fit the terminal)"
    )


def _add_plot(command: argparse.ArgumentParser) -> None:
    _add_which(command, 8, "vertices that nearly belong, and overlapping bicliques")
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=local_path,
        help="a .svg file to write, or to replace; or a .png file, with Matplotlib (default: SVG on standard output)",
    )


def _chosen(arguments: argparse.Namespace, results: Results) -> int | str:
    """The id of the biclique that is asked for."""
    if arguments.id is not None:
        return str(arguments.id)
    largest: list[int] = results.top(1)["id"].to_pylist()
    if not largest:
        raise InputError(f"{results.path} has no biclique to {arguments.command}")
    return largest[0]


def _explain(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.results.listing import width
    from bicliques.pipeline.results.results import open_results

    results = open_results(arguments.run)
    found = results.explain(_chosen(arguments, results), arguments.missing, arguments.n)
    say(arguments, found.to_json, lambda: found.text(None if arguments.full else width()))
    return COMPLETE


def _plot(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.results.picture import picture_file
    from bicliques.pipeline.results.results import open_results

    if arguments.output is not None:
        picture_file(arguments.output)
    elif arguments.json:
        raise InputError("the picture goes to standard output, where --json prints, too; name a file with --output")
    results = open_results(arguments.run)
    id = _chosen(arguments, results)
    picture = results.plot(id, arguments.missing, arguments.n)
    if arguments.output is not None:
        replaced = os.path.lexists(arguments.output)
        file = picture.save(arguments.output)
        found = {"file": str(file), "id": str(id), "replaced": replaced}
        say(arguments, lambda: found, lambda: f"biclique {id} {in_file(file, replaced)}")
        return COMPLETE
    try:
        sys.stdout.buffer.write(f"{picture.svg}\n".encode())  # SVG is UTF-8, whatever the terminal is
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ResourceError(f"the picture cannot be written ({error.strerror}); make room where it goes") from error
    return COMPLETE


COMMANDS = (
    Command(
        name="verify",
        help="check the results of a complete run again, from its files",
        add_arguments=_add_verify,
        run=_verify,
        imports=("proof.verification", "cli.cards"),
    ),
    Command("show", "print the largest bicliques of a run", _add_show, _show, ("results.results", "results.listing")),
    Command(
        name="cover",
        help="print the bicliques of a run that together have most edges",
        add_arguments=_add_cover,
        run=_cover,
        imports=("results.results", "results.interesting", "results.listing"),
    ),
    Command(
        name="communities",
        help="find communities of bicliques that share members, and write them to OUT/communities",
        add_arguments=_add_communities,
        run=_communities,
        imports=("results.results", "results.communities", "cli.cards"),
    ),
    Command(
        name="sample",
        help="print bicliques of a run chosen at random, each as likely as the others",
        add_arguments=_add_sample,
        run=_sample,
        imports=("results.results", "results.listing"),
    ),
    Command(
        name="sizes",
        help="print how many bicliques of a run there are of each size",
        add_arguments=add_run,
        run=_sizes,
        imports=("results.results", "cli.cards"),
    ),
    Command(
        name="report",
        help="write OUT/report.html again: the run as one page with pictures",
        add_arguments=_add_report,
        run=_report,
        imports=("api.steps", "results.report.make"),
    ),
    Command(
        name="explain",
        help="explain a biclique of a run: its members, who nearly belongs, and what overlaps it",
        add_arguments=_add_explain,
        run=_explain,
        imports=("results.results", "results.explaining", "results.listing"),
    ),
    Command(
        name="plot",
        help="draw a biclique of a run as SVG: its edges, who nearly belongs, and what overlaps it",
        add_arguments=_add_plot,
        run=_plot,
        imports=("results.results", "results.explaining", "results.picture"),
    ),
)
