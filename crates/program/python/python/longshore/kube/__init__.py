"""The names of the library ``kube`` 0.10, for programs written for it.

``import longshore.kube as kube`` is the only line that changes. The objects are those of the
cluster that :class:`Cluster` connects to; ``Cluster()`` still means ``kubectl proxy`` at
``http://localhost:8001/``. New programs use :class:`longshore.Cluster`.

>>> import longshore
>>> from longshore import kube
>>> with longshore.EmbeddedCluster(pods=False) as embedded:
...     with kube.Cluster.from_kubeconfig(embedded.kubeconfig) as cluster:
...         item = cluster.create({"apiVersion": "v1", "kind": "Secret",
...                                "metadata": {"name": "a", "namespace": "default"}})
...         item.kind is kube.Kind.Secret, item.meta.labels.set("tier", "web").meta.labels
(True, <Labels "tier=web">)
"""

try:
    import pyrsistent as _pyrsistent  # noqa: F401
except ImportError as error:
    raise ImportError("longshore.kube needs the library pyrsistent: pip install 'pyrsistent>=0.20'") from error

from ..errors import APIError, KubeError, NamespaceError, StatusError
from ._base import ItemABC, Kind, ViewABC
from ._cluster import Cluster
from ._daemonset import DaemonSetItem, DaemonSetView
from ._deployment import DeploymentItem, DeploymentView
from ._meta import ObjectMeta, ResourceLabels
from ._namespace import NamespaceItem, NamespacePhase, NamespaceView
from ._node import AddressType, NodeItem, NodeView
from ._pod import Container, ContainerState, PodItem, PodPhase, PodView
from ._proxy import APIServerProxy
from ._replicaset import (
    ReplicaSetItem,
    ReplicaSetView,
    ReplicationControllerItem,
    ReplicationControllerView,
)
from ._secret import SecretItem, SecretType, SecretView
from ._service import ServiceItem, ServiceView
from ._watch import ResourceWatcher, WatchEvent, WatchEventType

__all__ = [
    "APIError",
    "APIServerProxy",
    "AddressType",
    "Cluster",
    "Container",
    "ContainerState",
    "DaemonSetItem",
    "DaemonSetView",
    "DeploymentItem",
    "DeploymentView",
    "ItemABC",
    "Kind",
    "KubeError",
    "NamespaceError",
    "NamespaceItem",
    "NamespacePhase",
    "NamespaceView",
    "NodeItem",
    "NodeView",
    "ObjectMeta",
    "PodItem",
    "PodPhase",
    "PodView",
    "ReplicaSetItem",
    "ReplicaSetView",
    "ReplicationControllerItem",
    "ReplicationControllerView",
    "ResourceLabels",
    "ResourceWatcher",
    "SecretItem",
    "SecretType",
    "SecretView",
    "ServiceItem",
    "ServiceView",
    "StatusError",
    "ViewABC",
    "WatchEvent",
    "WatchEventType",
]
