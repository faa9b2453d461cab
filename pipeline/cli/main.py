"""The command line: ``bicliques COMMAND``. Results go to stdout, progress and errors to stderr."""

from __future__ import annotations

import os
import sys  # and no module that the interpreter has not loaded already, because `main` is the first to handle Ctrl-C


def program() -> None:
    """Run the command of this process, and end the process.

    The interpreter would need longer to free what libraries hold. That is of no use: a command has
    closed what it writes, and its workers have ended.
    """
    code = _without_ctrl_c()
    import atexit
    from contextlib import suppress

    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # what cannot be said does not change how the command ended
        sys.stderr.flush()
    try:
        if sys.stdout is not None:  # as where the caller has closed it
            sys.stdout.flush()
    except (OSError, ValueError):  # the result has no reader any more, or its disk is full
        code = code or 1
    os._exit(code)


def _without_ctrl_c() -> int:
    """Run the command of this process. From then on Ctrl-C does nothing, because all that is left takes no time."""
    code = 130
    try:
        code = main()
        _ignore_ctrl_c()
    except KeyboardInterrupt:  # between the end of the command and the line above
        _ignore_ctrl_c()
    return code


def _ignore_ctrl_c() -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : list of str or None
        The words behind ``bicliques``. None takes those of the process, which has just been started for the command.

    Returns
    -------
    int
        0 complete, 1 failure, 2 bad input, 3 limit reached, 4 running, 130 stopped by Ctrl-C, 143 by SIGTERM.
    """
    try:
        _open_streams()
        from bicliques.pipeline.process import startup

        with startup.program(startup.process_start() if argv is None else None, _say_goodbye):
            from bicliques.pipeline.cli.program import run
            from bicliques.schemas.errors import speaking

            with speaking("shell"):
                return run(argv)
    except ModuleNotFoundError as error:
        if error.name != "fcntl":
            raise
        print(f"bicliques: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        _say_goodbye()
        return 130


def _open_streams() -> None:
    """Open a null device for each standard stream that is closed. Otherwise a file of the run would take its number."""
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
    except OSError:  # the disk of the log is full, or its reader has ended
        return
