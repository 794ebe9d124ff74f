"""What views, items and watchers need of a cluster and of its proxy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Cluster(Protocol):
    """A :class:`kube.Cluster`, or another object with these members."""

    proxy: Any

    def kindimpl(self, kind: Any) -> Any:
        """The class of the items or views of a kind."""

    def create(self, data: Mapping[str, Any], namespace: str | None = None) -> Any:
        """Creates an object, and returns its item."""


class Proxy(Protocol):
    """A proxy that opens watches."""

    def open_watch(self, path: tuple[str, ...], version: str | None, fields: Mapping[str, Any] | None) -> Any:
        """The events of a path: with ``next(timeout)``, which returns ``None`` at the end, and ``close()``."""
