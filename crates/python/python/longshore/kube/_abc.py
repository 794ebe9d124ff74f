"""The kinds, and the interfaces of views and items."""

from __future__ import annotations

import abc
import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import _meta, _watch
    from ._types import Cluster


class Kind(enum.Enum):
    """The kinds that have classes here. ``*List`` is the kind of a view."""

    DaemonSet = "DaemonSet"
    DaemonSetList = "DaemonSetList"
    Deployment = "Deployment"
    DeploymentList = "DeploymentList"
    Node = "Node"
    NodeList = "NodeList"
    Namespace = "Namespace"
    NamespaceList = "NamespaceList"
    Pod = "Pod"
    PodList = "PodList"
    ReplicaSet = "ReplicaSet"
    ReplicaSetList = "ReplicaSetList"
    ReplicationController = "ReplicationController"
    ReplicationControllerList = "ReplicationControllerList"
    Service = "Service"
    ServiceList = "ServiceList"
    Secret = "Secret"
    SecretList = "SecretList"


class ViewABC(metaclass=abc.ABCMeta):
    """The objects of one kind, in one namespace or in all. Making a view sends no request.

    :raises kube.NamespaceError: For a namespace, if the objects of the kind have none.
    """

    #: The kind of the view, such as ``Kind.PodList``.
    kind: Any
    #: The plural name in paths, such as ``"pods"``.
    resource: Any
    #: The paths of the API versions with this kind, the newest first.
    api_paths: Any

    @abc.abstractmethod
    def __init__(self, cluster: Cluster, namespace: str | None = None) -> None: ...

    @property
    @abc.abstractmethod
    def cluster(self) -> Cluster:
        """The cluster of the objects."""

    @property
    @abc.abstractmethod
    def namespace(self) -> str | None:
        """The namespace of the objects, or ``None`` for all."""

    @abc.abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Requests the objects, page by page."""

    @abc.abstractmethod
    def fetch(self, name: str, namespace: str | None = None) -> Any:
        """Requests the object with this name.

        :raises LookupError: If it does not exist.
        :raises kube.NamespaceError: If a namespace is missing, or not allowed. The namespace is that
            of the view by default, and never ``default`` by itself.
        :raises kube.APIError: For other errors of the server.
        """

    @abc.abstractmethod
    def filter(self, *, labels: Any = None, fields: Any = None) -> Iterator[Any]:
        """The objects that the selectors select: dicts of exact values, or selectors as text.

        :raises ValueError: For an empty selector, which would select all objects.
        """

    @abc.abstractmethod
    def watch(self) -> _watch.ResourceWatcher:
        """Watches changes to the objects, starting now."""


class ItemABC(metaclass=abc.ABCMeta):
    """An object at one version. Methods that change it return its new version."""

    #: The kind, such as ``Kind.Pod``.
    kind: Any
    #: The plural name in paths, such as ``"pods"``.
    resource: Any
    #: The paths of the API versions with this kind, the newest first.
    api_paths: Any

    @abc.abstractmethod
    def __init__(self, cluster: Cluster, raw: Any) -> None: ...

    @property
    @abc.abstractmethod
    def cluster(self) -> Cluster:
        """The cluster of the object."""

    @property
    @abc.abstractmethod
    def raw(self) -> Any:
        """The whole object as an immutable mapping."""

    @property
    @abc.abstractmethod
    def meta(self) -> _meta.ObjectMeta:
        """The metadata of the object."""

    @abc.abstractmethod
    def spec(self) -> dict[str, Any]:
        """A copy of the object's ``spec``, to change and to make the object again."""

    @abc.abstractmethod
    def fetch(self) -> Any:
        """Requests the newest version of the object.

        :raises LookupError: If it no longer exists.
        :raises kube.APIError: For other errors of the server.
        """

    @abc.abstractmethod
    def watch(self) -> _watch.ResourceWatcher:
        """Watches changes to the object after its version."""

    @abc.abstractmethod
    def delete(self) -> None:
        """Deletes the object. It is no error if it no longer exists.

        :raises kube.APIError: For other errors of the server.
        """
