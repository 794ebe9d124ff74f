"""The execution of a pipeline: starts its steps, follows their runs and records failures in ZenML."""

# mypy: disable-error-code="import-not-found,misc,no-any-return"
# pyright: reportMissingImports=false

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from zenml.client import Client
from zenml.enums import ExecutionMode, ExecutionStatus
from zenml.exceptions import RunStoppedException
from zenml.logger import get_logger
from zenml.orchestrators import publish_utils
from zenml.orchestrators.step_run_utils import StepRunRequestFactory
from zenml.utils.time_utils import utc_now

from ..errors import KubeError
from .._runs import Run
from .order import Order

_log = get_logger("longshore.zenml_orchestrator")

#: How often to check whether the pipeline run was stopped, in seconds.
_STOP_POLL_INTERVAL = 2.0


class Ended(NamedTuple):
    """The end of a step."""

    name: str
    failure: str | None = None
    #: Whether its run was cancelled because of another step or an interruption.
    cancelled: bool = False


class Execution:
    """One execution of a pipeline: a thread for each run that is active.

    :param launch: Launches the run of the step with this name.
    :param max_parallelism: The maximum number of steps that run at the same time.
    """

    def __init__(
        self,
        snapshot: Any,
        stack: Any,
        pipeline_run: Any,
        launch: Callable[[str], Run],
        max_parallelism: int | None,
    ) -> None:
        self._pipeline_run = pipeline_run
        self._launch_step = launch
        self._max_parallelism = max_parallelism
        self._steps: dict[str, Any] = dict(snapshot.step_configurations)
        self._mode: ExecutionMode = snapshot.pipeline_configuration.execution_mode
        # Records steps that fail before ZenML's code in them starts.
        self._requests = StepRunRequestFactory(snapshot=snapshot, pipeline_run=pipeline_run, stack=stack)
        self._ended: queue.Queue[Ended] = queue.Queue()
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._cancelled = False
        self._next_stop_check = 0.0

    def execute(self) -> None:
        """Executes all steps, and returns when the last run has ended."""
        order = Order({name: step.spec.upstream_steps for name, step in self._steps.items()})
        failures: dict[str, str] = {}
        limit = self._max_parallelism or len(self._steps)
        stopped = False
        began = time.monotonic()
        try:
            while True:
                if not stopped and not (failures and self._mode != ExecutionMode.CONTINUE_ON_FAILURE):
                    for name in order.ready()[: max(0, limit - len(order.active))]:
                        order.start(name)
                        self._start(name)
                if not order.active:
                    break
                try:
                    ended = self._ended.get(timeout=_STOP_POLL_INTERVAL)
                except queue.Empty:
                    stopped = stopped or self._is_stopped()
                    continue
                order.end(ended.name, succeeded=ended.failure is None)
                stopped = stopped or self._is_stopped(now=ended.failure is not None)
                if ended.failure is None:
                    continue
                was_stopped = stopped or ended.cancelled
                self._record_failure(ended.name, was_stopped)
                if not was_stopped:
                    failures[ended.name] = ended.failure
                    _log.error("%s", ended.failure)
                    if self._mode == ExecutionMode.FAIL_FAST:
                        self._cancel()
        except BaseException:
            # Ctrl-C, or an error of the store: no run may continue without the rest of the pipeline.
            self._interrupt(order.active)
            raise
        if order.waiting:
            _log.warning("These steps were not started: %s.", ", ".join(order.waiting))
        if stopped:
            self._publish(ExecutionStatus.STOPPING)
            raise RunStoppedException("the pipeline run was stopped")
        if failures:
            raise RuntimeError("; ".join(failures.values()))
        _log.info("The pipeline run has finished in %.1f s.", time.monotonic() - began)

    def _start(self, name: str) -> None:
        """Starts the thread of a step, with ZenML's context, so that the logs are stored."""
        run_here = contextvars.copy_context().run
        threading.Thread(target=run_here, args=(self._follow, name), daemon=True).start()

    def _follow(self, name: str) -> None:
        """Launches a step, shows its logs until it ends, and reports why it failed."""
        try:
            ended = self._follow_run(name, self._launch(name))
        except Exception as error:
            ended = Ended(name, f"step `{name}` failed: {error}")
        self._ended.put(ended)

    def _launch(self, name: str) -> Run:
        launched = self._launch_step(name)
        with self._lock:
            self._runs[name] = launched
            cancelled = self._cancelled
        if cancelled:
            launched.cancel()
        _log.info("Step `%s` was launched as the run `%s`.", name, launched.name)
        for warning in launched.warnings:
            _log.warning("Step `%s`: %s", name, warning)
        return launched

    def _follow_run(self, name: str, launched: Run) -> Ended:
        finished: dict[str, Any] = {"exitCode": 1, "reason": "the events of the run ended early"}
        for event in launched.events():
            kind = event["event"]
            if kind == "log":
                _log.info("[%s] %s", name, event["line"])
            elif kind == "waiting":
                _log.warning("Step `%s` waits: %s; %s", name, event["cause"], event["remedy"])
            elif kind == "retry":
                _log.warning("Step `%s` is restarted.", name)
            elif kind == "gap":
                _log.warning("Step `%s`: lines of the log are missing.", name)
            elif kind == "finished":
                finished = event
        if not finished["exitCode"]:
            return Ended(name)
        why = launched.why()
        cancelled = self._cancelled and why["state"] == "cancelled"
        return Ended(name, self._cause(name, why.get("summary") or finished["reason"], why), cancelled)

    def _cause(self, name: str, cause: str, why: Mapping[str, Any]) -> str:
        """Why a run failed, with the exception of the step if ZenML recorded one."""
        step_run = self._step_run(name)
        if step_run is not None and step_run.exception_info is not None:
            exception = step_run.exception_info.traceback.strip().splitlines()[-1]
            # The cause may end with the last line of the log.
            if exception not in cause:
                cause = f"{cause}: {exception}"
        remedy = (why.get("explanation") or {}).get("remedy")
        return f"step `{name}` failed: {cause}" + (f"; {remedy}" if remedy else "")

    def _step_run(self, name: str) -> Any:
        """ZenML's record of a step: the latest attempt, or ``None``."""
        page = Client().list_run_steps(
            name=name, pipeline_run_id=self._pipeline_run.id, sort_by="desc:created", size=1, hydrate=True
        )
        return page.items[0] if page.items else None

    def _record_failure(self, name: str, stopped: bool) -> None:
        """Records in ZenML that a step failed or was stopped, unless the step itself has."""
        try:
            step_run = self._step_run(name)
            if step_run is None and not stopped:
                request = self._requests.create_request(name)
                self._requests.populate_request(request)
                request.status = ExecutionStatus.FAILED
                request.end_time = utc_now()
                Client().zen_store.create_run_step(request)
            elif step_run is not None and not step_run.status.is_finished:
                if stopped:
                    publish_utils.publish_stopped_step_run(step_run.id)
                else:
                    publish_utils.publish_failed_step_run(step_run.id)
        except Exception as error:
            _log.warning("The failure of step `%s` was not recorded: %s", name, error)

    def _is_stopped(self, now: bool = False) -> bool:
        """Whether the pipeline run was stopped, for example with ``zenml pipeline runs stop``."""
        if not now and time.monotonic() < self._next_stop_check:
            return False
        self._next_stop_check = time.monotonic() + _STOP_POLL_INTERVAL
        try:
            status = Client().get_pipeline_run(self._pipeline_run.id, hydrate=False).status
        except Exception as error:
            _log.warning("The state of the pipeline run cannot be read: %s", error)
            return False
        return status in (ExecutionStatus.STOPPING, ExecutionStatus.STOPPED)

    def _publish(self, status: ExecutionStatus) -> None:
        try:
            publish_utils.publish_pipeline_run_status_update(self._pipeline_run.id, status)
        except Exception as error:
            _log.warning("The state of the pipeline run was not recorded: %s", error)

    def _cancel(self) -> None:
        """Cancels the active runs, and those that are being launched."""
        with self._lock:
            self._cancelled = True
            runs = dict(self._runs)
        for name, launched in runs.items():
            try:
                launched.cancel()
            except KubeError as error:
                _log.warning("The run `%s` of step `%s` was not cancelled: %s", launched.name, name, error)

    def _interrupt(self, active: Collection[str]) -> None:
        """Cancels the active runs and waits until they have ended."""
        if not active:
            return
        _log.warning("Cancelling the steps that are running: %s.", ", ".join(sorted(active)))
        # The steps record themselves as stopped, not as failed.
        self._publish(ExecutionStatus.STOPPING)
        self._cancel()
        remaining = set(active)
        while remaining:
            ended = self._ended.get()
            remaining.discard(ended.name)
            if ended.failure is not None:
                self._record_failure(ended.name, stopped=True)
        self._publish(ExecutionStatus.STOPPING)
