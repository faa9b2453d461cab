"""The type of a command, and what all commands share: exit codes, and output as text or as JSON."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicliques.pipeline.cli.settings import listed
from bicliques.pipeline.process.logs import tell, write_if_possible
from bicliques.schemas.errors import ResourceError, in_one_line, on_terminal, spoken

if TYPE_CHECKING:
    from bicliques.schemas.facts import Outcome

COMPLETE, FAILURE, BAD_INPUT, LIMIT, RUNNING, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 130, 143


@dataclass(frozen=True)
class Command:
    """A command of the command line.

    Parameters
    ----------
    help : str
        One clause in small letters, which the list of commands shows.
    add_arguments : callable
        (parser of the command) -> None. The parser has ``--json`` already.
    run : callable
        (parsed arguments) -> exit code. Results go to stdout (`say`) and progress to stderr. Errors are raised as
        `schemas.errors.BicliqueError`.
    imports : tuple of str
        Modules of the package `pipeline` that `run` uses. They are imported before `run` is called.
    gets_ready : bool
        Whether start-up is more than imports. Then `run` says when it is over (`pipeline.process.startup`).
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    imports: tuple[str, ...] = ("api.runs", "cli.cards")
    gets_ready: bool = False


def code_of(outcome: Outcome) -> int:
    """Exit code of a run with this outcome."""
    codes = {"complete": COMPLETE, "max_results": LIMIT, "time_limit": LIMIT, "interrupted": INTERRUPTED}
    return codes.get(outcome, FAILURE)


def say(arguments: argparse.Namespace, machine: Callable[[], Any], people: Callable[[], str]) -> None:
    """Print a result as JSON if asked to, and as text otherwise. Both tell which options come from elsewhere."""
    settings = getattr(arguments, "settings", {})
    if arguments.json:
        told = {name: {"value": each.value, "from": each.place} for name, each in settings.items()}
        found = machine()
        text = json.dumps(found | {"settings": told} if told else found, indent=1, default=str)
    else:
        text = on_terminal(people() + (f"\noptions from elsewhere: {listed(settings)}" if settings else ""))
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python tries again as it ends
        raise ResourceError(f"the result cannot be printed ({error.strerror}); make room where stdout goes") from error


def in_file(path: Path, replaced: bool) -> str:
    """Where a file was written, and whether another one of this name is gone."""
    return f"in {path}{', in place of the file that was there' if replaced else ''}"


def progress(arguments: argparse.Namespace) -> bool:
    """Whether to show progress on stderr."""
    return not arguments.quiet and arguments.log is None


def complain(arguments: argparse.Namespace, sentence: str, event: str = "error", level: int = logging.ERROR) -> None:
    """Say on stderr why there is no result, or only a part of it. If there is a log, this is in its form."""
    if getattr(arguments, "log", None) == "json":
        tell(logging.getLogger("bicliques"), event, spoken(sentence), level)
    else:
        write_if_possible(sys.stderr, f"bicliques: {in_one_line(spoken(sentence))}\n")
