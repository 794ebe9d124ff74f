"""What watchers need of a proxy, and the type of an item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

#: The class of the items of a view, of a watch, or of an object's metadata.
Item_co = TypeVar("Item_co", covariant=True)


class Proxy(Protocol):
    """A proxy that opens watches."""

    def open_watch(self, path: tuple[str, ...], version: str | None, fields: Mapping[str, Any] | None) -> Any:
        """The events of a path: with ``next(timeout)``, which returns ``None`` at the end, and ``close()``."""
