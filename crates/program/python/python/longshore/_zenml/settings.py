"""The settings of steps and of the orchestrator."""

# mypy: disable-error-code="import-not-found,misc,no-any-return"
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

from pydantic import Field, PositiveInt
from zenml.config.base_settings import BaseSettings
from zenml.orchestrators import BaseOrchestratorConfig


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
