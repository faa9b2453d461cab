"""The commands of ``bicliques``: one module per group, each with a tuple of `Command`.

A group's module imports the pipeline inside its functions: the parser, and so ``--help``, does without it.
"""

from __future__ import annotations

from pipeline.cli import about, mining, results, watching
from pipeline.cli.command import Command

__all__ = ["COMMANDS"]

#: All commands, in the order in which they are shown.
COMMANDS: tuple[Command, ...] = (*mining.COMMANDS, *results.COMMANDS, *watching.COMMANDS, *about.COMMANDS)
