"""An orchestrator for ZenML that executes each step of a pipeline as a Longshore run.

Register it as a flavor of ZenML, with its source
``longshore.zenml_orchestrator.LongshoreOrchestratorFlavor``. This module requires ZenML, which
imports it when a stack uses the flavor; the rest of the package does not.
"""

# mypy: disable-error-code="import-not-found,misc,no-any-return"
# pyright: reportMissingImports=false

from __future__ import annotations

import contextvars
import os
import queue
import re
import sys
import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from pydantic import Field, PositiveInt
from zenml.client import Client
from zenml.config.base_settings import BaseSettings
from zenml.config.global_config import GlobalConfiguration
from zenml.constants import (
    ENV_ZENML_CONSOLE_LOGGING_FORMAT,
    ENV_ZENML_DEBUG,
    ENV_ZENML_LOCAL_STORES_PATH,
    ENV_ZENML_LOGGING_COLORS_DISABLED,
    ENV_ZENML_LOGGING_VERBOSITY,
)
from zenml.entrypoints import StepEntrypointConfiguration
from zenml.enums import ExecutionMode, ExecutionStatus
from zenml.exceptions import RunStoppedException
from zenml.logger import get_logger
from zenml.models import PipelineRunUpdate
from zenml.orchestrators import (
    BaseOrchestratorConfig,
    BaseOrchestratorFlavor,
    ContainerizedOrchestrator,
    SubmissionResult,
    publish_utils,
)
from zenml.orchestrators.step_run_utils import StepRunRequestFactory
from zenml.pipelines.run_utils import create_placeholder_run
from zenml.stack import StackValidator
from zenml.utils import source_utils
from zenml.utils.time_utils import utc_now

from . import _native
from ._code import locate
from .errors import ForbiddenError, KubeError
from .runs import Run, find_run, launch

__all__ = [
    "LongshoreOrchestrator",
    "LongshoreOrchestratorConfig",
    "LongshoreOrchestratorFlavor",
    "LongshoreOrchestratorSettings",
    "LongshoreStepEntrypoint",
]

_log = get_logger(__name__)

#: The variable of a step with the ID of ZenML's orchestrator run.
RUN_ID = "LONGSHORE_ZENML_RUN_ID"

#: The label of the Longshore runs of a pipeline run. The value is the ID of the pipeline run.
PIPELINE_RUN_LABEL = "zenml-run"

#: The label with the name of the step.
STEP_LABEL = "zenml-step"

#: The label with the name of a Longshore run.
_RUN_LABEL = "longshore.dev/run"

#: The container runtime of a node that runs pods as processes of this machine.
_EMBEDDED_RUNTIME = "longshore://"

#: How often to check whether the pipeline run was stopped, in seconds.
_STOP_POLL_INTERVAL = 2.0

#: Variables of this process that steps on the same machine need to find the same programs and modules.
_CALLER_VARIABLES = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH")

#: Variables of this process that choose the format of ZenML's log.
_LOG_VARIABLES = (
    ENV_ZENML_CONSOLE_LOGGING_FORMAT,
    ENV_ZENML_DEBUG,
    ENV_ZENML_LOGGING_COLORS_DISABLED,
    ENV_ZENML_LOGGING_VERBOSITY,
)

#: Starts ZenML's entrypoint in the folder of the code. The entrypoint itself changes to ``/app`` of an
#: image. The configuration folder is the step's own, because ZenML writes to it.
_START = """
import os, runpy, sys
folder = os.getcwd()
sys.path[0] = folder
os.environ["ZENML_CUSTOM_SOURCE_ROOT"] = folder
os.environ["ZENML_CONFIG_PATH"] = os.path.join(folder, ".zenml-config")
runpy.run_module("zenml.entrypoints.entrypoint", run_name="__main__", alter_sys=True)
"""

#: Units of memory in ZenML's resource settings, and the suffixes of quantities in Kubernetes.
_MEMORY_UNITS = {"B": "", "KB": "k", "KIB": "Ki"} | {
    unit + suffix: unit + end for unit in "MGTP" for suffix, end in (("B", ""), ("IB", "i"))
}


class LongshoreOrchestratorSettings(BaseSettings):
    """Settings of a step: ``@step(settings={"orchestrator": ...})``.

    Those of a pipeline, or of the orchestrator itself, apply to all steps without their own.
    """

    image: str | None = Field(
        None,
        description="The image of the step, with Python, ZenML, the package longshore and what the step "
        "imports. Longshore sends the code. Without an image, ZenML builds one. The embedded cluster uses "
        "no image.",
    )
    cpu: str | float | None = Field(None, description="CPUs, such as 2 or 500m.")
    memory: str | None = Field(None, description="Memory, such as 4Gi.")
    gpus: int | None = Field(None, description="The number of GPUs.")
    timeout: str | None = Field(None, description="The maximum duration of the step, such as 90s or 2h.")
    options: dict[str, Any] = Field(
        {}, description="Further keys of longshore.toml, such as queue, node_selector or volumes."
    )


class LongshoreOrchestratorConfig(BaseOrchestratorConfig, LongshoreOrchestratorSettings):
    """The configuration of the orchestrator.

    Without ``context`` and ``kubeconfig``, the cluster is that of the command ``longshore run``: by
    default, the embedded cluster of this machine, which is started if needed.
    """

    context: str | None = Field(None, description="The context of the kubeconfig.")
    kubeconfig: str | None = Field(None, description="The path of the kubeconfig.")
    namespace: str | None = Field(None, description="The namespace; the default is that of the context.")
    max_parallelism: PositiveInt | None = Field(
        None, description="The maximum number of steps of a pipeline that run at the same time."
    )

    @property
    def is_local(self) -> bool:
        """Whether the orchestrator uses this machine by default."""
        return self.context is None and self.kubeconfig is None

    @property
    def is_synchronous(self) -> bool:
        """The call that runs a pipeline returns when the pipeline has ended."""
        return True

    @property
    def handles_step_retries(self) -> bool:
        """Longshore restarts failed steps, also those whose pod is lost."""
        return True


class LongshoreStepEntrypoint(StepEntrypointConfiguration):
    """Executes a step in the folder of the code that Longshore sent."""

    def prepare_code_environment(self) -> None:
        """The current folder is the source root already."""


class LongshoreOrchestrator(ContainerizedOrchestrator):
    """Executes the steps of a pipeline as Longshore runs, in the order of their dependencies."""

    _connection: _native.Cluster | None = None
    _shares_files: bool | None = None

    @property
    def config(self) -> LongshoreOrchestratorConfig:
        """The configuration."""
        config: Any = self._config
        assert isinstance(config, LongshoreOrchestratorConfig)
        return config

    @property
    def settings_class(self) -> type[BaseSettings] | None:
        """The class of a step's settings."""
        return LongshoreOrchestratorSettings

    @property
    def supported_execution_modes(self) -> list[ExecutionMode]:
        """All modes: stop the other steps, start no further ones, or only those that can succeed."""
        return [ExecutionMode.FAIL_FAST, ExecutionMode.STOP_ON_FAILURE, ExecutionMode.CONTINUE_ON_FAILURE]

    @property
    def validator(self) -> StackValidator | None:
        """Checks that the steps can reach the other components of the stack."""
        return StackValidator(custom_validation_function=self._validate)

    def get_orchestrator_run_id(self) -> str:
        """The ID of the orchestrator run; only in a step."""
        try:
            return os.environ[RUN_ID]
        except KeyError:
            raise RuntimeError(f"not in a step of Longshore's orchestrator: {RUN_ID} is not set") from None

    def get_step_run_metadata(self, info: Any) -> dict[str, Any]:
        """The name of the Longshore run, for ``longshore logs`` and ``longshore why``."""
        name = os.environ.get("LONGSHORE_RUN")
        return {} if name is None else {"longshore_run": name}

    def get_docker_builds(self, snapshot: Any) -> list[Any]:
        """The images to build: none on the embedded cluster, or if all steps have an image.

        :raises RuntimeError: If the cluster needs an image and the stack has no container registry.
        """
        steps = snapshot.step_configurations.values()
        if self.shares_files() or all(self._settings(step).image for step in steps):
            return []
        builds = super().get_docker_builds(snapshot)
        if builds and Client().active_stack.container_registry is None:
            raise RuntimeError(
                "the steps need an image that the cluster can pull: set `image` of the orchestrator, or "
                "add a container registry to the stack, for the image that ZenML builds"
            )
        return builds

    def submit_pipeline(
        self,
        snapshot: Any,
        stack: Any,
        base_environment: dict[str, str],
        step_environments: dict[str, dict[str, str]],
        placeholder_run: Any = None,
    ) -> SubmissionResult | None:
        """Runs a pipeline, and returns when it has ended.

        :raises RuntimeError: If steps fail, with the cause of each.
        :raises zenml.exceptions.RunStoppedException: If the pipeline run was stopped.
        """
        pipeline_run = placeholder_run or create_placeholder_run(snapshot=snapshot)
        orchestrator_run_id = str(uuid4())
        Client().zen_store.update_run(
            run_id=pipeline_run.id,
            run_update=PipelineRunUpdate(orchestrator_run_id=orchestrator_run_id),
        )
        _Execution(self, snapshot, stack, pipeline_run, orchestrator_run_id, step_environments).execute()
        return None

    def cluster(self, folder: Path | None = None) -> _native.Cluster:
        """The cluster of the configuration, otherwise that of the command ``longshore run``.

        :param folder: The folder whose ``longshore.toml`` may name the cluster; default: the source root.
        """
        if self._connection is None:
            config = self.config
            if config.is_local:
                self._connection = _native.selected_cluster(folder or source_root())
            else:
                self._connection = _native.Cluster(kubeconfig=config.kubeconfig, context=config.context)
        return self._connection

    def shares_files(self) -> bool:
        """Whether the pods are processes of this machine, which need no image."""
        if self._shares_files is None:
            try:
                runtimes = [
                    node.field("status", "nodeInfo", "containerRuntimeVersion") or ""
                    for node in self.cluster().view("nodes")
                ]
            except ForbiddenError as error:
                _log.debug("The nodes of the cluster cannot be read: %s", error)
                runtimes = []
            self._shares_files = any(runtime.startswith(_EMBEDDED_RUNTIME) for runtime in runtimes)
        return self._shares_files

    def launch(
        self,
        name: str,
        step: Any,
        snapshot: Any,
        environment: Mapping[str, str],
        orchestrator_run_id: str,
        pipeline_run_id: UUID,
    ) -> Run:
        """Launches the run of a step."""
        settings = self._settings(step)
        arguments: dict[str, Any] = {"step_name": name, "snapshot_id": snapshot.id}
        sends_code = self.shares_files() or settings.image is not None
        env = {RUN_ID: orchestrator_run_id}
        if sends_code:
            python = sys.executable if self.shares_files() else "python3"
            command = [python, "-c", _START, *LongshoreStepEntrypoint.get_entrypoint_arguments(**arguments)]
        else:
            command = [
                *StepEntrypointConfiguration.get_entrypoint_command(),
                *StepEntrypointConfiguration.get_entrypoint_arguments(**arguments),
            ]
        passed = list(_LOG_VARIABLES)
        if self.shares_files():
            passed += _CALLER_VARIABLES
            env[ENV_ZENML_LOCAL_STORES_PATH] = GlobalConfiguration().local_stores_path
        caller = {variable: os.environ[variable] for variable in passed if variable in os.environ}
        options = {
            "name": run_name(f"{snapshot.pipeline_configuration.name}-{name}"),
            "namespace": self.config.namespace,
            "image": settings.image if sends_code else self.get_image(snapshot, name),
            "timeout": settings.timeout,
            "retries": step.config.retry.max_retries if step.config.retry else None,
            "code": sends_code,
            **settings.options,
        }
        options["labels"] = {
            **settings.options.get("labels", {}),
            PIPELINE_RUN_LABEL: str(pipeline_run_id),
            STEP_LABEL: label_value(name),
        }
        folder = source_root()
        # As `longshore.run`, which has no option `code`: its argument of this name is the folder.
        launched = launch(
            self.cluster(),
            locate(folder),
            folder,
            command,
            workers=1,
            roles=None,
            # The values are stored in a Secret.
            env={**caller, **environment, **env},
            options=options,
            **self._resources(step, settings),
        )
        return Run(launched)

    def _settings(self, step: Any) -> LongshoreOrchestratorSettings:
        settings = self.get_settings(step)
        assert isinstance(settings, LongshoreOrchestratorSettings)
        return settings

    def _resources(self, step: Any, settings: LongshoreOrchestratorSettings) -> dict[str, Any]:
        """The resources of the settings, otherwise those of ZenML's own ``ResourceSettings``."""
        resources = {"cpu": settings.cpu, "memory": settings.memory, "gpus": settings.gpus}
        if self.requires_resources_in_orchestration_environment(step):
            general = step.config.resource_settings
            memory = general.memory and memory_quantity(general.memory)
            defaults = {"cpu": general.cpu_count, "memory": memory, "gpus": general.gpu_count or None}
            for name, value in resources.items():
                resources[name] = defaults[name] if value is None else value
        return resources

    def _validate(self, stack: Any) -> tuple[bool, str]:
        """Whether the steps can reach the store and the components of a stack, and why not."""
        if self.shares_files():
            return True, ""
        if Client().zen_store.is_local_store():
            return False, (
                f"the orchestrator {self.name!r} runs steps on another machine, where they cannot reach "
                "ZenML's database or server on this one: connect to a server with `zenml login`"
            )
        local = [component.name for component in stack.all_components if component.local_path is not None]
        if local:
            return False, (
                f"the orchestrator {self.name!r} runs steps on another machine, where they cannot reach "
                f"the files of these components on this one: {', '.join(local)}"
            )
        return True, ""

    def _stop_run_forcefully(self, pipeline_run: Any) -> None:
        """Cancels the runs of all steps. The process that runs the pipeline starts no further ones."""
        cluster = self.cluster(Path(Client.find_repository() or Path.cwd()))
        namespace = self.config.namespace or cluster.default_namespace
        jobs = cluster.view("jobs", namespace).filter(labels={PIPELINE_RUN_LABEL: str(pipeline_run.id)})
        for name in sorted({job.labels[_RUN_LABEL] for job in jobs}):
            find_run(name, namespace, cluster=cluster).cancel()


class LongshoreOrchestratorFlavor(BaseOrchestratorFlavor):
    """The flavor ``longshore``."""

    @property
    def name(self) -> str:
        """The name of the flavor."""
        return "longshore"

    @property
    def config_class(self) -> type[BaseOrchestratorConfig]:
        """The class of the configuration."""
        return LongshoreOrchestratorConfig

    @property
    def implementation_class(self) -> type[LongshoreOrchestrator]:
        """The class of the orchestrator."""
        return LongshoreOrchestrator


class _Ended(NamedTuple):
    """The end of a step."""

    name: str
    failure: str | None = None
    #: Whether its run was cancelled because of another step or an interruption.
    cancelled: bool = False


class _Execution:
    """One execution of a pipeline: a thread for each run that is active."""

    def __init__(
        self,
        orchestrator: LongshoreOrchestrator,
        snapshot: Any,
        stack: Any,
        pipeline_run: Any,
        orchestrator_run_id: str,
        environments: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._orchestrator = orchestrator
        self._snapshot = snapshot
        self._pipeline_run = pipeline_run
        self._orchestrator_run_id = orchestrator_run_id
        self._environments = environments
        self._steps: dict[str, Any] = dict(snapshot.step_configurations)
        self._mode: ExecutionMode = snapshot.pipeline_configuration.execution_mode
        # Records steps that fail before ZenML's code in them starts.
        self._requests = StepRunRequestFactory(snapshot=snapshot, pipeline_run=pipeline_run, stack=stack)
        self._ended: queue.Queue[_Ended] = queue.Queue()
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._cancelled = False
        self._next_stop_check = 0.0

    def execute(self) -> None:
        """Executes all steps, and returns when the last run has ended."""
        order = Order({name: step.spec.upstream_steps for name, step in self._steps.items()})
        failures: dict[str, str] = {}
        limit = self._orchestrator.config.max_parallelism or len(self._steps)
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
            ended = _Ended(name, f"step `{name}` failed: {error}")
        self._ended.put(ended)

    def _launch(self, name: str) -> Run:
        launched = self._orchestrator.launch(
            name,
            self._steps[name],
            self._snapshot,
            self._environments[name],
            self._orchestrator_run_id,
            self._pipeline_run.id,
        )
        with self._lock:
            self._runs[name] = launched
            cancelled = self._cancelled
        if cancelled:
            launched.cancel()
        _log.info("Step `%s` was launched as the run `%s`.", name, launched.name)
        for warning in launched.warnings:
            _log.warning("Step `%s`: %s", name, warning)
        return launched

    def _follow_run(self, name: str, launched: Run) -> _Ended:
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
            return _Ended(name)
        why = launched.why()
        cancelled = self._cancelled and why["state"] == "cancelled"
        return _Ended(name, self._cause(name, why.get("summary") or finished["reason"], why), cancelled)

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


class Order:
    """The order of steps: which are waiting, and which are active.

    >>> order = Order({"load": [], "train": ["load"], "test": ["load"], "report": ["train", "test"]})
    >>> order.ready()
    ['load']
    >>> order.start("load")
    >>> order.ready()
    []
    >>> order.end("load", succeeded=True)
    >>> order.ready()
    ['train', 'test']
    >>> order.start("train")
    >>> order.end("train", succeeded=False)
    >>> order.ready(), order.waiting
    (['test'], ['test', 'report'])
    """

    def __init__(self, upstream: Mapping[str, Collection[str]]) -> None:
        # Upstream steps that ZenML took from its cache are not in the pipeline any more.
        self._missing = {
            name: {other for other in others if other in upstream} for name, others in upstream.items()
        }
        self.active: set[str] = set()

    @property
    def waiting(self) -> list[str]:
        """The steps that were not started."""
        return list(self._missing)

    def ready(self) -> list[str]:
        """The steps that can start: all their upstream steps have succeeded."""
        return [name for name, others in self._missing.items() if not others]

    def start(self, name: str) -> None:
        """Records that a step was started."""
        del self._missing[name]
        self.active.add(name)

    def end(self, name: str, *, succeeded: bool) -> None:
        """Records that a step has ended."""
        self.active.discard(name)
        if succeeded:
            for others in self._missing.values():
                others.discard(name)


def source_root() -> Path:
    """ZenML's source root: the folder that the steps import their modules from."""
    return Path(source_utils.get_source_root())


def run_name(text: str) -> str:
    """A name of a run, which is a DNS label.

    >>> run_name("Training_digits-load data")
    'training-digits-load-data'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "step"


def label_value(text: str) -> str:
    """A value of a label: at most 63 letters, digits, dashes, underscores and dots.

    >>> label_value("load data")
    'load-data'
    """
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:63].strip("-_.")


def memory_quantity(memory: str) -> str:
    """ZenML's amount of memory as a quantity of Kubernetes.

    >>> memory_quantity("512MB"), memory_quantity("4GiB"), memory_quantity("64KB")
    ('512M', '4Gi', '64k')
    """
    number, unit = re.fullmatch(r"([0-9]+)([A-Za-z]+)", memory).groups()  # type: ignore[union-attr]
    return number + _MEMORY_UNITS[unit.upper()]
