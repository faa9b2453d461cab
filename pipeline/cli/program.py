"""Parses the command line, runs the command, and turns exceptions into one sentence and an exit code."""

from __future__ import annotations

import argparse
import difflib
import io
import logging
import sys
from importlib import import_module

from bicliques.kernels import engines
from bicliques.pipeline.cli import settings
from bicliques.pipeline.cli.command import BAD_INPUT, COMPLETE, FAILURE, INTERRUPTED, TERMINATED, complain
from bicliques.pipeline.cli.commands import COMMANDS, parser, parsers
from bicliques.pipeline.process import startup
from bicliques.pipeline.process.interrupts import Terminated, terminable
from bicliques.pipeline.process.logs import log_to_stderr
from bicliques.pipeline.process.startup import leave_out
from bicliques.pipeline.run.names import store_url
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.schemas.errors import BicliqueError, InputError


def run(argv: list[str] | None) -> int:
    """Run one command. Returns its exit code. See `pipeline.cli.main.main`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # characters that a terminal cannot show are no error
            stream.reconfigure(errors="backslashreplace")
    arguments = argparse.Namespace()
    try:
        _parse(argv, arguments)
        startup.on_ctrl_c(lambda: _stopped(arguments))
        log_to_stderr(getattr(arguments, "log", None))
        if arguments.command is None:
            parser().print_help()
            return COMPLETE
        command = next(command for command in COMMANDS if command.name == arguments.command)
        _fill(arguments)
        if command.gets_ready:
            _wake_devices(arguments, argv is None)  # first of all, because it goes on beside all that follows
        if argv is None:
            leave_out()
        for module in command.imports:
            import_module(f"bicliques.pipeline.{module}")
        with terminable(TERMINATED):
            if not command.gets_ready:
                startup.over()
            return command.run(arguments)
    except SystemExit:  # argparse has printed the text of --help or --version
        return COMPLETE
    except InputError as error:
        complain(arguments, settings.naming(arguments, error))
        return BAD_INPUT
    except BicliqueError as error:
        complain(arguments, str(error))
        return FAILURE
    except KeyboardInterrupt:
        _stopped(arguments)
        return INTERRUPTED
    except Terminated:
        _stopped(arguments, "ended by SIGTERM")
        return TERMINATED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of stdout has ended, so nothing can be said
        return FAILURE
    except Exception as error:
        sentence = _last_words(error)
        if sentence is None:
            raise
        complain(arguments, sentence)
        return FAILURE


def _fill(arguments: argparse.Namespace) -> None:
    """Complete the options from the environment and the file. Say on stderr which come from there."""
    calls = settings.calls_of(arguments.command)
    if not calls:
        return
    settings.fill(arguments, "dry_run" if getattr(arguments, "dry_run", False) else calls[0])
    if arguments.settings and not getattr(arguments, "quiet", False):
        complain(arguments, settings.listed(arguments.settings), "settings", logging.INFO)


def _wake_devices(arguments: argparse.Namespace, is_alone: bool) -> None:
    """Let the first device start while modules are imported, if this process may use it.

    A command never uses another one. If it is not alone in its process (`is_alone`), others may.
    """
    if any(getattr(arguments, option, None) for option in ("scheduler", "rmm_pool", "spill")):
        return
    if (getattr(arguments, "devices", None) or (0,))[0] != 0:
        return
    for kind in engines.kinds():
        if getattr(arguments, "engine", None) in (engines.AUTO, kind.name):
            kind.platform.wake(is_alone)


def _last_words(error: Exception) -> str | None:
    """A sentence for an error of the file system or of pyarrow. None for any other error."""
    arrow = getattr(sys.modules.get("pyarrow"), "ArrowException", ())
    if isinstance(error, OSError):
        reason = error.strerror or error
        return (
            f"{error.filename or 'a file'} cannot be used ({reason}); see that it is there, and may be read and written"
        )
    if isinstance(error, arrow):
        reason = str(error).partition("\n")[0].rstrip(".")
        return f"a file is damaged or too large ({reason}); copy the input again, or mend a run with: bicliques resume"
    return None


def _parse(argv: list[str] | None, arguments: argparse.Namespace) -> None:
    """Fill `arguments`. Of an unknown command or option, an `InputError` names the one that was probably meant."""
    words = sys.argv[1:] if argv is None else argv
    names = {command.name for command in COMMANDS}
    top, commands = parsers(words[0] if words and words[0] in names else None)
    if {"-h", "--help"} & set(words) and settings.calls_of(words[0]):
        _tell_settings(commands[words[0]], words[0])
    if words and not words[0].startswith("-") and words[0] not in commands:
        close = difflib.get_close_matches(words[0], commands, 1, 0.6)
        meant = f" (did you mean {close[0]}?)" if close else ""
        raise InputError(f"there is no command {words[0]!r}{meant}; see: {top.prog} --help")
    _, unknown = top.parse_known_args(argv, arguments)
    if not unknown:
        return
    used = commands.get(arguments.command, top)
    known = [name for action in used._actions for name in action.option_strings]
    close = [
        match
        for word in unknown
        if word.startswith("-")
        for match in difflib.get_close_matches(word.partition("=")[0].replace("_", "-"), known, 1, 0.75)
    ]
    meant = f" (did you mean {' '.join(close)}?)" if close else ""
    others = [name for name, other in parsers()[1].items() if other._option_string_actions.keys() & set(unknown)]
    if others and not close:
        meant = f" (an option of {others[0]})"
    raise InputError(f"unrecognized arguments: {' '.join(unknown)}{meant}; see: {used.prog} --help")


def _tell_settings(command: argparse.ArgumentParser, name: str) -> None:
    """Let the help of each option say what the environment or the file sets it to."""
    found = settings.settings_of(name)
    for action in command._actions:
        if (setting := found.get(action.dest)) is not None:
            here = f" (here: {settings.shown(setting.value)}, from {setting.place})"
            action.help = (action.help or "") + here.replace("%", "%%")


def _stopped(arguments: argparse.Namespace, how: str = "stopped") -> None:
    complain(arguments, f"{how}; {_what_is_left(arguments)}", "stopped", logging.WARNING)


def _what_is_left(arguments: argparse.Namespace) -> str:
    folder = getattr(arguments, "output", None) or getattr(arguments, "run", None)
    if folder is not None and (url := store_url(folder)) is not None:
        return f"if the run has begun to mine, go on with: {how_to_resume(url)}"
    if folder is None or not (folder / "options.json").exists():
        return "nothing was written"
    if (folder / "manifest.json").exists():
        return f"the run in {folder} is complete"
    return f"go on with: {how_to_resume(folder)}"
