"""What watches tell."""

import enum
from typing import NamedTuple, Optional


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
    item: object
    items: Optional[list] = None

    ADDED = WatchEventType.ADDED
    MODIFIED = WatchEventType.MODIFIED
    DELETED = WatchEventType.DELETED
    RESYNC = WatchEventType.RESYNC


class Generation(NamedTuple):
    """The tasks of a job from one change to the next."""

    #: Counts from 1, without gaps.
    number: int
    tasks: object
    #: Tasks whose pod was not there before, and those whose pod is there no longer.
    joined: list
    left: list

    @property
    def spec(self):
        """The addresses of those who are there."""
        return self.tasks.spec()
