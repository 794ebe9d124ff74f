"""An orchestrator for ZenML that executes each step of a pipeline as a Longshore run.

Register it as a flavor of ZenML, with its source
``longshore.zenml_orchestrator.LongshoreOrchestratorFlavor``. This module requires ZenML, which
imports it when a stack uses the flavor; the rest of the package does not.
"""

# mypy: disable-error-code="import-not-found,misc,no-any-return"
# pyright: reportMissingImports=false

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from zenml.client import Client
from zenml.config.base_settings import BaseSettings
from zenml.entrypoints import StepEntrypointConfiguration
from zenml.enums import ExecutionMode
from zenml.logger import get_logger
from zenml.models import PipelineRunUpdate
from zenml.orchestrators import (
    BaseOrchestratorConfig,
    BaseOrchestratorFlavor,
    ContainerizedOrchestrator,
    SubmissionResult,
)
from zenml.pipelines.run_utils import create_placeholder_run
from zenml.stack import StackValidator

from . import _native
from ._code import locate
from ._zenml.execution import Execution
from ._zenml.names import PIPELINE_RUN_LABEL, RUN_ID, RUN_LABEL, STEP_LABEL, label_value, run_name
from ._zenml.settings import LongshoreOrchestratorConfig, LongshoreOrchestratorSettings
from ._zenml.step import source_root, step_command, step_environment, step_resources
from .errors import ForbiddenError
from ._runs import Run, find_run, launch

__all__ = [
    "LongshoreOrchestrator",
    "LongshoreOrchestratorConfig",
    "LongshoreOrchestratorFlavor",
    "LongshoreOrchestratorSettings",
    "LongshoreStepEntrypoint",
]

_log = get_logger(__name__)

#: The container runtime of a node that runs pods as processes of this machine.
_EMBEDDED_RUNTIME = "longshore://"


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

        def launch_step(name: str) -> Run:
            step, environment = snapshot.step_configurations[name], step_environments[name]
            return self.launch(name, step, snapshot, environment, orchestrator_run_id, pipeline_run.id)

        Execution(snapshot, stack, pipeline_run, launch_step, self.config.max_parallelism).execute()
        return None

    def cluster(self, folder: Path | None = None) -> _native.Cluster:
        """The cluster of the configuration, otherwise that of the command ``longshore run``.

        :param folder: The folder whose ``longshore.toml`` may name the cluster; default: the source root.
        """
        if self._connection is None:
            config = self.config
            if config.is_local:
                self._connection, _ = _native.selected_cluster(folder or source_root())
            else:
                self._connection = _native.Cluster.from_kubeconfig(config.kubeconfig, config.context)
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
        if sends_code:
            python = sys.executable if self.shares_files() else "python3"
            command = step_command(python, LongshoreStepEntrypoint.get_entrypoint_arguments(**arguments))
        else:
            command = [
                *StepEntrypointConfiguration.get_entrypoint_command(),
                *StepEntrypointConfiguration.get_entrypoint_arguments(**arguments),
            ]
        general = None
        if self.requires_resources_in_orchestration_environment(step):
            general = step.config.resource_settings
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
            env={**step_environment(environment, self.shares_files()), RUN_ID: orchestrator_run_id},
            options=options,
            **step_resources(settings, general),
        )
        return Run(launched)

    def _settings(self, step: Any) -> LongshoreOrchestratorSettings:
        settings = self.get_settings(step)
        assert isinstance(settings, LongshoreOrchestratorSettings)
        return settings

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
        for name in sorted({job.labels[RUN_LABEL] for job in jobs}):
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
