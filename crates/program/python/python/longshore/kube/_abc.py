"""The kinds, and the interfaces of views and items."""

from __future__ import annotations

import abc
import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from ._types import Item_co

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyrsistent import PMap
    from typing_extensions import Self

    from . import _meta, _watch
    from ._cluster import Cluster


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


class ViewABC(Generic[Item_co], metaclass=abc.ABCMeta):
    """The objects of one kind, in one namespace or in all. Making a view sends no request.

    :raises kube.NamespaceError: For a namespace, if the objects of the kind have none.
    """

    #: The kind of the view, such as ``Kind.PodList``.
    kind: ClassVar[Kind]
    #: The plural name in paths, such as ``"pods"``.
    resource: ClassVar[str]
    #: The paths of the API versions with this kind, the newest first.
    api_paths: ClassVar[list[str]]

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
    def __iter__(self) -> Iterator[Item_co]:
        """Requests the objects, page by page."""

    @abc.abstractmethod
    def fetch(self, name: str, namespace: str | None = None) -> Item_co:
        """Requests the object with this name.

        :raises LookupError: If it does not exist.
        :raises kube.NamespaceError: If a namespace is missing, or not allowed. The namespace is that
            of the view by default, and never ``default`` by itself.
        :raises kube.APIError: For other errors of the server.
        """

    @abc.abstractmethod
    def filter(
        self, *, labels: str | Mapping[str, str] | None = None, fields: str | Mapping[str, str] | None = None
    ) -> Iterator[Item_co]:
        """The objects that the selectors select: dicts of exact values, or selectors as text.

        :raises ValueError: For an empty selector, which would select all objects.
        """

    @abc.abstractmethod
    def watch(self) -> _watch.ResourceWatcher[Item_co]:
        """Watches changes to the objects, starting now."""


class ItemABC(metaclass=abc.ABCMeta):
    """An object at one version. Methods that change it return its new version.

    Classes of programs that derive from it need not have the methods that ``kube`` 0.10 did not have.
    """

    #: The kind, such as ``Kind.Pod``.
    kind: ClassVar[Kind]
    #: The plural name in paths, such as ``"pods"``.
    resource: ClassVar[str]
    #: The paths of the API versions with this kind, the newest first.
    api_paths: ClassVar[list[str]]

    @abc.abstractmethod
    def __init__(self, cluster: Cluster, raw: Any) -> None: ...

    @property
    @abc.abstractmethod
    def cluster(self) -> Cluster:
        """The cluster of the object."""

    @property
    @abc.abstractmethod
    def raw(self) -> PMap[str, Any]:
        """The whole object as an immutable mapping."""

    @property
    @abc.abstractmethod
    def meta(self) -> _meta.ObjectMeta[Self]:
        """The metadata of the object."""

    @abc.abstractmethod
    def spec(self) -> dict[str, Any]:
        """A copy of the object's ``spec``, to change and to make the object again."""

    @abc.abstractmethod
    def fetch(self) -> Self:
        """Requests the newest version of the object.

        :raises LookupError: If it no longer exists.
        :raises kube.APIError: For other errors of the server.
        """

    @abc.abstractmethod
    def watch(self) -> _watch.ResourceWatcher[Self]:
        """Watches changes to the object after its version."""

    @abc.abstractmethod
    def delete(self) -> None:
        """Deletes the object. It is no error if it no longer exists.

        :raises kube.APIError: For other errors of the server.
        """

    def patch(self, patch: Any, *, kind: str = "strategic") -> Self:
        """Changes fields of the object in the cluster.

        :param patch: A mapping of fields, or a list of operations for ``json``. With a
            ``metadata.resourceVersion``, the object must still have this version.
        :param kind: The kind of the patch: ``strategic`` (lists such as containers are merged by name),
            ``merge`` (lists are replaced), ``json`` or ``apply``.
        :returns: The new version of the object.
        :raises longshore.ConflictError: If the object no longer has the version in the patch.
        :raises kube.APIError: For other errors of the server.
        """
        raise NotImplementedError

    def replace(self, data: Mapping[str, Any]) -> Self:
        """Replaces the whole object in the cluster, if it still has the version of this item.

        :param data: The new object, such as a changed copy of ``raw``. A ``metadata.resourceVersion``
            replaces the version of this item.
        :returns: The new version of the object.
        :raises kube.KubeError: If the data is another object.
        :raises longshore.ConflictError: If the object has changed since.
        :raises kube.APIError: For other errors of the server.
        """
        raise NotImplementedError
