"""Launching folders, scripts and functions as runs of a cluster.

>>> import longshore, pathlib, tempfile
>>> folder = pathlib.Path(tempfile.mkdtemp(), "hello")
>>> folder.mkdir()
>>> _ = (folder / "hello.py").write_text("import os; print('task', os.environ['LONGSHORE_INDEX'])")
>>> with longshore.EmbeddedCluster() as embedded:
...     run = longshore.run(folder / "hello.py", cluster=embedded.cluster, workers=2)
...     sorted(line.line for line in run.logs()), run.wait()
(['task 0', 'task 1'], Result(exit_code=0, reason='all tasks succeeded'))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, overload

from . import _clusters, _native
from ._arguments import check_options, command_of, mapping
from ._code import Code, locate
from ._following import until_end
from ._itself import in_a_task, refuse_launch_of_itself, refuse_while_importing
from ._notebook import progress
from .errors import InvalidError, LaunchError
from ._tracking import RunSummary, Usage, filters, summary_of, tag_changes, time_of, usage_of, without_paths

__all__ = [
    "Combination",
    "LogLine",
    "OutputFile",
    "Outputs",
    "Result",
    "Run",
    "Task",
    "compare",
    "find_run",
    "run",
    "runs",
    "task",
]


@dataclass(frozen=True)
class LogLine:
    """A line that a task wrote."""

    #: The role of the task; ``main`` in a run without roles.
    role: str
    #: The index of the task in its role, from 0.
    index: int
    #: The line, without the newline.
    line: str
    #: True if the task did not write the line: it says which lines of the task are missing.
    is_gap: bool = False

    def __str__(self) -> str:
        return f"{self.role}/{self.index} | {self.line}"


def line_of(event: dict[str, Any]) -> LogLine | None:
    """The line of an event ``log`` or ``gap``."""
    if event["event"] == "log":
        return LogLine(event["role"], event["index"], event["line"])
    if event["event"] == "gap":
        return LogLine(event["role"], event["index"], f"longshore: {event['message']}", is_gap=True)
    return None


class Result(NamedTuple):
    """How a run ended."""

    #: 0 if all tasks succeeded.
    exit_code: int
    #: Why the run ended, in one sentence.
    reason: str


@dataclass(frozen=True)
class OutputFile:
    """A file that a task left."""

    #: The task: ``main/0`` in a run without roles.
    task: str
    #: The path in the folder of the task's code.
    path: str
    #: The size in bytes.
    size: int
    #: The sha256 of the content, in hexadecimal.
    sha256: str
    #: The file on this machine, if it was fetched.
    local: Path | None = None


@dataclass(frozen=True)
class Outputs:
    """The files that tasks left."""

    #: The files, by task and path.
    files: list[OutputFile]
    #: Matching files that are not among them, each with the reason.
    left_out: list[str]
    #: Tasks that have not ended: their files may be incomplete.
    running: list[str]


@dataclass(frozen=True)
class Combination:
    """A combination of a sweep, as its last run ran it."""

    #: The index in the sweep, from 0.
    index: int
    #: The values of the parameters, as the task gets them.
    parameters: dict[str, str]
    #: ``pending``, ``running``, ``succeeded``, ``failed`` or ``cancelled``.
    state: str
    #: The exit code, if the task has ended.
    exit_code: int | None
    #: The last value of each metric.
    metrics: dict[str, float]
    #: When the task started, if it has.
    started: datetime | None
    #: When the task ended, if it has.
    finished: datetime | None
    #: The name of the run: that of the sweep, or of a retry.
    run: str
    #: The task in this run: ``main/0`` for the first one.
    task: str


class Run:
    """A launched run. It continues when this program ends. ``Run(name)`` finds a run as
    :func:`find_run` does, with the same arguments."""

    def __init__(
        self,
        run: _native.Run | str,
        namespace: str | None = None,
        *,
        all_users: bool = False,
        cluster: _clusters.AnyCluster = None,
    ) -> None:
        if isinstance(run, str):
            run = _native.find_run(_clusters.choose(cluster)[0], run, namespace, all_users)
        self._native = run

    @property
    def name(self) -> str:
        """The name, as in ``longshore attach NAME``."""
        return self._native.name

    @property
    def namespace(self) -> str:
        """The namespace of the run."""
        return self._native.namespace

    @property
    def warnings(self) -> list[str]:
        """Problems that may delay the run, each with its remedy."""
        return self._native.warnings

    def events(self, *, logs: bool = True) -> _native.Stream[dict[str, Any]]:
        """What happens, as dicts with ``event``: ``progress``, ``waiting``, ``retry``, ``log``, ``gap``
        and, as the last one, ``finished``."""
        return self._native.follow(logs=logs)

    def logs(self, *, timeout: float | None = None) -> Iterator[LogLine]:
        """The lines of all tasks, from their beginning, until the run ends, also of tasks whose pods were
        deleted, if the cluster keeps their logs. A line whose ``is_gap`` is true says that lines are missing
        there.

        :param timeout: The seconds after which the run must have ended.
        :raises longshore.WaitTimeoutError: If it has not ended by then. The run continues.
        """
        for event in until_end(self._native, True, timeout):
            line = line_of(event)
            if line:
                yield line

    def wait(self, *, timeout: float | None = None, logs: bool = False, check: bool = False) -> Result:
        """Waits until the run ends. Ctrl-C stops waiting; the run continues. Notebooks show the progress.

        :param timeout: The seconds after which the run must have ended; 0 only asks.
        :param logs: Print the lines of the tasks.
        :param check: Raise an error if the run fails.
        :raises longshore.WaitTimeoutError: If the timeout expires. The run continues.
        :raises longshore.LaunchError: If ``check`` is set and the run fails.
        """
        result = Result(1, "the events of the run ended early")
        show = progress(self.name)
        for event in until_end(self._native, logs, timeout):
            show(event)
            line = line_of(event) if logs else None
            if line:
                print(line, flush=True)
            elif event["event"] == "finished":
                result = Result(event["exitCode"], event["reason"])
        if check and result.exit_code:
            raise LaunchError(f"{self.name}: {result.reason} (exit code {result.exit_code})")
        return result

    @property
    def status(self) -> str:
        """The state: ``pending``, ``running``, ``waiting``, ``succeeded``, ``failed``, ``not-started`` or
        ``cancelled``."""
        state: str = self.why()["state"]
        return state

    def why(self) -> dict[str, Any]:
        """The state with its cause and a remedy, as ``longshore why --output json`` prints it."""
        return self._native.why()

    def summary(self) -> RunSummary[Run]:
        """The state, the number of tasks, the tags and more, as :func:`runs` lists them."""
        return summary_of(self, self._native.summary())

    @property
    def tags(self) -> dict[str, str]:
        """The tags, with their values. :meth:`tag` changes them."""
        return self.summary().tags

    def tag(self, *keys: str, **values: str | float | None) -> None:
        """Changes tags, also after the run has ended: ``run.tag("best", dataset="v2")`` sets two, and
        ``run.tag(best=None)`` removes one.

        :param keys: Tags without a value.
        :param values: Tags with their values; ``None`` removes a tag.
        :raises longshore.InvalidError: If a key or a value breaks the rules of labels.
        """
        self._native.tag(tag_changes(keys, values))

    @property
    def note(self) -> str | None:
        """The note. :meth:`set_note` changes it."""
        return self.summary().note

    def set_note(self, text: str | None) -> None:
        """Replaces the note, also after the run has ended; ``None`` removes it.

        :raises longshore.InvalidError: If it has more than 4096 bytes.
        """
        self._native.set_note(text)

    def usage(self, *, series: bool = True) -> Usage:
        """What the tasks use, or used in their last attempt: CPU, memory and GPUs.

        :param series: Of tasks that run, read the series, too, which takes a connection for each task.
        """
        return usage_of(self._native.usage(series))

    def outputs(
        self, to: str | os.PathLike[str] | None = None, *, task: str | None = None, force: bool = False
    ) -> Outputs:
        """The files that the tasks left: those that match ``outputs``, an option of :func:`run`.

        They are kept when a task ends, also if it fails or is cancelled, until the run is removed. Of a
        running task, they are collected now. Those of other clusters come from the run's object store, as
        they were uploaded last.

        :param to: Write the files to this folder, which is created if needed. Files that it already has
            are skipped, and all are verified. If the run has several tasks, each has a folder ``ROLE-INDEX``.
        :param task: Only the files of this task, as ``"worker/0"``, or of this role.
        :param force: Overwrite files with another content.
        :raises longshore.KubeError: If the run has no outputs, or the folder has files with another
            content.
        :raises longshore.InvalidError: If the run does not have the task or role.
        """
        return outputs_of(self._native.outputs(to, task, force))

    def metrics(self, *, logs: bool = True) -> dict[str, dict[str, float]]:
        """The last value of each metric of each task that has metrics, also while the run is active:
        ``run.metrics()["main/0"]["loss"]``. Tasks append them to the file ``LONGSHORE_METRICS``.

        :param logs: Read the metrics that the option ``metrics`` of :func:`run` names from the logs.
        """
        return metrics_of(self._native.metrics(logs))

    def sweep(self, *, logs: bool = True) -> list[Combination]:
        """The combinations of a sweep, by index, also while it runs. Combinations that were run again are
        as in their last run.

        :param logs: Read the metrics that the option ``metrics`` of :func:`run` names from the logs.
        :raises longshore.KubeError: If the run is no sweep.
        """
        return combinations_of(self._native.sweep(logs))

    def retry(self) -> Run:
        """Launches a run of the combinations of a sweep that failed or were cancelled, with the same code,
        command and options.

        :raises longshore.KubeError: If there are none.
        """
        refuse_while_importing()
        return Run(self._native.retry())

    def cancel(self) -> None:
        """Stops the run and keeps its record."""
        self._native.cancel()

    def remove(self) -> None:
        """Removes the run with its record and its outputs."""
        self._native.remove()

    def __repr__(self) -> str:
        return f"<Run {self.name} namespace={self.namespace}>"

    def _repr_html_(self) -> str:
        why = self.why()
        return f"<p><b>{escape(self.name)}</b> {escape(why['state'])}</p>"


def metrics_of(found: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The metrics in the notation of the extension module."""
    return {task["task"]: numbers_of(task["metrics"]) for task in found["tasks"]}


def numbers_of(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Values of metrics. NaN and infinity are strings in JSON."""
    return {name: float(value) for name, value in metrics.items()}


def combinations_of(table: Mapping[str, Any]) -> list[Combination]:
    """The combinations in the notation of the extension module."""
    return [
        Combination(
            index=row["index"],
            parameters=row["parameters"],
            state=row["state"],
            exit_code=row["exitCode"],
            metrics=numbers_of(row["metrics"]),
            started=time_of(row["started"]),
            finished=time_of(row["finished"]),
            run=row["run"],
            task=row["task"],
        )
        for row in table["combinations"]
    ]


def outputs_of(tasks: Sequence[Mapping[str, Any]]) -> Outputs:
    """The outputs in the notation of the extension module."""
    files: list[OutputFile] = []
    left_out: list[str] = []
    running: list[str] = []
    for task in tasks:
        folder = task["folder"]
        for file in task["manifest"]["files"]:
            local = None if folder is None else Path(folder, file["path"])
            files.append(OutputFile(task["task"], file["path"], file["size"], file["sha256"], local))
        left_out += task["left_out"]
        if not task["manifest"]["ended"]:
            running.append(task["task"])
    return Outputs(files, left_out, running)


def run(
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
    """Packs code, sends it to a cluster and launches a run of it.

    :param code: A folder, a Python script (with its folder), or a function of a module (with the
        module's folder). A function is called with ``args`` and ``kwargs``, which JSON must be able to
        represent; what it returns is discarded. Whoever may read pods can read the arguments.
    :param command: The command of each task: a program with its arguments, or one text for a shell;
        default: that of the folder's ``longshore.toml``, or the script or function.
    :param cluster: A cluster, the name of a context (one of ``[contexts]`` in the folder's
        ``longshore.toml``, or of the kubeconfig), or the path of a kubeconfig as a ``Path``. Default: the
        cluster of the command ``longshore run``: the one that the environment or the folder's
        ``longshore.toml`` names, in a pod that of the pod, otherwise the embedded cluster of this machine,
        which is started if needed.
    :param workers: The number of tasks.
    :param roles: The number of tasks of each role of ``longshore.toml``.
    :param cpu: CPUs of each task, as ``2`` or ``"500m"``.
    :param memory: Memory of each task, as ``"4Gi"``.
    :param gpus: GPUs of each task.
    :param env: Environment variables of the tasks. They override those of ``longshore.toml``.
    :param args: The arguments of a function.
    :param kwargs: The keyword arguments of a function.
    :param sweep: Run the code for all combinations of the values of parameters, as
        ``{"lr": [0.1, 0.01], "seed": "1..5"}``, or for each mapping of a list. ``{lr}`` in the command
        stands for the value, which is also in the variable ``LONGSHORE_PARAM_LR``. The options
        ``parallel``, ``samples``, ``sweep_seed``, ``max_failed`` and ``metrics`` are those of
        ``longshore.toml``.
    :param options: Further keys of ``longshore.toml``, such as ``image="..."``, ``retries=2``,
        ``restart="run"``, ``checkpoint_dir="/results"``, ``timeout="2h"``, ``name="train"``,
        ``data={"digits": "folder"}``, ``outputs=["*.json"]``, ``tags={"dataset": "v2"}``, ``note="..."``, or
        ``code=False`` if the image contains the code. They override the file. Relative paths begin in the
        current folder. ``forward`` and ``notify`` are only of the command ``longshore run``.
    :raises longshore.LaunchError: If the run cannot start, or would launch itself again: if a task imports
        the module that launches it. Nothing remains in the cluster.
    :raises longshore.InvalidError: If an option has an invalid value.
    :raises FileNotFoundError: If the folder or script does not exist.
    :raises TypeError: If an argument has another type or an unknown name.
    """
    if isinstance(code, Task) and code.options:
        given: dict[str, Any] = {"command": command, "cluster": cluster, "workers": workers, "roles": roles, "cpu": cpu}
        given |= {"memory": memory, "gpus": gpus, "env": env, "sweep": sweep, **options}
        return run(code.function, args=args, kwargs=kwargs, **code._merged(given))
    check_options(options, run)
    located = locate(code, args, kwargs)
    command = command_of(command)
    refuse_launch_of_itself(located, command, env, sweep)
    if sweep is not None:
        options["sweep"] = sweep
    with located.folder() as folder:
        chosen, context = _clusters.choose(cluster, folder)
        return Run(
            launch(chosen, located, folder, command, workers, roles, cpu, memory, gpus, env, options, context)
        )


def launch(
    cluster: Any,
    code: Code,
    folder: Path,
    command: str | Iterable[str | os.PathLike[str]] | None,
    workers: int | None,
    roles: Mapping[str, int] | None,
    cpu: str | float | None,
    memory: str | None,
    gpus: int | None,
    env: Mapping[str, str] | None,
    options: Mapping[str, Any],
    context: str | None = None,
) -> Any:
    """Launches the code in a folder; with a cluster for asyncio, returns an awaitable."""
    if workers is not None and roles is not None:
        raise TypeError("workers is the number of tasks of a run without roles: give workers or roles, not both")
    variables = mapping("env", env or {})
    for variable in variables:
        if not variable or "=" in variable:
            raise InvalidError(f"{variable!r} is not a valid name of a variable: it must not be empty or contain '='")
    numbers = mapping("roles", roles or {}) if workers is None else {"main": workers}
    words = command_of(command)
    return _native.launch(
        cluster,
        folder,
        command=code.command if words is None else words,
        roles=[f"{role}={number}" for role, number in numbers.items()],
        env=[f"{name}={value}" for name, value in {**code.env, **variables}.items()],
        cpu=None if cpu is None else str(cpu),
        memory=memory,
        gpu=None if gpus is None else str(gpus),
        context=context,
        options=without_paths(options),
    )


def find_run(
    name: str = "last",
    namespace: str | None = None,
    *,
    all_users: bool = False,
    cluster: _clusters.AnyCluster = None,
) -> Run:
    """Finds a run by its name, by the beginning of its name, or the ``last`` one. Only the whole name finds
    a run of another user, which cannot be changed.

    :param namespace: Default: that of the cluster, or of the context.
    :param all_users: Find the runs of all users, and allow changes of them, such as :meth:`Run.cancel`.
    :param cluster: As for :func:`run`, with the current folder's ``longshore.toml``.
    :raises longshore.NotFoundError: If no run has this name.
    :raises longshore.InvalidError: If several runs do.
    """
    return Run(name, namespace, all_users=all_users, cluster=cluster)


def runs(
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
    """Lists runs and schedules, newest first: those that match all filters.

    :param state: One state, or several; ``active`` stands for pending and running, ``finished`` for
        succeeded, failed and cancelled.
    :param tags: Tags with their values; ``None``, or a key in a list, for any value.
    :param name: A pattern with ``*`` and ``?``.
    :param since: Only runs that were created at this time or later, or within this time: ``"2d"``.
    :param namespace: Default: that of the cluster.
    :param all_namespaces: The runs of all namespaces.
    :param mine: Only runs of the current user.
    :param all_users: Allow changes of runs of other users, such as :meth:`Run.cancel`.
    :param limit: At most this number of runs.
    :param cluster: As for :func:`run`, with the current folder's ``longshore.toml``.
    :raises longshore.InvalidError: If a filter is invalid.
    """
    given = filters(state, tags, name, since, namespace, all_namespaces, mine, all_users, limit)
    found = _native.list_runs(_clusters.choose(cluster)[0], **given)
    return [summary_of(Run(native), summary) for native, summary in found]


def compare(one: Run, other: Run) -> dict[str, Any]:
    """What differs between two runs of a cluster: results, options, names of environment variables, and
    code, as ``longshore diff --output json`` prints it."""
    return one._native.compare(other._native)


#: The keyword arguments of :func:`run` that a :class:`Task` can have.
_ARGUMENTS = frozenset({"cluster", "command", "cpu", "env", "gpus", "memory", "roles", "sweep", "workers"})


class Task:
    """A function that can be launched. Calling it calls the function here."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        # The image of a task may have an older version of this package, with fewer options.
        if not in_a_task():
            check_options({name: value for name, value in options.items() if name not in _ARGUMENTS}, run)
        self.function = function
        self.options = dict(options)
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def launch(self, *args: Any, **kwargs: Any) -> Run:
        """Launches the function with these arguments, as :func:`run` does."""
        return run(self.function, args=args, kwargs=kwargs, **self.options)

    def with_options(self, **options: Any) -> Task:
        """The same function with other options of :func:`run`, such as ``cluster`` or ``workers``."""
        return Task(self.function, {**self.options, **options})

    def _merged(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of the function, and these, which override them unless they are ``None``."""
        return {**self.options, **{name: value for name, value in options.items() if value is not None}}

    def __repr__(self) -> str:
        return f"<Task {self.__name__}>"


@overload
def task(function: Callable[..., Any], /, **options: Any) -> Task: ...
@overload
def task(function: None = None, /, **options: Any) -> Callable[[Callable[..., Any]], Task]: ...
def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a function launchable: ``@task`` or ``@task(gpus=1, workers=4)``.

    The options are those of :func:`run`. In the tasks, the module of the function is imported, so
    the image needs what the module imports, including this package.
    """
    if function is not None:
        return Task(function, options)
    return lambda function: Task(function, options)
