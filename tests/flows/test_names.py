"""Names of flow runs: readable, without secrets, there before the run begins, and never a reason for it to fail."""

from datetime import UTC, date, datetime
from types import SimpleNamespace

import pytest

from bicliques.flows import identity, names
from bicliques.flows.mine import mine
from bicliques.flows.names import name_of_mining, name_of_verifying
from bicliques.flows.verify import verify
from tests.flows.states import read

DUE = datetime(2026, 1, 31, 3, 0, 7, tzinfo=UTC)


@pytest.fixture
def given(monkeypatch):
    """Sets the parameters of the current flow run."""

    def give(**parameters):
        monkeypatch.setattr(names, "flow_run", SimpleNamespace(parameters=parameters))
        monkeypatch.setattr(identity, "flow_run", SimpleNamespace(scheduled_start_time=DUE))

    return give


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"source": "in/purchases.csv"}, "purchases.csv to runs/2026-01-31"),
        ({"source": "in/{date}.csv", "output": "asked/{date}T{time}"}, "2026-01-31.csv to asked/2026-01-31T030007"),
        ({"source": "in/g.el", "output": "OUT/", "date": date(2026, 2, 1)}, "g.el to OUT"),
        ({"source": "in/g.el", "output": "runs/{date}", "date": date(2026, 2, 1)}, "g.el to runs/2026-02-01"),
        ({"source": "s3://lake/ratings/"}, "ratings to runs/2026-01-31"),
        ({"source": "in/*.csv"}, "*.csv to runs/2026-01-31"),
        ({"source": "/", "output": "OUT"}, "/ to OUT"),
        ({"source": "g.el", "output": "runs/{day}"}, "g.el to runs/{day}"),
        ({"source": "g.el", "output": "runs/{"}, "g.el to runs/{"),
        ({"source": "https://ann:geheim@host/x.csv?sig=c0ffee", "output": "OUT"}, "x.csv?*** to OUT"),
        ({"source": "https://ann:geheim@host", "output": "OUT"}, "***@host to OUT"),
        ({"source": "g.el", "output": "s3://ann:geheim@bucket/OUT"}, "g.el to s3://***@bucket/OUT"),
        ({}, "mine"),
        ({"source": "g.el", "output": 7}, "mine"),
        ({"source": "g.el", "date": "31 January"}, "mine"),
    ],
    ids=str,
)
def test_a_run_that_mines_is_called_after_its_input_and_folder(given, parameters, name):
    given(**parameters)
    assert name_of_mining() == name


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"output": "runs/2026-01-31/"}, "verify runs/2026-01-31"),
        ({"output": "s3://ann:geheim@bucket/OUT"}, "verify s3://***@bucket/OUT"),
        ({}, "verify"),
        ({"output": 7}, "verify"),
    ],
    ids=str,
)
def test_a_run_that_verifies_is_called_after_its_folder(given, parameters, name):
    given(**parameters)
    assert name_of_verifying() == name


@pytest.mark.usefixtures("prefect_server")
def test_a_run_that_is_refused_has_its_name(tmp_path):
    state = mine("https://ann:geheim@host/x.csv?sig=c0ffee", str(tmp_path / "out"), return_state=True)
    assert state.is_failed()
    assert read(state).name == f"x.csv?*** to {tmp_path / 'out'}"
    state = verify(str(tmp_path / "missing"), return_state=True)
    assert state.is_failed()
    assert read(state).name == f"verify {tmp_path / 'missing'}"
