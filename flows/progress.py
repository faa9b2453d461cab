"""Shows a step's progress as a Prefect artifact, at most once per second, without holding up the work."""

from __future__ import annotations

import contextvars
import threading
from types import TracebackType
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact
from prefect.logging import get_run_logger

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
