"""Longshore: a Kubernetes client, a resolver of cluster specs, an embedded cluster.

>>> import longshore
>>> with longshore.EmbeddedCluster(pods=False) as embedded:
...     cluster = embedded.cluster
...     made = cluster.create({"kind": "ConfigMap", "apiVersion": "v1",
...                            "metadata": {"name": "a", "namespace": "default"}})
...     [item.name for item in cluster.view("configmaps", "default")]
['a']
"""

from . import errors
from ._native import (
    Cluster,
    ClusterSpec,
    EmbeddedCluster,
    Generations,
    Item,
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

#: Found when first asked for: where TensorFlow or ZenML is installed, they import it.
_LATER = {
    "ExecutableLocation": "cluster_resolver",
    "KubernetesClusterResolver": "cluster_resolver",
    "OrchestratorKubernetesBackend": "zenml",
    "PipelineRun": "zenml",
}

__all__ = sorted(
    [name for name in globals() if name[0].isupper()] + [*_LATER, "errors", "__version__"]
)


def __getattr__(name):
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return __all__
