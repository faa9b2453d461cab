"""What runs slices: the base class of all pools of workers, and how a task ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


class WorkerLostError(Exception):
    """A worker died while it had a task. The task may be tried again."""


@dataclass(frozen=True)
class Result:
    """How the task with the number `tag` ended: with a value, or with an error."""

    tag: int
    value: Any = None
    error: BaseException | None = None


class Capacity(NamedTuple):
    """How much a pool does at a time.

    Parameters
    ----------
    slots : int
        Tasks of one thread that it takes.
    workers : int
        Engines that work. Fewer than slots if one slice is written while another is mined.
    shared : (int, int) or None
        Where the threads of a worker share slices: slices that the pool takes, and its workers. None: each engine has
        slices of its own.
    """

    slots: int
    workers: int
    shared: tuple[int, int] | None = None


class Pool(ABC):
    """Runs functions on workers.

    Attributes
    ----------
    has_threads : bool
        Whether its tasks run on several threads of this process, which wait for one another when they read rows.
    """

    has_threads = False

    @abstractmethod
    def capacity(self) -> Capacity:
        """How much it does now. That may change, because workers may come and go."""

    @abstractmethod
    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Run ``function(argument)`` once on every worker, and wait for it."""

    @abstractmethod
    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any, on_all_threads: bool = False) -> None:
        """Run ``function(argument)`` on some worker. `wait` returns the result with `tag`.

        A task that runs `on_all_threads` is told how many its worker has (`pipeline.slices.thread_team.threads_here`).
        """

    @abstractmethod
    def wait(self, seconds: float) -> list[Result]:
        """The results of tasks that have ended. Waits up to `seconds` for the first."""

    @abstractmethod
    def describe(self) -> str:
        """The workers in a few words, for the run card."""

    @abstractmethod
    def close(self) -> None:
        """Stop the workers that the pool owns, and free what its workers hold. The pool cannot be used afterwards."""

    def idle(self, free: int) -> int:
        """Tasks of one thread for which there is room, where no slice has `free` of the slots."""
        return free

    def end_slices(self) -> None:
        """End slices early that threads share. What they have not done comes back as their left-over."""
        return

    def grow(self) -> None:
        """Start more workers, if the pool may, because there is enough work. `capacity` says when they are there."""
        return

    def longest_task_s(self) -> float | None:
        """Seconds that a task should take at most, for now. None: any time."""
        return None

    def who(self, tag: int) -> str:
        """Host and process of the worker that has a task now. Empty if none has it, or it is not known."""
        return ""

    def dashboard(self) -> str:
        """Address of a page about the workers. Empty if there is none."""
        return ""
