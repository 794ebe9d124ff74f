"""Longshore: a Kubernetes client, a resolver for cluster specs, and an embedded cluster.

>>> import longshore
>>> with longshore.EmbeddedCluster(pods=False) as embedded:
...     cluster = embedded.cluster
...     created = cluster.create({"kind": "ConfigMap", "apiVersion": "v1",
...                               "metadata": {"name": "a", "namespace": "default"}})
...     [item.name for item in cluster.view("configmaps", "default")]
['a']
"""

from . import errors
from ._native import (
    Cache,
    Cluster,
    ClusterSpec,
    EmbeddedCluster,
    Faults,
    Generations,
    Item,
    Leadership,
    PortForward,
    Replay,
    Session,
    Snapshot,
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

#: As in ``typing``, whose import takes as long as that of the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cluster_resolver import ExecutableLocation, KubernetesClusterResolver
    from .events import Generation, WatchEvent, WatchEventType
    from .results import Output
    from .runs import Combination, LogLine, OutputFile, Outputs, Result, Run, Task, find_run, run, task
    from .zenml import OrchestratorKubernetesBackend, PipelineRun

__all__ = [
    "APIError",
    "AlreadyExistsError",
    "Cache",
    "ClosedError",
    "Cluster",
    "ClusterSpec",
    "Combination",
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
    "Leadership",
    "LogLine",
    "MissingTasksError",
    "NamespaceError",
    "NoSuchTaskError",
    "NotATaskError",
    "NotFoundError",
    "OrchestratorKubernetesBackend",
    "Output",
    "OutputFile",
    "Outputs",
    "PipelineRun",
    "PodError",
    "PortForward",
    "Replay",
    "Result",
    "Run",
    "Session",
    "Snapshot",
    "SpecError",
    "StatusError",
    "Stream",
    "Task",
    "Tasks",
    "UnreachableError",
    "View",
    "WaitTimeoutError",
    "Watch",
    "WatchEvent",
    "WatchEventType",
    "__version__",
    "errors",
    "find_run",
    "run",
    "task",
]

#: Imported on first use: some of these modules import TensorFlow or ZenML if it is installed, and
#: all take time.
_LAZY = {
    "Combination": "runs",
    "ExecutableLocation": "cluster_resolver",
    "Generation": "events",
    "KubernetesClusterResolver": "cluster_resolver",
    "OrchestratorKubernetesBackend": "zenml",
    "LogLine": "runs",
    "Output": "results",
    "OutputFile": "runs",
    "Outputs": "runs",
    "PipelineRun": "zenml",
    "Result": "runs",
    "Run": "runs",
    "Task": "runs",
    "WatchEvent": "events",
    "WatchEventType": "events",
    "find_run": "runs",
    "run": "runs",
    "task": "runs",
}

if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _LAZY:
            from importlib import import_module

            return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
