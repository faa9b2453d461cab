"""The commands of ``bicliques``. Each group of commands has a module with a tuple of `Command`.

The modules import the pipeline inside functions, so that the parser, and with it ``--help``, does not import it.
"""

from __future__ import annotations

from pipeline.cli import about, comparing, explaining, exporting, generating, mining, publishing, results, watching
from pipeline.cli.command import Command

__all__ = ["COMMANDS"]

#: All commands, in the order in which they are shown.
COMMANDS: tuple[Command, ...] = (
    *mining.COMMANDS,
    *results.COMMANDS,
    *explaining.COMMANDS,
    *comparing.COMMANDS,
    *exporting.COMMANDS,
    *publishing.COMMANDS,
    *watching.COMMANDS,
    *generating.COMMANDS,
    *about.COMMANDS,
)
