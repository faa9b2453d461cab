"""Scripts that let a shell complete commands and options. They are made from the parser, so they name what it takes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class _Option:
    """One option of a command: its names, what it is, and what may follow it."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Command:
    """One command: its name, what it does, its options, and the words that it takes in place of a file."""

    name: str
    help: str
    options: tuple[_Option, ...]
    words: tuple[str, ...]


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script for a shell.

    Parameters
    ----------
    shell : str
        A key of `SHELLS`.
    parser : ArgumentParser
        That of ``bicliques``.
    """
    return SHELLS[shell](_commands(parser))


def _commands(parser: argparse.ArgumentParser) -> list[_Command]:
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    helps = {action.dest: action.help or "" for action in commands._choices_actions}
    return [
        _Command(
            name=name,
            help=_plain(helps[name]),
            options=tuple(_option(action) for action in each._actions if action.option_strings),
            words=tuple(
                word for action in each._actions if not action.option_strings for word in map(str, action.choices or ())
            ),
        )
        for name, each in commands.choices.items()
    ]


def _option(action: argparse.Action) -> _Option:
    return _Option(
        names=tuple(action.option_strings),
        help=_plain(action.help or ""),
        takes_value=action.nargs != 0,
        choices=tuple(map(str, action.choices or ())),
    )


def _plain(text: str) -> str:
    """The first clause of a help, without what a shell could read as something else."""
    return re.sub(r"[^\w ,.-]", "", re.split(r" \(default|;", text.replace("%%", "%"))[0])


def _bash(commands: Iterable[_Command]) -> str:
    commands = list(commands)
    lines = [
        "_bicliques() {",
        '    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""',
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f'        words="{" ".join(command.name for command in commands)} --help --version"',
        "    else",
        '        case "${COMP_WORDS[1]} $before" in',
    ]
    for command in commands:
        for option in command.options:
            if option.choices:
                patterns = "|".join(f'"{command.name} {name}"' for name in option.names)
                lines.append(f'        {patterns}) words="{" ".join(option.choices)}" ;;')
    lines += ['        *) case "${COMP_WORDS[1]} $current" in']
    for command in commands:
        names = " ".join(name for option in command.options for name in option.names)
        lines.append(f'            "{command.name} -"*) words="{names}" ;;')
        if command.words:
            lines.append(f'            "{command.name} "*) words="{" ".join(command.words)}" ;;')
    lines += [
        "            esac ;;",
        "        esac",
        "    fi",
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        "complete -o bashdefault -o default -F _bicliques bicliques",
    ]
    return "\n".join(lines)


def _zsh(commands: Iterable[_Command]) -> str:
    commands = list(commands)
    lines = ["#compdef bicliques", "_bicliques() {", "    local -a commands=("]
    lines += [f"        '{command.name}:{command.help}'" for command in commands]
    lines += [
        "    )",
        "    if (( CURRENT == 2 )); then _describe command commands; return; fi",
        "    local command=$words[2]",
        "    shift words; (( CURRENT-- ))",
        "    case $command in",
    ]
    for command in commands:
        lines.append(f"        {command.name}) _arguments \\")
        for option in command.options:
            what = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
            end = what if option.takes_value else ""
            lines += [f"            '{name}[{option.help}]{end}' \\" for name in option.names]
        lines.append(
            f"            '*:{'word:(' + ' '.join(command.words) + ')' if command.words else 'file:_files'}' ;;"
        )
    lines += [
        "    esac",
        "}",
        'if [ "$funcstack[1]" = _bicliques ]; then _bicliques "$@"; else compdef _bicliques bicliques; fi',
    ]
    return "\n".join(lines)


def _fish(commands: Iterable[_Command]) -> str:
    lines = []
    for command in commands:
        lines.append(f"complete -c bicliques -n __fish_use_subcommand -f -a {command.name} -d '{command.help}'")
        here = f"complete -c bicliques -n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(f"{here} -f -a '{' '.join(command.words)}'")
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r" if option.takes_value else ""
            lines.append(f"{here} {names}{value} -d '{option.help}'")
    return "\n".join(lines)


#: Shell -> what makes its script.
SHELLS: dict[str, Callable[[Iterable[_Command]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
