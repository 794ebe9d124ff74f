"""Launching runs with asyncio."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from . import _clusters, _native
from ._arguments import check_options, command_of
from ._code import locate
from ._following import until_end_async
from ._itself import refuse_launch_of_itself, refuse_while_importing
from ._notebook import progress
from .errors import LaunchError
from ._runs import (
    Combination,
    LogLine,
    Outputs,
    Result,
    Task,
    combinations_of,
    launch,
    line_of,
    metrics_of,
    outputs_of,
)
from ._tracking import RunSummary, Usage, filters, summary_of, tag_changes, usage_of


class Run:
    """As :class:`longshore.Run`, for asyncio."""

    def __init__(self, native: Any) -> None:
        self._native = native

    @property
    def name(self) -> str:
        name: str = self._native.name
        return name

    @property
    def namespace(self) -> str:
        namespace: str = self._native.namespace
        return namespace

    @property
    def warnings(self) -> list[str]:
        warnings: list[str] = self._native.warnings
        return warnings

    async def events(self, *, logs: bool = True) -> AsyncIterator[dict[str, Any]]:
        """What happens, as dicts: see :meth:`longshore.Run.events`."""
        async for event in await self._native.follow(logs=logs):
            yield event

    async def logs(self, *, timeout: float | None = None) -> AsyncIterator[LogLine]:
        """The lines of all tasks, until the run ends: see :meth:`longshore.Run.logs`."""
        async for event in until_end_async(self._native, True, timeout):
            line = line_of(event)
            if line:
                yield line

    async def wait(self, *, timeout: float | None = None, logs: bool = False, check: bool = False) -> Result:
        """Waits until the run ends. If the wait is cancelled, the run continues.

        :param timeout: The seconds after which the run must have ended; 0 only asks.
        :param logs: Print the lines of the tasks.
        :param check: Raise an error if the run fails.
        :raises longshore.WaitTimeoutError: If the timeout expires. The run continues.
        :raises longshore.LaunchError: If ``check`` is set and the run fails.
        """
        result = Result(1, "the events of the run ended early")
        show = progress(self.name)
        async for event in until_end_async(self._native, logs, timeout):
            show(event)
            line = line_of(event) if logs else None
            if line:
                print(line, flush=True)
            elif event["event"] == "finished":
                result = Result(event["exitCode"], event["reason"])
        if check and result.exit_code:
            raise LaunchError(f"{self.name}: {result.reason} (exit code {result.exit_code})")
        return result

    async def why(self) -> dict[str, Any]:
        """The state with its cause and a remedy."""
        why: dict[str, Any] = await self._native.why()
        return why

    async def status(self) -> str:
        """The state, as :attr:`longshore.Run.status`."""
        state: str = (await self.why())["state"]
        return state

    async def summary(self) -> RunSummary[Run]:
        """The state, the tags and more: see :meth:`longshore.Run.summary`."""
        return summary_of(self, await self._native.summary())

    async def tags(self) -> dict[str, str]:
        """The tags, as :attr:`longshore.Run.tags`."""
        return (await self.summary()).tags

    async def tag(self, *keys: str, **values: str | float | None) -> None:
        """Changes tags: see :meth:`longshore.Run.tag`."""
        await self._native.tag(tag_changes(keys, values))

    async def note(self) -> str | None:
        """The note, as :attr:`longshore.Run.note`."""
        return (await self.summary()).note

    async def set_note(self, text: str | None) -> None:
        """Replaces the note: see :meth:`longshore.Run.set_note`."""
        await self._native.set_note(text)

    async def usage(self, *, series: bool = True) -> Usage:
        """What the tasks use: see :meth:`longshore.Run.usage`."""
        return usage_of(await self._native.usage(series))

    async def outputs(
        self, to: str | os.PathLike[str] | None = None, *, task: str | None = None, force: bool = False
    ) -> Outputs:
        """The files that the tasks left: see :meth:`longshore.Run.outputs`."""
        return outputs_of(await self._native.outputs(to, task, force))

    async def metrics(self, *, logs: bool = True) -> dict[str, dict[str, float]]:
        """The last values of the metrics: see :meth:`longshore.Run.metrics`."""
        return metrics_of(await self._native.metrics(logs))

    async def sweep(self, *, logs: bool = True) -> list[Combination]:
        """The combinations of a sweep: see :meth:`longshore.Run.sweep`."""
        return combinations_of(await self._native.sweep(logs))

    async def retry(self) -> Run:
        """Launches a run of the failed combinations: see :meth:`longshore.Run.retry`."""
        refuse_while_importing()
        return Run(await self._native.retry())

    async def cancel(self) -> None:
        """Stops the run and keeps its record."""
        await self._native.cancel()

    async def remove(self) -> None:
        """Removes the run with its record and its outputs."""
        await self._native.remove()

    def __repr__(self) -> str:
        return f"<Run {self.name} namespace={self.namespace}>"


async def run(
    code: str | os.PathLike[str] | Callable[..., Any] = ".",
    /,
    command: str | Iterable[str | os.PathLike[str]] | None = None,
    *,
    cluster: _clusters.AnyCluster = None,
    workers: int | None = None,
    roles: Mapping[str, int] | None = None,
    cpu: str | float | None = None,
    memory: str | None = None,
    gpus: int | None = None,
    env: Mapping[str, str] | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    sweep: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    **options: Any,
) -> Run:
    """As :func:`longshore.run`, with the same arguments and defaults. ``cluster`` may also be a
    :class:`longshore.aio.Cluster`."""
    if isinstance(code, Task) and code.options:
        given: dict[str, Any] = {"command": command, "cluster": cluster, "workers": workers, "roles": roles, "cpu": cpu}
        given |= {"memory": memory, "gpus": gpus, "env": env, "sweep": sweep, **options}
        return await run(code.function, args=args, kwargs=kwargs, **code._merged(given))
    check_options(options, run)
    located = locate(code, args, kwargs)
    command = command_of(command)
    refuse_launch_of_itself(located, command, env, sweep)
    if sweep is not None:
        options["sweep"] = sweep
    with located.folder() as folder:
        chosen, context = await _clusters.choose_async(cluster, folder)
        return Run(
            await launch(chosen, located, folder, command, workers, roles, cpu, memory, gpus, env, options, context)
        )


async def find_run(
    name: str = "last",
    namespace: str | None = None,
    *,
    all_users: bool = False,
    cluster: _clusters.AnyCluster = None,
) -> Run:
    """As :func:`longshore.find_run`."""
    chosen, _ = await _clusters.choose_async(cluster)
    finding: Any = _native.find_run(chosen, name, namespace, all_users)
    return Run(await finding)


async def runs(
    state: str | Sequence[str] = (),
    *,
    tags: Mapping[str, str | None] | Sequence[str] = (),
    name: str | None = None,
    since: str | timedelta | datetime | None = None,
    namespace: str | None = None,
    all_namespaces: bool = False,
    mine: bool = False,
    all_users: bool = False,
    limit: int | None = None,
    cluster: _clusters.AnyCluster = None,
) -> list[RunSummary[Run]]:
    """As :func:`longshore.runs`, with the same arguments and defaults."""
    given = filters(state, tags, name, since, namespace, all_namespaces, mine, all_users, limit)
    chosen, _ = await _clusters.choose_async(cluster)
    listing: Any = _native.list_runs(chosen, **given)
    found = await listing
    return [summary_of(Run(native), summary) for native, summary in found]


async def compare(one: Run, other: Run) -> dict[str, Any]:
    """As :func:`longshore.compare`."""
    difference: dict[str, Any] = await one._native.compare(other._native)
    return difference
