"""Shows a step in Prefect: its progress as an artifact, at most once per second, and its log in that of the run."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.logging import get_run_logger

from bicliques.pipeline.results.listing import shown
from bicliques.pipeline.run.progress import Progress, line

#: Seconds between two updates.
EVERY_S = 1.0
#: How long the end of a step waits for an update that is on its way.
_LAST_S = 10.0


class ProgressArtifact:
    """The progress of a task as an artifact: ``with ProgressArtifact("mining") as on_progress``.

    The object can be called as a `pipeline.run.progress.OnProgress`.

    Parameters
    ----------
    key : str
        Key of the artifact: lower-case letters, digits and dashes. All runs with this key share one history.

    Notes
    -----
    A thread of its own sends the updates, so that a slow server does not hold up the scheduling of slices. If the
    server does not answer, this is logged once, and the step goes on.
    """

    def __init__(self, key: str):
        self._log = get_run_logger()
        self._id: UUID = create_progress_artifact(0.0, key=key, description="waiting")  # type: ignore[assignment]
        self._latest: Progress | None = None
        self._has_failed = False
        self.ended = threading.Event()
        context = contextvars.copy_context()  # tells the thread which server to use
        self._thread = threading.Thread(target=context.run, args=(self._publish,), daemon=True)

    def __enter__(self) -> ProgressArtifact:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.ended.set()
        self._thread.join(_LAST_S)
        if error is None and self._latest is None:
            self._send(100.0, "was done already")

    def __call__(self, progress: Progress) -> None:
        """Keep `progress` for the next update. A note in it is logged at once."""
        if progress.note:
            self._log.info(progress.note)
        else:
            self._latest = progress

    def _publish(self) -> None:
        sent = None
        while True:
            ended = self.ended.wait(EVERY_S)
            latest = self._latest
            if latest is not None and latest is not sent:
                self._send(100 * latest.share, line(latest))
                sent = latest
            if ended:
                return

    def _send(self, percent: float, words: str) -> None:
        try:
            update_progress_artifact(self._id, percent, words)
        except Exception as error:  # whatever the error is, the run must not end because of it
            if not self._has_failed:
                self._log.warning("the progress artifact cannot be updated (%s); the run goes on", error)
            self._has_failed = True


_OURS = ("bicliques",)


class _ToRun(logging.Handler):
    def __init__(self, log: logging.LoggerAdapter[logging.Logger] | logging.Logger):
        super().__init__()
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        self.log.log(record.levelno, "%s", shown(record.getMessage()), exc_info=record.exc_info)


def say(text: str, level: int = logging.INFO) -> None:
    """Write one line into the log of the flow or task, whatever the names in it are."""
    get_run_logger().log(level, "%s", shown(text))


@contextmanager
def run_logs() -> Iterator[None]:
    """Inside a flow or task, send the records of our loggers, from INFO on, to its log and nowhere else.

    Prefect's own setting for further loggers is not used, because it finds the run by the thread of a record. Our
    records also come from threads that Prefect does not know.
    """
    handler = _ToRun(get_run_logger())
    loggers = [logging.getLogger(name) for name in _OURS]
    before = [(logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (level, propagate) in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate
