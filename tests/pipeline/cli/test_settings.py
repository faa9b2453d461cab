"""Options come from the command line, the environment, a file and the table, in this order; each says where from."""

import argparse
import json
import os
from pathlib import Path

import pytest

from bicliques.pipeline.api.table import TABLE, entries_of
from bicliques.pipeline.cli import main, settings
from bicliques.pipeline.cli.commands import parser
from bicliques.pipeline.cli.options import from_text
from bicliques.schemas.errors import InputError
from tests.house.tree import ROOT
from tests.support.runs import random_edges, write_edges

COMMANDS = ("mine", "largest", "count", "cliques", "diff", "refresh", "look", "resume", "demo")
#: What a command needs, if it is not one source.
NEEDED = {"demo": [], "refresh": ["X", "Y", "-o", "Z"]}
#: What a file that came with the data may not say.
SCHEDULER = (
    "scheduler is not taken from a file, because whoever has the scheduler can run code here; take it out, and give "
    "--scheduler on the command line, or set BICLIQUES_SCHEDULER"
)
OVERWRITE = "overwrite is not taken from a file, because it removes a run; take it out, and give --overwrite on the"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def filled(words: list[str]) -> argparse.Namespace:
    arguments = parser().parse_args(words)
    settings.fill(arguments, settings.calls_of(arguments.command)[getattr(arguments, "dry_run", False)])
    return arguments


def test_the_order_is_command_line_environment_file_default(monkeypatch):
    def value(*more: str) -> tuple[int, str]:
        arguments = filled(["count", "X", *more])
        found = arguments.settings.get("min_left")
        return arguments.min_left, found.place if found else ""

    assert value() == (1, "")
    Path(settings.FILE).write_text("min_left = 2\n")
    assert value() == (2, "bicliques.toml")
    Path(settings.FILE).write_text("min_left = 2\n[count]\nmin_left = 3\n[mine]\nmin_left = 9\n")
    assert value() == (3, "bicliques.toml [count]")
    monkeypatch.setenv("BICLIQUES_MIN_LEFT", "4")
    assert value() == (4, "BICLIQUES_MIN_LEFT")
    assert value("--min-left", "5") == (5, "")
    assert value("--min-left", "1") == (1, ""), "a value that is the default was said, too"
    monkeypatch.setenv("BICLIQUES_MIN_LEFT", "")
    assert value() == (3, "bicliques.toml [count]")


#: For every kind of option: what the environment says, what a file says, and what both mean.
VALUES = [
    ("min_left", "3", "3", 3),
    ("engine", "cpu", '"cpu"', "cpu"),
    ("sizes", "yes", "true", True),
    ("sizes", "OFF", "false", False),
    ("report", "no", "false", False),
    ("header", "true", "true", True),
    ("max_results", "none", '"none"', None),
    ("max_results", "7", "7", 7),
    ("time_limit", "1.5", "1.5", 1.5),
    ("left", "user", '"user"', "user"),
    ("left", "0", "0", 0),
    ("delimiter", ";", '";"', ";"),
    ("rmm_pool", "0.8", "0.8", "0.8"),
    ("devices", "0,1", "[0, 1]", (0, 1)),
    ("where", "day=1 'hour=2 3'", '["day=1", "hour=2 3"]', ["day=1", "hour=2 3"]),
    ("containing_left", "'ann lee'", '"ann lee"', ["ann lee"]),
    ("containing_left_from", "a/b", '"a/b"', Path("a/b")),
]


@pytest.mark.parametrize(("name", "variable", "toml", "meant"), VALUES)
def test_every_kind_of_option_can_be_given(name, variable, toml, meant, monkeypatch):
    Path(settings.FILE).write_text(f"{name} = {toml}\n")
    assert getattr(filled(["mine", "X"]), name) == meant
    Path(settings.FILE).unlink()
    monkeypatch.setenv(f"BICLIQUES_{name.upper()}", variable)
    assert getattr(filled(["mine", "X"]), name) == meant


def test_a_name_in_digits_is_a_name_in_a_file():
    Path(settings.FILE).write_text('left = "0"\n')
    assert filled(["mine", "X"]).left == "0"


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_does_not_take_is_passed_over(command, monkeypatch):
    for name, value in {"MIN_LEFT": "2", "TIME_LIMIT": "9", "SLICE_SECONDS": "3", "COUNT_ONLY": "1"}.items():
        monkeypatch.setenv(f"BICLIQUES_{name}", value)
    call = settings.calls_of(command)[0]
    taken = {entry.name for entry in entries_of(call)} & {"min_left", "time_limit", "slice_seconds", "count_only"}
    assert set(filled([command, *NEEDED.get(command, ["X"])]).settings) == taken


def test_a_dry_run_takes_the_table_of_mine_and_no_more_than_it_needs():
    Path(settings.FILE).write_text("[mine]\nmin_left = 2\nsample_time = 3.0\nslice_seconds = 4.0\n")
    dry = filled(["mine", "X", "--dry-run"])
    assert (dry.min_left, dry.sample_time, set(dry.settings)) == (2, 3.0, {"min_left", "sample_time"})
    assert set(filled(["mine", "X"]).settings) == {"min_left", "slice_seconds"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("min_left = ", "bicliques.toml in this folder cannot be read"),
        (b"a = '\xff'", "bicliques.toml in this folder cannot be read"),
        ("min_lfet = 3", "bicliques.toml: min_lfet is no option (did you mean min_left?)"),
        ("min-left = 3", "bicliques.toml: min-left is no option (did you mean min_left?)"),
        ("colour = 3", "bicliques.toml: colour is no option; take it out"),
        ("[cuont]\nmin_left = 3", "bicliques.toml: cuont is no command that takes options from here (did you mean co"),
        ("count = 3", "bicliques.toml: count is a command and has no value; its options stand below a line [count]"),
        ("[[count]]\nsizes = true", "bicliques.toml: count is a command and has no value"),
        ("[generate]\nseed = 3", "bicliques.toml: generate is no command that takes options from here; take it out"),
        ("[count]\nreport = true", "bicliques.toml: [count] report is no option of count"),
        ('min_left = "x"', "bicliques.toml: min_left is 'x', and should be N: fewest left members"),
        ("min_left = [1]", "bicliques.toml: min_left is [1], and should be N"),
        ("min_left = true", "bicliques.toml: min_left is True, and should be N"),
        ("min_left = 2.5", "bicliques.toml: min_left is 2.5, and should be N"),
        ("min_left = 1979-05-27", "bicliques.toml: min_left is datetime.date(1979, 5, 27), and should be N"),
        ("sizes = 1", "bicliques.toml: sizes is 1, and should be yes or no, in a file true or false"),
        ('engine = "fast"', "bicliques.toml: engine is 'fast', and should be one of auto, "),
        ("where = [true]", "bicliques.toml: where is [True], and should be CONDITION"),
        ('scheduler = "tcp://10.0.0.1:8786"', f"bicliques.toml: {SCHEDULER}"),
        ('[mine]\nscheduler = "tcp://10.0.0.1:8786"', f"bicliques.toml: {SCHEDULER}"),
        ("overwrite = true", f"bicliques.toml: {OVERWRITE}"),
        ("[mine]\noverwrite = false", f"bicliques.toml: {OVERWRITE}"),
        (f"min_left = {'[' * 100_000}", "bicliques.toml in this folder cannot be read"),
        ("per_vertex = true", "bicliques.toml gives per_vertex, which is not the same for all commands"),
        ("[count]\nper_vertex = true", "bicliques.toml [count]: per_vertex is True, and should be FOLDER"),
        ("min_left = -2", "--min-left must be at least 1, not -2 (bicliques.toml sets min_left)"),
        ("time_limit = -1", "--time-limit must be more than 0 seconds, not -1.0 (bicliques.toml sets time_limit)"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_place(content, sentence, capsys):
    Path(settings.FILE).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert main.main(["count", "X", "--quiet"]) == 2
    assert capsys.readouterr().err.startswith(f"bicliques: {sentence}")


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "look"])
def test_a_variable_may_name_a_scheduler(command, monkeypatch):
    """The environment is the user's own."""
    monkeypatch.setenv("BICLIQUES_SCHEDULER", "tcp://10.0.0.1:8786")
    assert filled([command, *NEEDED.get(command, ["X"])]).scheduler == "tcp://10.0.0.1:8786"


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "bicliques.toml")
    with pytest.raises(InputError, match="cannot be read"):
        settings.settings_of("count", {}, tmp_path)


def test_a_link_to_nowhere_is_not_passed_over(tmp_path):
    (tmp_path / "bicliques.toml").symlink_to(tmp_path / "gone")
    with pytest.raises(
        InputError, match=r"^bicliques.toml in this folder cannot be read \(.*; correct it or rename it$"
    ):
        settings.settings_of("count", {}, tmp_path)


@pytest.mark.parametrize(
    ("variable", "text", "sentence"),
    [
        ("MIN_LEFT", "x", "BICLIQUES_MIN_LEFT is 'x', and should be N: fewest left members"),
        ("SIZES", "maybe", "BICLIQUES_SIZES is 'maybe', and should be yes or no"),
        ("ENGINE", "fast", "BICLIQUES_ENGINE is 'fast', and should be one of auto, "),
        ("MIN_LFET", "3", "there is no option for BICLIQUES_MIN_LFET (did you mean BICLIQUES_MIN_LEFT?); unset it"),
        ("PER_VERTEX", "1", "BICLIQUES_PER_VERTEX gives per_vertex, which is not the same for all commands"),
        ("MIN_LEFT", "0", "--min-left must be at least 1, not 0 (BICLIQUES_MIN_LEFT sets min_left)"),
    ],
)
def test_what_is_wrong_in_the_environment_is_said_with_its_place(variable, text, sentence, capsys, monkeypatch):
    monkeypatch.setenv(f"BICLIQUES_{variable}", text)
    assert main.main(["count", "X", "--quiet"]) == 2
    assert capsys.readouterr().err.startswith(f"bicliques: {sentence}")


def test_variables_of_others_are_left_alone(monkeypatch):
    for name in ("DATA", "VERSION", "COMMIT", "HOME"):
        monkeypatch.setenv(f"BICLIQUES_{name}", "x")
    assert filled(["mine", "X"]).settings == {}


def test_commands_without_such_options_and_the_top_do_not_read_the_file(capsys):
    Path(settings.FILE).write_text("wrong")
    assert main.main(["--version"]) == 0
    assert main.main(["--help"]) == 0
    assert main.main(["status", "nothing"]) == 2
    assert "bicliques.toml" not in capsys.readouterr().err


def test_help_says_where_a_value_comes_from(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("BICLIQUES_MIN_RIGHT", "2")
    Path(settings.FILE).write_text('delimiter = "%"\n')
    assert main.main(["mine", "--help"]) == 0
    text = capsys.readouterr().out
    assert "(default: 1) (here: 2, from BICLIQUES_MIN_RIGHT)" in text
    assert "(here: %, from bicliques.toml)" in text
    assert text.count("(here: ") == 2


def test_a_run_uses_the_settings_and_tells_them(tmp_path, capsys, monkeypatch):
    source = str(write_edges(tmp_path / "g.parquet", random_edges(20, 15, 0.4, 1)))
    assert main.main(["count", source, "--min-left", "3", "--min-right", "2", "--json", "--workers", "0"]) == 0
    wanted = json.loads(capsys.readouterr().out)["count"]
    Path(settings.FILE).write_text("min_left = 3\nworkers = 0\nsample_time = 0.1\n")
    monkeypatch.setenv("BICLIQUES_MIN_RIGHT", "2")
    assert main.main(["count", source, "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["count"] == wanted > 0
    line = "min_left=3 (bicliques.toml), min_right=2 (BICLIQUES_MIN_RIGHT), workers=0 (bicliques.toml)"
    assert told.err.splitlines()[0] == f"bicliques: {line}"
    for command in (["count", source], ["mine", source, "-o", "OUT"], ["resume", "OUT"], ["largest", source]):
        used = {"workers": {"value": 0, "from": "bicliques.toml"}}
        if command[0] != "resume":
            used |= {"min_left": {"value": 3, "from": "bicliques.toml"}}
            used |= {"min_right": {"value": 2, "from": "BICLIQUES_MIN_RIGHT"}}
        assert main.main([*command, "--quiet", "--json"]) == 0
        told = capsys.readouterr()
        assert (told.err, json.loads(told.out)["settings"]) == ("", used)
        assert main.main([*command, "--quiet"]) == 0
        told = capsys.readouterr()
        assert told.err == ""
        last = told.out.splitlines()[-1].removeprefix("options from elsewhere: ").split(", ")
        assert sorted(last) == sorted(f"{name}={each['value']} ({each['from']})" for name, each in used.items())
    assert main.main(["count", source, "--min-left", "3", "--min-right", "2", "--workers", "0", "--json"]) == 0
    assert "settings" not in json.loads(capsys.readouterr().out)
    assert main.main(["mine", source, "--dry-run"]) == 0
    assert "\noptions from elsewhere: sample_time=0.1 (bicliques.toml), min_left=3" in capsys.readouterr().out
    assert main.main(["mine", source, "--dry-run", "--json"]) == 0
    told_of = json.loads(capsys.readouterr().out)["settings"]
    assert told_of["min_right"] == {"value": 2, "from": "BICLIQUES_MIN_RIGHT"}


def test_every_option_of_every_command_can_be_set():
    """An option of the table is an option of some command, and by its name that of a variable."""
    for command in COMMANDS:
        words = {"demo": [], "refresh": ["X", "Y", "-o", "Z"]}.get(command, ["X"])
        arguments = parser().parse_args([command, *words])
        for call in settings.calls_of(command):
            assert {entry.name for entry in entries_of(call)} <= set(vars(arguments))
    assert all(entry.name.isidentifier() and entry.name.islower() for entry in TABLE)


def test_the_documents_name_the_commands_that_take_options_from_elsewhere():
    [choices] = [action.choices for action in parser()._actions if action.dest == "command"]
    assert choices is not None
    assert {command for command in choices if settings.calls_of(command)} == set(COMMANDS)
    named = ", ".join(f"`{command}`" for command in COMMANDS[:-1]) + f" and `{COMMANDS[-1]}`"
    text = " ".join((ROOT / "docs" / "install.md").read_text().split())
    assert f"An option of [options.md](options.md), of the commands {named}, can also be a variable" in text


def test_a_file_of_windows_is_read():
    """With a byte order mark, and carriage returns."""
    Path(settings.FILE).write_bytes(b"\xef\xbb\xbfmin_left = 3\r\n[count]\r\nmin_right = 2\r\n")
    found = settings.settings_of("count", {})
    assert {name: each.value for name, each in found.items()} == {"min_left": 3, "min_right": 2}


def test_a_file_that_cannot_be_opened_is_refused():
    Path(settings.FILE).mkdir()
    with pytest.raises(InputError, match=r"bicliques\.toml in this folder cannot be read"):
        settings.settings_of("mine")


@pytest.mark.parametrize(("text", "value"), [*((word, True) for word in "1 true yes on".split()), ("off", False)])
def test_a_switch_may_be_set_by_any_of_the_usual_words(text, value):
    (entry,) = (each for each in entries_of("mine") if each.name == "skip_bad_lines")
    assert from_text(entry, text) is value
