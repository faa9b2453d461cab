"""What a command is, and what all of them do: exit codes, printing for people or for machines."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.process.logs import tell, write_if_possible
from schemas.errors import ResourceError

if TYPE_CHECKING:
    from schemas.manifest import Outcome

__all__ = [
    "BAD_INPUT",
    "COMPLETE",
    "FAILURE",
    "INTERRUPTED",
    "LIMIT",
    "RUNNING",
    "TERMINATED",
    "Command",
    "code_of",
    "complain",
    "progress",
    "say",
]

COMPLETE, FAILURE, BAD_INPUT, LIMIT, RUNNING, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 130, 143


@dataclass(frozen=True)
class Command:
    """A word of the command line.

    Parameters
    ----------
    name : str
    help : str
        One clause, in small letters; the list of commands shows it.
    add_arguments : callable
        (parser of the command) -> None; ``--json`` is there already.
    run : callable
        (parsed arguments) -> exit code. Results go to stdout (`say`), progress to stderr, and what is wrong is
        raised as a `schemas.errors.BicliqueError`.
    imports : tuple of str
        Modules of the package `pipeline` that `run` uses, imported before it is called.
    gets_ready : bool
        Whether there is more to get ready than imports: `run` says when that is over (`pipeline.process.startup`).
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    imports: tuple[str, ...] = ("api.runs", "cli.cards")
    gets_ready: bool = False


def code_of(outcome: Outcome) -> int:
    """Exit code of a run that ended like this."""
    codes = {"complete": COMPLETE, "max_results": LIMIT, "time_limit": LIMIT, "interrupted": INTERRUPTED}
    return codes.get(outcome, FAILURE)


def say(arguments: argparse.Namespace, machine: Callable[[], Any], people: Callable[[], str]) -> None:
    """Print a result: as JSON if asked to, else as text."""
    text = json.dumps(machine(), indent=1, default=str) if arguments.json else people()
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries again as it ends
        raise ResourceError(f"the result cannot be printed ({error.strerror}); make room where stdout goes") from error


def progress(arguments: argparse.Namespace) -> bool:
    """Whether to show progress on stderr."""
    return not arguments.quiet and arguments.log is None


def complain(arguments: argparse.Namespace, sentence: str, event: str = "error", level: int = logging.ERROR) -> None:
    """Say on stderr why there is no result, or not all of it; in the form of the log, if there is to be one."""
    if getattr(arguments, "log", None) == "json":
        tell(logging.getLogger("pipeline"), event, sentence, level)
    else:
        write_if_possible(sys.stderr, f"bicliques: {sentence}\n")
