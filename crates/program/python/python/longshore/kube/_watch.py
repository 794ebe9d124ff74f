"""Watches of objects."""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from ..errors import ClosedError
from . import _util
from ._types import Item_co

if TYPE_CHECKING:
    from .. import _native
    from ._cluster import Cluster
    from ._types import Proxy


class WatchEventType(enum.Enum):
    """The type of an event."""

    MODIFIED = "MODIFIED"
    ADDED = "ADDED"
    DELETED = "DELETED"
    ERROR = "ERROR"


if TYPE_CHECKING:

    class _Event(NamedTuple, Generic[Item_co]):
        evtype: WatchEventType
        item: Item_co

    class _OfItem(_Event[Item_co]): ...

else:
    # Python 3.10 has no generic named tuples.
    _Base = NamedTuple("_Event", [("evtype", WatchEventType), ("item", Any)])

    class _OfItem(_Base, Generic[Item_co]):
        __slots__ = ()


class WatchEvent(_OfItem[Item_co]):
    """A change to an object. ``item`` is its new version; after a deletion, its last one."""

    __slots__ = ()
    MODIFIED = WatchEventType.MODIFIED
    ADDED = WatchEventType.ADDED
    DELETED = WatchEventType.DELETED
    ERROR = WatchEventType.ERROR


class NativeWatcher:
    """The events of a watch of the native client.

    If the server no longer has the history since the last event, the native client lists all
    objects again. Each is then an event ``MODIFIED``, and each object of an earlier event that is
    no longer in the list an event ``DELETED`` with its last known version.
    """

    def __init__(self, watch: _native.Watch) -> None:
        self._watch = watch
        self._pending: collections.deque[dict[str, Any]] = collections.deque()
        self._known: dict[str, _native.Item] = {}

    def next(self, *, timeout: float | None = None) -> dict[str, Any]:
        if self._pending:
            return self._pending.popleft()
        event = self._watch.next(timeout)
        if event.item is None:
            self._list_again(event.items or [])
            return self.next(timeout=timeout)
        if event.evtype == "DELETED":
            self._known.pop(event.item.uid, None)
        else:
            self._known[event.item.uid] = event.item
        return {"type": event.evtype, "object": event.item}

    def _list_again(self, items: list[_native.Item]) -> None:
        before, self._known = self._known, {item.uid: item for item in items}
        gone = [item for uid, item in before.items() if uid not in self._known]
        self._pending.extend({"type": "DELETED", "object": item} for item in gone)
        self._pending.extend({"type": "MODIFIED", "object": item} for item in items)

    def close(self) -> None:
        self._watch.close()


class JSONWatcher:
    """The events of a path, as immutable mappings with ``type`` and ``object``.

    :param version: The resource version to start after; default: the events start with all objects.
    :param fields: Values that the objects must have, by dotted names such as ``metadata.name``.
    """

    def __init__(
        self,
        proxy: Proxy,
        *path: str,
        version: str | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        self._watch = proxy.open_watch(path, version, fields)

    def __iter__(self) -> JSONWatcher:
        return self

    def __next__(self) -> Any:
        return self.next()

    def next(self, *, timeout: float | None = None) -> Any:
        """The next event; without a timeout, waits for ever.

        :raises TimeoutError: If none occurs within ``timeout`` seconds. 0 does not wait.
        :raises StopIteration: If the server or ``close`` ended the watch.
        """
        event = self._watch.next(timeout)
        if event is None:
            raise StopIteration
        return _util.freeze(event)

    def close(self) -> None:
        """Ends the watch, also for a thread that waits for an event."""
        self._watch.close()

    def __enter__(self) -> JSONWatcher:
        return self

    def __exit__(self, *_raised: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class ResourceWatcher(Generic[Item_co]):
    """The changes to objects, in order. Iterating waits for the next change.

    :param jsonwatcher: Has ``next(timeout=)``, which returns mappings with ``type`` and ``object``, and
        ``close()``.
    :param itemcls: Makes an item from the cluster and an object.
    """

    def __init__(self, cluster: Cluster, jsonwatcher: Any, itemcls: Callable[[Cluster, Any], Item_co]) -> None:
        self.cluster = cluster
        self._watcher = jsonwatcher
        self._itemcls = itemcls

    def __iter__(self) -> ResourceWatcher[Item_co]:
        return self

    def __next__(self) -> WatchEvent[Item_co]:
        return self.next()

    def next(self, *, timeout: float | None = None) -> WatchEvent[Item_co]:
        """The next change; without a timeout, waits for ever.

        :raises TimeoutError: If none occurs within ``timeout`` seconds. 0 does not wait.
        :raises StopIteration: If the watch was closed.
        """
        try:
            event = self._watcher.next(timeout=timeout)
        except ClosedError:
            raise StopIteration from None
        return WatchEvent(WatchEventType(event["type"]), self._itemcls(self.cluster, event["object"]))

    def close(self) -> None:
        """Ends the watch, also for a thread that waits for a change."""
        self._watcher.close()

    def __enter__(self) -> ResourceWatcher[Item_co]:
        return self

    def __exit__(self, *_raised: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()
