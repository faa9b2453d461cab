"""Writes what the pipeline logs during a step into the log of the Prefect run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from prefect.logging import get_run_logger

from bicliques.pipeline.results.listing import shown

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
