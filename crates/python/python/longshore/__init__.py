"""Longshore: a Kubernetes client, a resolver for cluster specs, and an embedded cluster.

>>> import longshore
>>> with longshore.EmbeddedCluster(pods=False) as embedded:
...     cluster = embedded.cluster
...     created = cluster.create({"kind": "ConfigMap", "apiVersion": "v1",
...                               "metadata": {"name": "a", "namespace": "default"}})
...     [item.name for item in cluster.view("configmaps", "default")]
['a']
"""

from typing import TYPE_CHECKING

from . import errors
from ._native import (
    Cache,
    Cluster,
    ClusterSpec,
    EmbeddedCluster,
    Faults,
    Generations,
    Item,
    PortForward,
    Session,
    Stream,
    Tasks,
    View,
    Watch,
    __version__,
)
from .errors import (
    APIError,
    AlreadyExistsError,
    ClosedError,
    ConfigError,
    ConflictError,
    EmbeddedError,
    ForbiddenError,
    InvalidError,
    KubeError,
    LaunchError,
    MissingTasksError,
    NamespaceError,
    NoSuchTaskError,
    NotATaskError,
    NotFoundError,
    PodError,
    SpecError,
    StatusError,
    UnreachableError,
    WaitTimeoutError,
)
from .events import Generation, WatchEvent, WatchEventType
from .results import Output

if TYPE_CHECKING:
    from .cluster_resolver import ExecutableLocation, KubernetesClusterResolver
    from .zenml import OrchestratorKubernetesBackend, PipelineRun

__all__ = [
    "APIError",
    "AlreadyExistsError",
    "Cache",
    "ClosedError",
    "Cluster",
    "ClusterSpec",
    "ConfigError",
    "ConflictError",
    "EmbeddedCluster",
    "EmbeddedError",
    "ExecutableLocation",
    "Faults",
    "ForbiddenError",
    "Generation",
    "Generations",
    "InvalidError",
    "Item",
    "KubeError",
    "KubernetesClusterResolver",
    "LaunchError",
    "MissingTasksError",
    "NamespaceError",
    "NoSuchTaskError",
    "NotATaskError",
    "NotFoundError",
    "OrchestratorKubernetesBackend",
    "Output",
    "PipelineRun",
    "PodError",
    "PortForward",
    "Session",
    "SpecError",
    "StatusError",
    "Stream",
    "Tasks",
    "UnreachableError",
    "View",
    "WaitTimeoutError",
    "Watch",
    "WatchEvent",
    "WatchEventType",
    "__version__",
    "errors",
]

#: Imported on first use, because these modules import TensorFlow or ZenML if it is installed.
_LAZY = {
    "ExecutableLocation": "cluster_resolver",
    "KubernetesClusterResolver": "cluster_resolver",
    "OrchestratorKubernetesBackend": "zenml",
    "PipelineRun": "zenml",
}

#: Names that users may expect but that do not exist, and what to use instead.
_UNAVAILABLE = {
    "run": "runs cannot be launched from Python yet, but for ZenML's pipelines: use the command `longshore run`",
}

if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _LAZY:
            from importlib import import_module

            return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
        text = f"module {__name__!r} has no attribute {name!r}"
        if name in _UNAVAILABLE:
            text += f": {_UNAVAILABLE[name]}"
        raise AttributeError(text)


def __dir__() -> list[str]:
    return __all__
