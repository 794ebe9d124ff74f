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
    from .environment_resolvers import (
        SageMakerClusterResolver,
        SlurmClusterResolver,
        TFConfigClusterResolver,
        UnionResolver,
    )
    from .events import Generation, WatchEvent, WatchEventType
    from .results import Output
    from ._runs import (
        Combination,
        LogLine,
        OutputFile,
        Outputs,
        Result,
        Run,
        Task,
        compare,
        find_run,
        run,
        runs,
        task,
    )
    from ._tracking import GpuUsage, RecordedUsage, RunSummary, TaskUsage, Usage, UsagePoint
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
    "GpuUsage",
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
    "RecordedUsage",
    "Replay",
    "Result",
    "Run",
    "RunSummary",
    "SageMakerClusterResolver",
    "Session",
    "SlurmClusterResolver",
    "Snapshot",
    "SpecError",
    "StatusError",
    "Stream",
    "TFConfigClusterResolver",
    "Task",
    "TaskUsage",
    "Tasks",
    "UnionResolver",
    "UnreachableError",
    "Usage",
    "UsagePoint",
    "View",
    "WaitTimeoutError",
    "Watch",
    "WatchEvent",
    "WatchEventType",
    "__version__",
    "compare",
    "errors",
    "find_run",
    "run",
    "runs",
    "task",
]

#: Imported on first use: some of these modules import TensorFlow or ZenML if it is installed, and
#: all take time.
_LAZY = {
    "Combination": "_runs",
    "ExecutableLocation": "cluster_resolver",
    "Generation": "events",
    "GpuUsage": "_tracking",
    "KubernetesClusterResolver": "cluster_resolver",
    "LogLine": "_runs",
    "OrchestratorKubernetesBackend": "zenml",
    "Output": "results",
    "OutputFile": "_runs",
    "Outputs": "_runs",
    "PipelineRun": "zenml",
    "RecordedUsage": "_tracking",
    "Result": "_runs",
    "Run": "_runs",
    "RunSummary": "_tracking",
    "SageMakerClusterResolver": "environment_resolvers",
    "SlurmClusterResolver": "environment_resolvers",
    "TFConfigClusterResolver": "environment_resolvers",
    "Task": "_runs",
    "TaskUsage": "_tracking",
    "UnionResolver": "environment_resolvers",
    "Usage": "_tracking",
    "UsagePoint": "_tracking",
    "WatchEvent": "events",
    "WatchEventType": "events",
    "compare": "_runs",
    "find_run": "_runs",
    "run": "_runs",
    "runs": "_runs",
    "task": "_runs",
}

if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _LAZY:
            from importlib import import_module

            return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
