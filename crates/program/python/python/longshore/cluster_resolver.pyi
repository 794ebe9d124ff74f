import enum
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ._native import Generations, Tasks

_Selector = str | Mapping[str, str]

class ExecutableLocation(enum.Enum):
    WITHIN_CLUSTER = 0
    OFF_CLUSTER = 1

class _Base:
    # The members that all resolvers have. At run time, TensorFlow's class is the base if it is installed.
    #
    # A spec is a `tf.train.ClusterSpec` if TensorFlow is installed, and a `longshore.ClusterSpec`
    # otherwise. The return type is `Any`, because no type checker knows which of them applies.

    def cluster_spec(self) -> Any: ...
    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str: ...
    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]: ...
    @property
    def environment(self) -> str: ...
    @property
    def task_type(self) -> str | None: ...
    @task_type.setter
    def task_type(self, task_type: str | None) -> None: ...
    @property
    def task_id(self) -> int | None: ...
    @task_id.setter
    def task_id(self, task_id: int | None) -> None: ...
    @property
    def rpc_layer(self) -> str | None: ...
    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str | None) -> None: ...

class KubernetesClusterResolver(_Base):
    def __init__(
        self,
        job_to_label_mapping: Mapping[str, _Selector | Sequence[_Selector]] | None = None,
        tf_server_port: int | str = 8470,
        rpc_layer: str | None = "grpc",
        override_client: Any = None,
        executable_location: Any = ...,
        *,
        namespace: str | None = None,
        all_namespaces: bool = False,
        address: Literal["pod_ip", "host_ip", "dns", "hostname"] = "pod_ip",
        family: Literal["primary", "ipv4", "ipv6"] = "primary",
        order: Literal["natural", "lexical", "index"] = "natural",
        not_running: Literal["fail", "skip_finished", "skip", "keep"] = "fail",
        ready: bool = False,
        once: bool = False,
        tensorflow: bool = False,
    ) -> None: ...
    def tasks(self) -> Tasks: ...
    def accelerators(self) -> list[dict[str, Any]]: ...
    def find_own_task(self) -> KubernetesClusterResolver: ...
    def wait(self, needed: Mapping[str, int], timeout: float | None = None) -> Any: ...
    def watch(self) -> Generations: ...
