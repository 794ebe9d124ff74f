"""What all views and items have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, cast

from .. import _native
from ..errors import APIError, InvalidError, KubeError, NamespaceError
from . import _meta, _util, _watch
from ._abc import ItemABC, Kind, ViewABC
from ._proxy import APIServerProxy
from ._types import Item_co

if TYPE_CHECKING:
    from pyrsistent import PMap
    from typing_extensions import Self

    from ._cluster import Cluster

__all__ = ["BaseItem", "BaseView", "ItemABC", "Kind", "Scalable", "ViewABC"]

#: The greatest number of replicas.
_MAX_REPLICAS = 2**31 - 1


class BaseView(Generic[Item_co]):
    """A view of a kind whose objects have a namespace."""

    kind: ClassVar[Kind]
    resource: ClassVar[str]
    api_paths: ClassVar[list[str]]
    #: True if the objects have a namespace.
    _namespaced: ClassVar[bool] = True

    def __init__(self, cluster: Cluster, namespace: str | None = None) -> None:
        if namespace is not None and not self._namespaced:
            raise NamespaceError(f"{self.resource} have no namespace, but {namespace!r} was given")
        self._cluster = cluster
        self._namespace = namespace
        self._api_path: str | None = None

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    @property
    def namespace(self) -> str | None:
        return self._namespace

    @property
    def api_path(self) -> str:
        """The newest of ``api_paths`` that the server has."""
        if self._api_path is None:
            self._api_path = _util.find_api_path(self.cluster.proxy, self.api_paths, self.resource)
        return self._api_path

    def _item(self, raw: Any) -> Item_co:
        item: Item_co = self.cluster.kindimpl(Kind(self.kind.value.removesuffix("List")))(self.cluster, raw)
        return item

    def _native(self) -> _native.View | None:
        """The same view in the native client; ``None`` if another proxy has replaced ours."""
        proxy = self.cluster.proxy
        if not isinstance(proxy, APIServerProxy):
            return None
        _, *group, _ = self.api_path.split("/")
        kind = ".".join([self.resource, *group])
        return proxy.native.view(kind, self.namespace)

    def __iter__(self) -> Iterator[Item_co]:
        return self._items(None, None)

    def filter(
        self, *, labels: str | Mapping[str, str] | None = None, fields: str | Mapping[str, str] | None = None
    ) -> Iterator[Item_co]:
        return self._items(_util.selector(labels, "label"), _util.selector(fields, "field"))

    def _items(self, labels: str | None, fields: str | None) -> Iterator[Item_co]:
        view = self._native()
        if view is None:
            items = _util.filter_list(self.cluster, self.api_path, self.resource, labels, fields, self.namespace)
            yield from map(self._item, items)
            return
        if labels or fields:
            view = view.filter(labels=labels, fields=fields)
        yield from map(self._item, view)

    def path(self, namespace: str | None = None) -> list[str]:
        """The parts of the path of the objects in one namespace, by default that of the view.

        :raises kube.NamespaceError: If a namespace is missing, or not allowed.
        """
        if namespace is not None and not self._namespaced:
            raise NamespaceError(f"{self.resource} have no namespace, but {namespace!r} was given")
        inside = namespace or self.namespace
        if not self._namespaced:
            return [self.api_path, self.resource]
        if inside is None:
            raise NamespaceError(f"{self.resource} are in a namespace: name it with namespace=")
        return [self.api_path, "namespaces", inside, self.resource]

    def fetch(self, name: str, namespace: str | None = None) -> Item_co:
        if not name:
            raise KubeError(f"fetch() of {self.resource}: the name is empty")
        *parent, resource = self.path(namespace)
        inside = parent[2] if self._namespaced else None
        return self._item(_util.fetch_resource(self.cluster, self.api_path, resource, name, inside))

    def watch(self) -> _watch.ResourceWatcher[Item_co]:
        view = self._native()
        itemcls = self.cluster.kindimpl(Kind(self.kind.value.removesuffix("List")))
        if view is not None:
            return _watch.ResourceWatcher(self.cluster, _watch.NativeWatcher(view.watch()), itemcls)
        parent = ["namespaces", self.namespace] if self.namespace else []
        path = [self.api_path, *parent, self.resource]
        version = self.cluster.proxy.get(*path)["metadata"]["resourceVersion"]
        watcher = self.cluster.proxy.watch(*path, version=version)
        return _watch.ResourceWatcher(self.cluster, watcher, itemcls)

    def __repr__(self) -> str:
        name = type(self).__name__
        return f"<{name}>" if self.namespace is None else f"<{name} namespace={self.namespace}>"


class BaseItem:
    """An object at one version."""

    kind: ClassVar[Kind]
    resource: ClassVar[str]
    api_paths: ClassVar[list[str]]

    def __init__(self, cluster: Cluster, raw: Any) -> None:
        self._cluster = cluster
        # The fields of an item of the native client are converted when they are needed.
        self._native = raw if isinstance(raw, _native.Item) else None
        self._raw: Any = None if self._native is not None else _util.freeze(raw)

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    @property
    def raw(self) -> PMap[str, Any]:
        if self._raw is None and self._native is not None:
            self._raw = _util.freeze(self._native.raw)
        return cast("PMap[str, Any]", self._raw)

    @property
    def meta(self) -> _meta.ObjectMeta[Self]:
        return _meta.ObjectMeta(self)

    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = _util.thaw(self.raw.get("spec", {}))
        return spec

    def fetch(self) -> Self:
        try:
            raw = self.cluster.proxy.get(self.meta.link)
        except APIError as error:
            if error.status_code == 404 and not isinstance(error, LookupError):
                raise LookupError(str(error)) from error
            raise
        return type(self)(self.cluster, raw)

    def watch(self) -> _watch.ResourceWatcher[Self]:
        proxy = self.cluster.proxy
        if isinstance(proxy, APIServerProxy):
            item = self._native if self._native is not None else proxy.native.item(_util.thaw(self._complete()))
            return _watch.ResourceWatcher(self.cluster, _watch.NativeWatcher(item.watch()), type(self))
        parent, _, _ = self.meta.link.rpartition("/")
        watcher = proxy.watch(parent, fields={"metadata.uid": self.meta.uid})
        watcher.skip(self.meta.version)
        return _watch.ResourceWatcher(self.cluster, watcher, type(self))

    def _complete(self) -> dict[str, Any]:
        """The object with its kind, which the items of lists lack."""
        return {"apiVersion": self._api_version(), "kind": self.kind.value, **self.raw}

    def _api_version(self) -> str:
        version: str | None = self.raw.get("apiVersion")
        return version or str(self.api_paths[0]).removeprefix("apis/").removeprefix("api/")

    def delete(self) -> None:
        try:
            self.cluster.proxy.delete(self.meta.link)
        except APIError as error:
            if error.status_code != 404:
                raise

    def patch(self, patch: Any, *, kind: str = "strategic") -> Self:
        return type(self)(self.cluster, self.cluster.proxy.patch(self.meta.link, patch=_util.thaw(patch), kind=kind))

    def replace(self, data: Mapping[str, Any]) -> Self:
        new = self._same(_util.thaw(data))
        return type(self)(self.cluster, self.cluster.proxy.put(self.meta.link, json=new))

    def _same(self, data: dict[str, Any]) -> dict[str, Any]:
        """The data of a new version of this object.

        :raises kube.KubeError: If the data is another object.
        """
        meta = dict(data.get("metadata") or {})
        own = {"name": self.meta.name, "namespace": self.meta.namespace, "uid": self.meta.uid}
        for name, mine in [("kind", self.kind.value), *own.items()]:
            given = (data if name == "kind" else meta).get(name)
            if given not in (None, mine):
                raise KubeError(f"replace() of {self!r}: the data has the {name} {given!r}")
        kept = {name: value for name, value in own.items() if value is not None}
        meta = {"resourceVersion": self.meta.version, **kept, **meta}
        return {**data, "apiVersion": data.get("apiVersion") or self._api_version(), "kind": self.kind.value, "metadata": meta}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BaseItem) or type(self) is not type(other):
            return NotImplemented
        mine, its = self.meta, other.meta
        return (mine.uid, mine.version) == (its.uid, its.version)

    def __hash__(self) -> int:
        return hash((self.meta.uid, self.meta.version))

    def __repr__(self) -> str:
        inside = f" namespace={self.meta.namespace}" if self.meta.namespace is not None else ""
        return f"<{type(self).__name__} {self.meta.name}{inside}>"


class Scalable(BaseItem):
    """An object with a number of replicas."""

    def scale(self, replicas: int) -> Self:
        """Sets the number of replicas, by the subresource ``scale`` of the API.

        :returns: The new version of the object.
        :raises longshore.InvalidError: If it is not a number that an object can have.
        :raises kube.APIError: For errors of the server.
        """
        if not isinstance(replicas, int) or isinstance(replicas, bool) or not 0 <= replicas <= _MAX_REPLICAS:
            raise InvalidError(f"replicas must be from 0 to {_MAX_REPLICAS}, not {replicas!r}")
        patch = {"spec": {"replicas": replicas}}
        self.cluster.proxy.patch(f"{self.meta.link}/scale", patch=patch, kind="merge")
        return self.fetch()
