from collections.abc import Mapping
from typing import Any

from .cluster_resolver import _Base

class TFConfigClusterResolver(_Base):
    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None: ...

class SlurmClusterResolver(_Base):
    def __init__(
        self,
        jobs: Mapping[str, int] | None = None,
        port_base: int = 8888,
        gpus_per_node: int | None = None,
        gpus_per_task: int | None = None,
        tasks_per_node: int | None = None,
        auto_set_gpu: bool = False,
        rpc_layer: str | None = "grpc",
    ) -> None: ...
    def get_task_info(self) -> tuple[str | None, int | None]: ...

class SageMakerClusterResolver(_Base):
    def __init__(
        self,
        port: int = 2223,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None: ...

class UnionResolver(_Base):
    def __init__(
        self,
        *resolvers: Any,
        rpc_layer: str | None = None,
        task_type: str | None = None,
        task_id: int | None = None,
    ) -> None: ...
