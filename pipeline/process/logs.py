"""The log: records with facts for programs, and how the command line writes them to stderr.

Programs get the same records from the standard library's `logging`, under ``bicliques``. A JSON line has the
``record.event`` and ``record.facts``.
"""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

from bicliques.schemas.errors import in_one_line, said

#: Form of the log: sentences, or one JSON object per line.
Form = Literal["text", "json"]

_OURS = ("bicliques",)


def tell(logger: logging.Logger, event: str, message: str, level: int = logging.INFO, **facts: Any) -> None:
    """Log an event.

    Parameters
    ----------
    event : str
        One word that a program can search for. docs/operations.md lists them.
    message : str
        One sentence.
    **facts
        Numbers and names, for programs.
    """
    logger.log(level, "%s", message, extra={"event": event, "facts": facts})


class JsonLine(logging.Formatter):
    """One JSON object per record: time (UTC), level, event, message, and the facts of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without a line end."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "note"),
            "message": said(record.getMessage()),
        }
        return json.dumps(line | getattr(record, "facts", {}), default=str)


class _Sentence(logging.Formatter):
    """The message of a record behind our name."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without a line end."""
        return f"bicliques: {in_one_line(said(record.getMessage()))}"


def write_if_possible(stream: TextIO | None, text: str) -> None:
    """Write text that the run does not need. A full disk or a reader that has ended must not end the run.

    A stream that fails leads to the null device from then on. Otherwise Python would try again as it ends, and change
    the exit code.
    """
    if stream is None:  # closed before the process was started
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            try:
                os.dup2(nowhere, stream.fileno())
            finally:
                os.close(nowhere)


def log_to_stderr(form: Form | None = None) -> None:
    """Log our warnings, or with a `form` all events, to stderr. Messages of libraries are not shown.

    If such a message matters, the run says it itself.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLine() if form == "json" else _Sentence())
    handler.addFilter(lambda record: record.name.partition(".")[0] in _OURS)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    for name in _OURS:
        logging.getLogger(name).setLevel(logging.INFO if form else logging.NOTSET)
