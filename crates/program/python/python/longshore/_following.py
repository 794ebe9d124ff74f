"""Waiting for the end of a run within a time limit."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .errors import InvalidError, WaitTimeoutError

if TYPE_CHECKING:
    from . import _native

#: The seconds that the first requests and the first events may take, also with a shorter timeout: a run
#: that has ended is then reported.
_FIRST = 1.0

_STATES = ("pending", "running", "succeeded", "failed")


class Deadline:
    """When a wait ends; never without a timeout.

    :raises longshore.InvalidError: If the timeout is negative, or not a number.
    """

    def __init__(self, timeout: float | None) -> None:
        if timeout is not None and not timeout >= 0:
            raise InvalidError(f"timeout must be a number of seconds, 0 or above, but is {timeout}")
        self._end = None if timeout is None else time.monotonic() + timeout

    def left(self) -> float | None:
        """The seconds until the end, or ``None``."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def to_start(self) -> float | None:
        """The seconds for the first requests, or ``None``."""
        left = self.left()
        return None if left is None else max(left, _FIRST)

    def started(self) -> None:
        """The first requests have been answered."""
        if self._end is not None:
            self._end = max(self._end, time.monotonic() + _FIRST / 2)


class Progress:
    """The last known state of a run, for the error of a timeout."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._state = "its state is not known yet"

    def take(self, event: Mapping[str, Any]) -> None:
        """Notes an event."""
        if event["event"] == "progress":
            roles = [(role["role"], [(role[state], state) for state in _STATES]) for role in event["roles"]]
            self._state = "; ".join(
                f"{name}: {', '.join(f'{count} {state}' for count, state in counts if count)}" for name, counts in roles
            )
        elif event["event"] == "waiting":
            self._state = str(event["cause"])

    def late(self, timeout: float | None) -> WaitTimeoutError:
        """The error after a timeout."""
        return WaitTimeoutError(f"{self._name} has not ended after {timeout} s: {self._state}")


def until_end(run: _native.Run, logs: bool, timeout: float | None) -> Iterator[dict[str, Any]]:
    """The events of a run, to its end.

    :raises longshore.WaitTimeoutError: If the run has not ended after ``timeout`` seconds.
    """
    deadline, seen = Deadline(timeout), Progress(run.name)
    with run.follow(logs=logs, timeout=deadline.to_start()) as events:
        deadline.started()
        while True:
            try:
                event = events.next(deadline.left())
            except TimeoutError as error:
                raise seen.late(timeout) from error
            if event is None:
                return
            seen.take(event)
            yield event


async def until_end_async(run: Any, logs: bool, timeout: float | None) -> AsyncIterator[dict[str, Any]]:
    """As :func:`until_end`, for a run of asyncio."""
    deadline, seen = Deadline(timeout), Progress(run.name)
    with await run.follow(logs=logs, timeout=deadline.to_start()) as events:
        deadline.started()
        while True:
            try:
                event = await events.next(deadline.left())
            except TimeoutError as error:
                raise seen.late(timeout) from error
            if event is None:
                return
            seen.take(event)
            yield event
