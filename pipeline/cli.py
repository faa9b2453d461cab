"""The command line: ``bicliques COMMAND``. Results go to stdout, progress and errors to stderr."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

from pipeline import api, cards, counting
from pipeline.arguments import HOW_TO_READ, WHAT_TO_FIND, parser
from pipeline.demo import demo_source, how_to_read
from pipeline.dry_run import dry_run
from pipeline.engines import kinds
from pipeline.readers import formats
from pipeline.results import Results
from schemas.errors import BicliqueError, InputError

__all__ = ["main"]

_COMPLETE, _FAILURE, _BAD_INPUT, _LIMIT, _INTERRUPTED = 0, 1, 2, 3, 130
_CODES = {"complete": _COMPLETE, "max_results": _LIMIT, "time_limit": _LIMIT, "interrupted": _INTERRUPTED}


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0 complete, 1 failure, 2 bad input, 3 limit reached, 130 stopped by Ctrl-C.
    """
    _log_to_stderr()
    words = parser()
    try:
        arguments = words.parse_args(argv)
        if arguments.command is None:
            words.print_help()
            return _COMPLETE
        return _COMMANDS[arguments.command](arguments)
    except InputError as error:
        print(f"bicliques: {error}", file=sys.stderr)
        return _BAD_INPUT
    except BicliqueError as error:
        print(f"bicliques: {error}", file=sys.stderr)
        return _FAILURE
    except KeyboardInterrupt:
        print(f"bicliques: stopped; {_what_is_left(arguments)}", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of stdout has gone, and there is nobody to tell
        return _FAILURE


def _mine(arguments: argparse.Namespace) -> int:
    options = _chosen(arguments, *HOW_TO_READ, *WHAT_TO_FIND, "count_only", "engine", "ids", "root_side", "order")
    if arguments.dry_run:
        found = dry_run(arguments.source, sample_time=arguments.sample_time, progress=_progress(arguments), **options)
        _print(arguments, found.to_json, lambda: cards.dry_run_card(found))
        return _COMPLETE
    if arguments.output is None:
        raise InputError("mine needs a folder to write into; give it with --output")
    options |= _chosen(arguments, "max_results", "time_limit", "workers", "scheduler", "slice_seconds")
    return _report(arguments, api.mine(arguments.source, arguments.output, progress=_progress(arguments), **options))


def _count(arguments: argparse.Namespace) -> int:
    options = _chosen(
        arguments,
        *HOW_TO_READ,
        *WHAT_TO_FIND,
        "fingerprint",
        "folder",
        "engine",
        "root_side",
        "order",
        "max_results",
        "time_limit",
        "workers",
        "scheduler",
        "slice_seconds",
    )
    count = counting.count(arguments.source, progress=_progress(arguments), **options)
    _print(arguments, count.to_json, lambda: cards.count_card(count))
    return _CODES[count.outcome]


def _resume(arguments: argparse.Namespace) -> int:
    options = _chosen(arguments, "max_results", "time_limit", "workers", "scheduler", "slice_seconds")
    return _report(arguments, api.resume(arguments.run, progress=_progress(arguments), **options))


def _verify(arguments: argparse.Namespace) -> int:
    found = api.verify(arguments.run, sample=arguments.sample, seed=arguments.seed, progress=_progress(arguments))
    _print(arguments, lambda: vars(found) | {"fingerprint": str(found.fingerprint)}, lambda: cards.verify_card(found))
    return _COMPLETE


def _show(arguments: argparse.Namespace) -> int:
    rows = api.open_run(arguments.run).top(arguments.top, arguments.by)
    _print(arguments, lambda: cards.top_json(rows), lambda: cards.top_table(rows))
    return _COMPLETE


def _formats(arguments: argparse.Namespace) -> int:
    def names() -> dict[str, Any]:
        engines = {kind.name: kind.why_not() for kind in kinds()}
        return {"formats": {f.name: list(f.patterns) for f in formats()}, "engines": engines}

    _print(arguments, names, cards.formats_table)
    return _COMPLETE


def _demo(arguments: argparse.Namespace) -> int:
    options = _chosen(arguments, "workers", "scheduler", "slice_seconds")
    results = api.mine(demo_source(), arguments.output, progress=_progress(arguments), **options)
    code = _report(arguments, results)
    if code == _COMPLETE and not arguments.json:
        print(f"\n{how_to_read(results)}")
    return code


def _what_is_left(arguments: argparse.Namespace) -> str:
    folder = getattr(arguments, "output", None) or getattr(arguments, "run", None)
    is_run = folder is not None and (folder / "options.json").exists()
    return f"go on with: bicliques resume {folder}" if is_run else "nothing was written"


def _log_to_stderr() -> None:
    """Our warnings, as sentences. What Dask has to say about a dead worker is said by the run itself."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("bicliques: %(message)s"))
    handler.addFilter(lambda record: record.name.partition(".")[0] in ("pipeline", "kernels"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def _report(arguments: argparse.Namespace, results: Results) -> int:
    _print(arguments, lambda: cards.run_json(results), lambda: cards.run_card(results))
    if not results.complete:
        print(f"bicliques: not complete; go on with: bicliques resume {results.path}", file=sys.stderr)
    return _CODES.get(results.outcome, _FAILURE)


def _print(arguments: argparse.Namespace, machine: Callable[[], Any], people: Callable[[], str]) -> None:
    print(json.dumps(machine(), indent=1, default=str) if arguments.json else people(), flush=True)


def _progress(arguments: argparse.Namespace) -> bool:
    return not arguments.quiet


def _chosen(arguments: argparse.Namespace, *names: str) -> dict[str, Any]:
    chosen = {name: getattr(arguments, name) for name in names}
    for side in ("left", "right"):
        column = chosen.get(side)
        if isinstance(column, str) and column.isdecimal():
            chosen[side] = int(column)
    return chosen


_COMMANDS = {
    "mine": _mine,
    "count": _count,
    "resume": _resume,
    "verify": _verify,
    "show": _show,
    "formats": _formats,
    "demo": _demo,
}
