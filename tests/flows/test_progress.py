"""The progress artifact, without a server: throttled, complete at the end, and no danger to the work."""

import logging
import threading
import time
from uuid import uuid4

import pytest

from bicliques.flows import progress
from bicliques.flows.progress import ProgressArtifact
from bicliques.pipeline.run.progress import Progress


@pytest.fixture
def sent(monkeypatch):
    updates = []
    monkeypatch.setattr(progress, "get_run_logger", lambda: logging.getLogger("test"))
    monkeypatch.setattr(progress, "create_progress_artifact", lambda *_, **__: uuid4())
    monkeypatch.setattr(progress, "update_progress_artifact", lambda _, *update: updates.append(update))
    return updates


class Seconds(threading.Event):
    """Seconds that pass when they are told to."""

    def __init__(self):
        super().__init__()
        self.over = threading.Semaphore(0)

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout == 1.0
        self.over.acquire()
        return self.is_set()

    def set(self):
        super().set()
        self.over.release()


def test_it_is_updated_once_a_second_and_ends_with_the_last_state(sent):
    report = ProgressArtifact("mining")
    report.ended = seconds = Seconds()
    with report:
        for k in range(1000):
            report(Progress("mine", share=(k + 1) / 1000, bicliques=k))
            if k in (300, 600):
                before = len(sent)
                seconds.over.release()
                while len(sent) == before:
                    time.sleep(0.001)
    assert [round(percent, 1) for percent, _ in sent] == [30.1, 60.1, 100.0]
    assert sent[-1][0] == 100
    assert "999 bicliques" in sent[-1][1]


def test_a_step_that_had_nothing_to_do_is_done(sent):
    with ProgressArtifact("mining"):
        pass
    assert sent == [(100.0, "was done already")]


def test_a_step_that_failed_is_not(sent):
    with pytest.raises(ValueError, match="out"), ProgressArtifact("mining"):
        raise ValueError("out")
    assert sent == []


def test_a_server_that_is_gone_is_logged_once_and_the_step_goes_on(sent, monkeypatch, caplog):
    refused = []

    def refuse(*update):
        refused.append(update)
        raise ConnectionRefusedError("nobody there")

    monkeypatch.setattr(progress, "update_progress_artifact", refuse)
    monkeypatch.setattr(progress, "EVERY_S", 0.01)
    with ProgressArtifact("mining") as report:
        while len(refused) < 3:
            report(Progress("mine", share=0.5))
            time.sleep(0.001)
    assert [record.getMessage() for record in caplog.records] == [
        "the progress artifact cannot be updated (nobody there); the run goes on"
    ]


def test_notes_go_to_the_log(sent, caplog):
    caplog.set_level("INFO")
    with ProgressArtifact("mining") as report:
        report(Progress("mine", note="compiling"))
    assert "compiling" in caplog.messages
