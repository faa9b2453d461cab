"""Every option of every command is used, or refused in a sentence; none is dropped in silence."""

import argparse
import importlib.util

import pytest

import bicliques as bq
from bicliques.pipeline.api.table import entries_of
from bicliques.pipeline.cli import main, settings
from bicliques.pipeline.cli.commands import COMMANDS, parser, parsers
from bicliques.schemas.errors import InputError
from tests.support.runs import QUIET, random_edges, write_edges

#: The words before an option, the Python function that it has to reach, and the options that say nothing of
#: the run, or stand for others.
CALLS = {
    "mine": (["mine", "X", "--output", "OUT"], "bicliques.pipeline.api.runs.mine", {"output", "dry_run"}),
    "dry_run": (["mine", "X", "--dry-run"], "bicliques.pipeline.api.dry_running.dry_run", {"output", "dry_run"}),
    "count": (["count", "X"], "bicliques.pipeline.api.counting.count", {"pq_per_vertex"}),
    "cliques": (["cliques", "X"], "bicliques.pipeline.api.counting.count_of_any", set()),
    "resume": (["resume", "OUT"], "bicliques.pipeline.api.runs.resume", set()),
    "demo": (["demo"], "bicliques.pipeline.api.runs.mine", {"output"}),
}
#: Of every command: how to print.
PLAIN = {"help", "json", "quiet", "log"}


def actions_of(command: str) -> list[argparse.Action]:
    commands = parser()._subparsers._group_actions[0].choices
    return [action for action in commands[command]._actions if action.option_strings]


@pytest.mark.parametrize("named", ["count", "formats"])
def test_a_parser_is_made_for_the_command_that_is_named_alone(named):
    """To make all of them takes longer than many a command."""
    made = parsers(named)[1]
    assert [*made] == [named]
    assert made[named].format_help() == parsers()[1][named].format_help()


CASES = [
    pytest.param(call, action, id=f"{call}-{action.dest}")
    for call, (words, _, others) in CALLS.items()
    for action in actions_of(words[0])
    if action.dest not in PLAIN | others
]


@pytest.mark.parametrize(("call", "option"), CASES)
def test_an_option_reaches_the_call_or_is_refused(capsys, monkeypatch, call, option):
    given = []

    def note(*_, **options):
        given.append(options)
        raise InputError("noted")

    words, function, _ = CALLS[call]
    monkeypatch.setattr(function, note)
    value = [] if option.nargs == 0 else [str(option.choices[-1]) if option.choices else "3"]
    name = option.option_strings[-1]
    code = main.main([*words, name, *value])
    error = capsys.readouterr().err
    assert code == 2
    defaults = {entry.name: entry.default_on(call) for entry in entries_of(call)}
    if option.dest in defaults:
        assert error == "bicliques: noted\n"
        assert given[0][option.dest] not in (None, defaults[option.dest]), "it was dropped"
    else:
        assert name in error, "it was dropped"
        assert error.endswith("; leave it out\n")


@pytest.mark.parametrize(
    ("words", "option"),
    [(["mine", "X", "--output", "OUT"], "--sample-time"), (["mine", "X", "--dry-run"], "--slice-seconds")],
)
def test_what_is_said_for_another_call_is_refused_even_if_it_is_usual(capsys, words, option):
    assert main.main([*words, option, "10"]) == 2
    assert option in capsys.readouterr().err


@pytest.mark.parametrize("call", CALLS)
def test_without_options_a_call_is_as_from_python(capsys, monkeypatch, call):
    given = []

    def note(*_, **options):
        given.append(options)
        raise InputError("noted")

    words, function, _ = CALLS[call]
    monkeypatch.setattr(function, note)
    assert main.main(words) == 2
    usual = {entry.name: entry.default_on(call) for entry in entries_of(call)}
    job = {"pq": "cliques"} if call == "cliques" else {}
    assert usual | given[0] == usual | {"progress": True} | job


class Noting(argparse.Namespace):
    """Notes which options a command looks at."""

    seen: set[str] = set()  # noqa: RUF012  one for all

    def __getattribute__(self, name: str):
        Noting.seen.add(name)
        return super().__getattribute__(name)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    source = write_edges(folder / "g.parquet", random_edges(12, 9, 0.4, 1))
    bq.mine(source, folder / "out", **QUIET)
    return folder / "out"


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.name not in {w[0] for w, *_ in CALLS.values()}])
def test_other_commands_look_at_all_their_options(command, run, capsys):
    others = {"formats": [], "prune": [str(run.parent)], "diff": [str(run), str(run)], "completion": ["bash"]}
    others |= {"export": [str(run), "--format", "jsonl", "--output", str(run.parent / "x")]}
    others |= {"communities": [str(run), "--at", "2x2"]}
    others |= {"look": [str(run.parent / "g.parquet")]}
    others |= {"publish": [str(run), str(run.parent / "published")]}
    others |= {"refresh": [str(run), str(run.parent / "g.parquet"), "-o", str(run.parent / "refreshed")]}
    others |= {"generate": [*"--n-left 9 --n-right 9 --edges 30 --output".split(), str(run.parent / "graph")]}
    where = others.get(command.name, [str(run)])
    arguments = parser().parse_args([command.name, *where], Noting())
    for call in settings.calls_of(command.name):
        settings.fill(arguments, call)
    Noting.seen.clear()
    assert command.run(arguments) == 0
    assert {action.dest for action in actions_of(command.name)} - {"help", "log"} <= Noting.seen, (
        "whoever runs a command looks at log"
    )


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_what_a_command_imports_before_it_starts_is_there(command):
    for module in command.imports:
        assert importlib.util.find_spec(f"bicliques.pipeline.{module}") is not None, module
