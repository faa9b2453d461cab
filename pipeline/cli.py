"""The command line: ``bicliques COMMAND``. Results go to stdout, progress and errors to stderr."""

from __future__ import annotations

import sys  # and nothing else: Ctrl-C during an import is to end in a sentence, too

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
        from pipeline import startup

        with startup.program(startup.process_start() if argv is None else None, _say_goodbye):
            from pipeline.commands.program import run

            return run(argv)
    except KeyboardInterrupt:
        _say_goodbye()
        return 130


def _say_goodbye() -> None:
    print("bicliques: stopped; nothing was written", file=sys.stderr)
