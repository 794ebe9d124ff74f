"""What a list of runs says about each, and what runs use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from ._arguments import sequence_of_texts

__all__ = ["GpuUsage", "RecordedUsage", "RunSummary", "TaskUsage", "Usage", "UsagePoint"]

_Run = TypeVar("_Run")


@dataclass(frozen=True)
class RunSummary(Generic[_Run]):
    """A run in a list, at the time of the request."""

    #: The run; of ``longshore.aio.runs``, that for asyncio.
    run: _Run
    #: The name.
    name: str
    #: The namespace.
    namespace: str
    #: ``pending``, ``running``, ``succeeded``, ``failed`` or ``cancelled``; of a schedule, ``scheduled``
    #: or ``paused``.
    state: str
    #: The user who launched it, by the cluster's name for the user, if it is known.
    owner: str | None
    #: When it was created.
    created: datetime | None
    #: When it ended, if it has.
    finished: datetime | None
    #: The exit code, if it has ended and the code is known.
    exit_code: int | None
    #: The number of tasks that have succeeded.
    succeeded: int
    #: The number of tasks.
    tasks: int
    #: How often tasks were restarted with a new pod.
    restarts: int
    #: The tags.
    tags: dict[str, str]
    #: The note.
    note: str | None
    #: The labels that the run was given.
    labels: dict[str, str]
    #: The command of its first role.
    command: list[str]


@dataclass(frozen=True)
class UsagePoint:
    """What a task used in an interval."""

    #: The mean number of cores.
    cpu: float
    #: The maximum memory in bytes.
    memory: float
    #: The mean utilisation of its GPUs in percent, if they were measured.
    gpu_percent: float | None
    #: The memory of its GPUs in bytes, if they were measured.
    gpu_memory: float | None


@dataclass(frozen=True)
class GpuUsage:
    """What a task used of its GPUs."""

    #: The number of GPUs.
    count: int
    #: The mean utilisation in percent.
    mean_percent: float
    #: The maximum memory in bytes.
    peak_memory: int
    #: The memory of the GPUs in bytes.
    total_memory: int
    #: For how long they have been idle, in seconds.
    idle_seconds: int


@dataclass(frozen=True)
class RecordedUsage:
    """What a task has recorded about itself."""

    #: The start, in seconds since 1970.
    start: int
    #: The measured time in seconds.
    seconds: float
    #: The mean number of cores.
    mean_cpu: float | None
    #: The maximum memory in bytes.
    peak_memory: int
    #: Its GPUs, if they were measured.
    gpu: GpuUsage | None
    #: The interval of the series in seconds.
    interval: int
    #: At most 60 points.
    series: list[UsagePoint]


@dataclass(frozen=True)
class TaskUsage:
    """What a task uses, or used in its last attempt."""

    #: The task: ``main/0`` in a run without roles.
    task: str
    #: The name of its pod.
    pod: str
    #: Whether it runs.
    running: bool
    #: The cores that it requested.
    requested_cpu: float | None
    #: The memory that it requested, in bytes.
    requested_memory: float | None
    #: The cores that it uses now.
    cpu: float | None
    #: The memory that it uses now, in bytes.
    memory: float | None
    #: The utilisation of its GPUs now, in percent.
    gpu_percent: float | None
    #: The memory of its GPUs now, in bytes.
    gpu_memory: float | None
    #: What it has recorded, if anything.
    recorded: RecordedUsage | None


@dataclass(frozen=True)
class Usage:
    """What the tasks of a run use."""

    #: The tasks that have started, by role and index, each in its last attempt.
    tasks: list[TaskUsage]
    #: What could not be read, and why.
    unseen: list[str]


def time_of(text: str | None) -> datetime | None:
    """A time of the extension module."""
    # Python 3.10 and older do not read Z.
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))


def summary_of(run: _Run, found: Mapping[str, Any]) -> RunSummary[_Run]:
    """A summary in the notation of the extension module."""
    return RunSummary(
        run=run,
        name=found["name"],
        namespace=found["namespace"],
        state=found["state"],
        owner=found["owner"],
        created=time_of(found["created"]),
        finished=time_of(found["finished"]),
        exit_code=found["exitCode"],
        succeeded=found["succeeded"],
        tasks=found["tasks"],
        restarts=found["restarts"],
        tags=found["tags"],
        note=found["note"],
        labels=found["labels"],
        command=found["command"],
    )


def usage_of(found: Mapping[str, Any]) -> Usage:
    """The usage in the notation of the extension module."""
    return Usage([_task(task) for task in found["tasks"]], found["unseen"])


def _task(task: Mapping[str, Any]) -> TaskUsage:
    return TaskUsage(
        task=f"{task['role']}/{task['index']}",
        pod=task["pod"],
        running=task["running"],
        requested_cpu=task["requestedCpu"],
        requested_memory=task["requestedMemory"],
        cpu=task["cpu"],
        memory=task["memory"],
        gpu_percent=task["gpuPercent"],
        gpu_memory=task["gpuMemory"],
        recorded=None if task["recorded"] is None else _recorded(task["recorded"]),
    )


def _recorded(found: Mapping[str, Any]) -> RecordedUsage:
    gpu = found["gpu"]
    return RecordedUsage(
        start=found["start"],
        seconds=found["seconds"],
        mean_cpu=found["meanCpu"],
        peak_memory=found["peakMemory"],
        gpu=None
        if gpu is None
        else GpuUsage(
            gpu["count"], gpu["meanPercent"], gpu["peakMemory"], gpu["totalMemory"], gpu["idleSeconds"]
        ),
        interval=found["interval"],
        series=[
            UsagePoint(point["cpu"], point["memory"], point["gpuPercent"], point["gpuMemory"])
            for point in found["series"]
        ],
    )


def filters(
    state: str | Sequence[str],
    tags: Mapping[str, str | None] | Sequence[str],
    name: str | None,
    since: str | timedelta | datetime | None,
    namespace: str | None,
    all_namespaces: bool,
    mine: bool,
    all_users: bool,
    limit: int | None,
) -> dict[str, Any]:
    """The arguments of ``_native.list_runs``."""
    pairs = tags.items() if isinstance(tags, Mapping) else [(key, None) for key in sequence_of_texts("tags", tags)]
    return {
        "namespace": namespace,
        "all_namespaces": all_namespaces,
        "states": [state] if isinstance(state, str) else sequence_of_texts("state", state),
        "tags": [(key, None if value is None else str(value)) for key, value in pairs],
        "name": name,
        "since": since,
        "mine": mine,
        "all_users": all_users,
        "limit": limit,
    }


def tag_changes(keys: Sequence[str], values: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """The changes of tags: a key without a value, a value, or ``None`` to remove the tag."""
    changes: list[tuple[str, str | None]] = [(key, "") for key in keys]
    return changes + [(key, None if value is None else str(value)) for key, value in values.items()]


def without_paths(value: Any) -> Any:
    """An option in which paths are texts, and iterables are lists."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {key: without_paths(one) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, bytearray, memoryview)):
        return [without_paths(one) for one in value]
    return value
