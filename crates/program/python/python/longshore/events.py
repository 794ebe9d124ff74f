"""The events of watches."""

import enum
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

if TYPE_CHECKING:
    from ._native import ClusterSpec, Item, Tasks


class WatchEventType(str, enum.Enum):
    """The type of an event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    #: The server no longer has the history since the last event. ``items`` holds all
    #: objects that exist now.
    RESYNC = "RESYNC"


class _Event(NamedTuple):
    #: The type, as text: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``RESYNC``.
    evtype: str
    #: The new version of the object; after a deletion, the last one. ``None`` for ``RESYNC``.
    item: "Optional[Item]"
    #: All objects that exist now, for ``RESYNC``.
    items: "Optional[list[Item]]" = None


class WatchEvent(_Event):
    """A change to one object, or, after a gap, all objects."""

    __slots__ = ()
    ADDED = WatchEventType.ADDED
    MODIFIED = WatchEventType.MODIFIED
    DELETED = WatchEventType.DELETED
    RESYNC = WatchEventType.RESYNC


class Generation(NamedTuple):
    """The tasks of a job after a change."""

    #: Counts from 1, without gaps.
    number: int
    #: The tasks after the change.
    tasks: "Tasks"
    #: Tasks whose pod is new.
    joined: "list[dict[str, Any]]"
    #: Tasks whose pod no longer exists.
    left: "list[dict[str, Any]]"

    @property
    def spec(self) -> "ClusterSpec":
        """The addresses of the tasks."""
        return self.tasks.spec()
