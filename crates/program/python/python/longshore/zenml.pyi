import os
from collections.abc import Mapping
from typing import Any

from ._native import Run, Stream

class PipelineRun:
    config: dict[str, Any]
    exit_code: int | None
    reason: str | None

    def __init__(self, native: Run, config: dict[str, Any]) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    def follow(self, *, logs: bool = True) -> Stream[dict[str, Any]]: ...
    def wait(self, *, timeout: float | None = None, logs: bool = True) -> int | None: ...
    def cancel(self) -> None: ...

class OrchestratorKubernetesBackend:
    BACKEND_TYPE: str
    image: str
    job_prefix: str
    extra_labels: Mapping[str, Any] | None
    extra_annotations: Mapping[str, Any] | None
    namespace: str | None
    image_pull_policy: str
    kubernetes_config_path: str | os.PathLike[str]
    settings: str | os.PathLike[str] | None
    last_run: PipelineRun | None

    def __init__(
        self,
        image: str = "python:3-slim",
        job_prefix: str = "zenml-",
        extra_labels: Mapping[str, Any] | None = None,
        extra_annotations: Mapping[str, Any] | None = None,
        namespace: str | None = None,
        image_pull_policy: str = "IfNotPresent",
        kubernetes_config_path: str | os.PathLike[str] = "~/.kube/config",
        *,
        settings: str | os.PathLike[str] | None = None,
    ) -> None: ...
    def to_config(self) -> dict[str, Any]: ...
    def create_job_object(self, config: dict[str, Any]) -> dict[str, Any]: ...
    def launch_job(self, config: dict[str, Any]) -> PipelineRun: ...
    def run(self, config: dict[str, Any], follow: bool = False) -> PipelineRun: ...
