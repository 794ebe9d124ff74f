"""The metadata of objects, and their labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic

from .. import _native
from ..errors import APIError, InvalidError
from . import _util
from ._types import Item_co


class ObjectMeta(Generic[Item_co]):
    """The metadata of an object. Properties of absent fields are ``None`` or empty."""

    def __init__(self, resource: Item_co) -> None:
        self._resource: Any = resource

    @property
    def _data(self) -> Any:
        return self._resource.raw["metadata"]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ObjectMeta):
            return NotImplemented
        return bool(self._data == other._data)

    def __hash__(self) -> int:
        return hash((self.uid, self.version))

    def __repr__(self) -> str:
        return f"<ObjectMeta of {self._resource!r}>"

    @property
    def name(self) -> str:
        name: str = self._data["name"]
        return name

    @property
    def namespace(self) -> str | None:
        """The namespace, or ``None`` if objects of the kind have none."""
        namespace: str | None = self._data.get("namespace")
        return namespace

    @property
    def labels(self) -> ResourceLabels[Item_co]:
        """The labels: a mapping, with methods that change them in the cluster."""
        return ResourceLabels(self._resource)

    @property
    def annotations(self) -> Mapping[str, str]:
        annotations: Mapping[str, str] = self._data.get("annotations") or _util.freeze({})
        return annotations

    @property
    def version(self) -> str:
        """The resource version: an opaque text."""
        version: str = self._data["resourceVersion"]
        return version

    @property
    def uid(self) -> str:
        """The ID of the object. An object that is created again with the same name has another one."""
        uid: str = self._data["uid"]
        return uid

    @property
    def created(self) -> _util.Time:
        """When the object was created, in UTC."""
        return _util.parse_rfc3339(self._data["creationTimestamp"])

    @property
    def deleted(self) -> _util.Time | None:
        """When the deletion of the object was requested, if it waits for finalizers or a grace period."""
        when = self._data.get("deletionTimestamp")
        return None if when is None else _util.parse_rfc3339(when)

    @property
    def generation(self) -> int | None:
        """How many times the specification was changed, if the server counts it."""
        generation: int | None = self._data.get("generation")
        return generation

    @property
    def finalizers(self) -> list[str]:
        """What must be removed before the object is deleted."""
        return list(self._data.get("finalizers", ()))

    @property
    def owners(self) -> list[Mapping[str, Any]]:
        """The owner references: mappings with ``apiVersion``, ``kind``, ``name``, ``uid``."""
        return list(self._data.get("ownerReferences", ()))

    @property
    def link(self) -> str:
        """The path of the object, which the methods of :class:`kube.APIServerProxy` accept."""
        given: str | None = self._data.get("selfLink")
        if given:
            return given
        version = self._resource._api_version()
        parent = "/apis" if "/" in version else "/api"
        inside = f"/namespaces/{self.namespace}" if self.namespace is not None else ""
        return f"{parent}/{version}{inside}/{self._resource.resource}/{self.name}"


class ResourceLabels(Mapping[str, str], Generic[Item_co]):
    """The labels of an object at its version. ``set`` and ``delete`` return the new version."""

    def __init__(self, resource: Any) -> None:
        self._resource = resource
        self._labels: Mapping[str, str] = resource.raw["metadata"].get("labels") or {}

    def __getitem__(self, key: str) -> str:
        value: str = self._labels[key]
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)

    def set(self, key: str, value: str) -> Item_co:
        """Sets one label in the cluster.

        :returns: The new version of the object.
        :raises kube.APIError: For errors of the server.
        """
        return self._patch({key: value})

    def delete(self, key: str) -> Item_co:
        """Removes one label in the cluster.

        :returns: The new version of the object.
        :raises kube.APIError: For errors of the server.
        """
        return self._patch({key: None})

    def _patch(self, labels: dict[str, str | None]) -> Item_co:
        for key, value in labels.items():
            try:
                _native.check_label(key, value)
            except InvalidError as error:
                raise APIError(None, str(error)) from error
        resource = self._resource
        patch = {"metadata": {"labels": labels}}
        raw = resource.cluster.proxy.patch(resource.meta.link, patch=patch)
        item: Item_co = type(resource)(resource.cluster, raw)
        return item

    def __repr__(self) -> str:
        pairs = ",".join(f"{key}={value}" for key, value in self.items())
        return f'<Labels "{pairs}">'
