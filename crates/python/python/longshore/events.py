"""What watches tell."""

import enum
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

if TYPE_CHECKING:
    from ._native import ClusterSpec, Item, Tasks


class WatchEventType(str, enum.Enum):
    """What happened."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    #: The server no longer has the history since the last event: what is in
    #: ``items`` is all there is now.
    RESYNC = "RESYNC"


class WatchEvent(NamedTuple):
    """A change of one object, or all objects after a gap."""

    evtype: str
    item: "Optional[Item]"
    items: "Optional[list[Item]]" = None

    ADDED = WatchEventType.ADDED
    MODIFIED = WatchEventType.MODIFIED
    DELETED = WatchEventType.DELETED
    RESYNC = WatchEventType.RESYNC


class Generation(NamedTuple):
    """The tasks of a job from one change to the next."""

    #: Counts from 1, without gaps.
    number: int
    tasks: "Tasks"
    #: Tasks whose pod was not there before, and those whose pod is there no longer.
    joined: "list[dict[str, Any]]"
    left: "list[dict[str, Any]]"

    @property
    def spec(self) -> "ClusterSpec":
        """The addresses of those who are there."""
        return self.tasks.spec()
