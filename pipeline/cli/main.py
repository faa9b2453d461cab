"""The command line: ``bicliques COMMAND``. Results go to stdout, progress and errors to stderr."""

from __future__ import annotations

import os
import sys  # and nothing that takes time: Ctrl-C during an import is to end in a sentence, too

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : list of str or None
        Its words; None: those of the process, which has just been started for it.

    Returns
    -------
    int
        0 complete, 1 failure, 2 bad input, 3 limit reached, 4 running, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    try:
        _open_streams()
        from pipeline.process import startup

        with startup.program(startup.process_start() if argv is None else None, _say_goodbye):
            from pipeline.cli.program import run

            return run(argv)
    except KeyboardInterrupt:
        _say_goodbye()
        return 130


def _open_streams() -> None:
    """Let a stream that the caller has closed lead to nowhere, or a file of the run would be opened in its place."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def _say_goodbye() -> None:
    try:
        print("bicliques: stopped; nothing was written", file=sys.stderr)
    except OSError:  # the disk of the log is full, or its reader has gone
        return
