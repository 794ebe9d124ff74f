"""A cluster, with a view of each kind."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from .. import _native
from .._clusters import connection
from ..errors import KubeError, NamespaceError
from . import _daemonset, _deployment, _namespace, _node, _pod, _proxy, _replicaset, _secret, _service
from ._base import ItemABC, Kind, ViewABC
from ._proxy import APIServerProxy

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # The annotation of a variable determines the class of a created item.
    _Made = TypeVar("_Made", bound=ItemABC, default=Any)

_Class = type[ItemABC] | type[ViewABC[Any]]


class Cluster:
    """A cluster. Its attributes ``pods``, ``nodes``, ... are views of all namespaces.

    :param url: The URL of a server that requires no credentials, such as ``kubectl proxy``.
    """

    _CLASSES: ClassVar[dict[Kind, _Class]] = {
        Kind.DaemonSet: _daemonset.DaemonSetItem,
        Kind.DaemonSetList: _daemonset.DaemonSetView,
        Kind.Deployment: _deployment.DeploymentItem,
        Kind.DeploymentList: _deployment.DeploymentView,
        Kind.Node: _node.NodeItem,
        Kind.NodeList: _node.NodeView,
        Kind.Namespace: _namespace.NamespaceItem,
        Kind.NamespaceList: _namespace.NamespaceView,
        Kind.Pod: _pod.PodItem,
        Kind.PodList: _pod.PodView,
        Kind.ReplicaSet: _replicaset.ReplicaSetItem,
        Kind.ReplicaSetList: _replicaset.ReplicaSetView,
        Kind.ReplicationController: _replicaset.ReplicationControllerItem,
        Kind.ReplicationControllerList: _replicaset.ReplicationControllerView,
        Kind.Secret: _secret.SecretItem,
        Kind.SecretList: _secret.SecretView,
        Kind.Service: _service.ServiceItem,
        Kind.ServiceList: _service.ServiceView,
    }

    def __init__(self, url: str = "http://localhost:8001/") -> None:
        self._open(APIServerProxy(url))

    @classmethod
    def from_kubeconfig(
        cls, kubeconfig: str | os.PathLike[str] | None = None, context: str | None = None
    ) -> Cluster:
        """The cluster of a kubeconfig, found as kubectl finds it, or of the pod's service account."""
        cluster = cls.__new__(cls)
        cluster._open(_proxy.connect(kubeconfig, context))
        return cluster

    @classmethod
    def of(cls, cluster: _native.Cluster | _native.EmbeddedCluster) -> Cluster:
        """The cluster of a :class:`longshore.Cluster`, by the same connection.

        :raises TypeError: For another object.
        """
        native = connection(cluster)
        if native is None:
            raise TypeError(f"a longshore.Cluster is needed, not {type(cluster).__name__}")
        made = cls.__new__(cls)
        made._open(APIServerProxy.of(native._facing(asyncio=False)))
        return made

    @property
    def native(self) -> _native.Cluster:
        """The :class:`longshore.Cluster` of the same connection: closing one closes both."""
        return self.proxy.native

    def _open(self, proxy: APIServerProxy) -> None:
        #: Requests by path.
        self.proxy = proxy
        self.api_base_url = proxy.base_url
        self.daemonsets = _daemonset.DaemonSetView(self)
        self.deployments = _deployment.DeploymentView(self)
        self.namespaces = _namespace.NamespaceView(self)
        self.nodes = _node.NodeView(self)
        self.pods = _pod.PodView(self)
        self.replicasets = _replicaset.ReplicaSetView(self)
        self.replicationcontrollers = _replicaset.ReplicationControllerView(self)
        self.secrets = _secret.SecretView(self)
        self.services = _service.ServiceView(self)

    def close(self) -> None:
        """Closes the connections. Later requests raise :class:`longshore.ClosedError`."""
        self.proxy.close()

    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.DaemonSet]) -> type[_daemonset.DaemonSetItem]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.DaemonSetList]) -> type[_daemonset.DaemonSetView]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.Deployment]) -> type[_deployment.DeploymentItem]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.DeploymentList]) -> type[_deployment.DeploymentView]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.Node]) -> type[_node.NodeItem]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.NodeList]) -> type[_node.NodeView]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.Namespace]) -> type[_namespace.NamespaceItem]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.NamespaceList]) -> type[_namespace.NamespaceView]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.Pod]) -> type[_pod.PodItem]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.PodList]) -> type[_pod.PodView]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.ReplicaSet]) -> type[_replicaset.ReplicaSetItem]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.ReplicaSetList]) -> type[_replicaset.ReplicaSetView]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.ReplicationController]) -> type[_replicaset.ReplicationControllerItem]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.ReplicationControllerList]) -> type[_replicaset.ReplicationControllerView]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.Secret]) -> type[_secret.SecretItem]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.SecretList]) -> type[_secret.SecretView]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.Service]) -> type[_service.ServiceItem]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Literal[Kind.ServiceList]) -> type[_service.ServiceView]: ...
    @overload
    @classmethod
    def kindimpl(cls, kind: Kind) -> Any: ...
    @classmethod
    def kindimpl(cls, kind: Kind) -> Any:
        """The class of the items or views of a kind.

        :raises ValueError: If the kind is unknown.
        """
        try:
            return cls._CLASSES[kind]
        except KeyError:
            raise ValueError(f"unknown kind: {kind!r}") from None

    def create(
        self, data: Mapping[str, Any], namespace: str | None = None
    ) -> _Made:  # type: ignore[type-var]
        """Creates an object.

        :param data: The object, with ``apiVersion``, ``kind`` and ``metadata``.
        :param namespace: The namespace; by default that of the object.
        :returns: The new item.
        :raises kube.KubeError: If the kind is missing or unknown.
        :raises kube.NamespaceError: If the namespace contradicts that of the object.
        :raises kube.APIError: For errors of the server.
        """
        if "kind" not in data:
            raise KubeError("the object has no kind: add 'kind', such as 'Pod'")
        known = {kind.value: kind for kind in Kind if f"{kind.value}List" in Kind.__members__}
        kind = known.get(data["kind"])
        if kind is None:
            raise KubeError(f"unknown kind {data['kind']!r}; known are {', '.join(known)}")
        view = self.kindimpl(Kind(f"{kind.value}List"))(self)
        within = (data.get("metadata") or {}).get("namespace")
        if namespace is not None and within not in (None, namespace):
            raise NamespaceError(f"the object is in the namespace {within!r}, but {namespace!r} was given")
        path = view.path(namespace or within)
        made: _Made = self.kindimpl(kind)(self, self.proxy.post(*path, json=data))
        return made

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_raised: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Cluster {self.api_base_url}>"
