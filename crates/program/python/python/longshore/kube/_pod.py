"""Pods, their containers and the states of these."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from ..errors import StatusError
from . import _base
from ._util import OpenEnum, Time, parse_rfc3339, statusproperty

_API_PATHS = ["api/v1"]


class PodView(_base.BaseView["PodItem"], _base.ViewABC["PodItem"]):
    """The pods."""

    kind = _base.Kind.PodList
    resource = "pods"
    api_paths = _API_PATHS


class PodPhase(OpenEnum):
    """The phase of a pod."""

    Pending = "Pending"
    Running = "Running"
    Succeeded = "Succeeded"
    Failed = "Failed"
    Unknown = "Unknown"


#: Inside the class of the items, the name is an alias of this.
_PodPhase = PodPhase


class PodItem(_base.BaseItem, _base.ItemABC):
    """A pod."""

    kind = _base.Kind.Pod
    resource = "pods"
    api_paths = _API_PATHS
    PodPhase = PodPhase

    @statusproperty
    def phase(self) -> _PodPhase:
        """The phase."""
        return PodPhase(self.raw["status"]["phase"])

    @statusproperty
    def start_time(self) -> Time:
        """When the node accepted the pod, in UTC."""
        return parse_rfc3339(self.raw["status"]["startTime"])

    @statusproperty
    def ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        """The address of the pod."""
        return ipaddress.ip_address(self.raw["status"]["podIP"])

    @statusproperty
    def host_ip(self) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        """The address of the pod's node."""
        return ipaddress.ip_address(self.raw["status"]["hostIP"])

    @statusproperty
    def message(self) -> str:
        """Why the pod is in its state, as a sentence."""
        return str(self.raw["status"]["message"])

    @statusproperty
    def reason(self) -> str:
        """Why the pod is in its state, as one word such as ``Evicted``."""
        return str(self.raw["status"]["reason"])

    @property
    def containers(self) -> Iterator[Container]:
        """The containers that the node reports."""
        for raw in self.raw.get("status", {}).get("containerStatuses") or ():
            yield Container(self, raw)


class Container:
    """A container of a pod."""

    def __init__(self, pod: PodItem, raw: Any) -> None:
        self.pod = pod
        self.raw = raw

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {self.pod}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Container):
            return NotImplemented
        return bool(self.raw == other.raw)

    def __hash__(self) -> int:
        return hash((self.name, self.raw.get("containerID")))

    @property
    def name(self) -> str:
        """The name."""
        return str(self.raw["name"])

    @statusproperty
    def state(self) -> ContainerState:
        """The current state."""
        return ContainerState(self.raw["state"])

    @statusproperty
    def last_state(self) -> ContainerState:
        """The state before the last restart."""
        if not self.raw.get("lastState"):
            raise StatusError(f"{self!r} has no previous state")
        return ContainerState(self.raw["lastState"])

    @statusproperty
    def ready(self) -> bool:
        """Whether the container is ready."""
        return bool(self.raw["ready"])

    @statusproperty
    def restart_count(self) -> int:
        """How many times the container was restarted."""
        return int(self.raw["restartCount"])

    @statusproperty
    def image(self) -> str:
        """The image's name."""
        return str(self.raw["image"])

    @statusproperty
    def image_id(self) -> str:
        """The image's ID."""
        return str(self.raw["imageID"])

    @statusproperty
    def id(self) -> str:
        """The ID of the container, as in ``containerd://...``."""
        return str(self.raw["containerID"])


class ContainerState:
    """The state of a container: waiting, running or terminated.

    :raises ValueError: For an unknown state.
    """

    #: A server may report two states while one replaces the other. The later one counts.
    _ORDER = {
        frozenset({"waiting", "terminated"}): "waiting",
        frozenset({"waiting", "running"}): "running",
        frozenset({"running", "terminated"}): "terminated",
    }

    def __init__(self, raw: Any) -> None:
        states = frozenset(raw)
        known = self._ORDER.get(states) if len(states) > 1 else next(iter(states), "waiting")
        if known not in ("waiting", "running", "terminated"):
            raise ValueError(f"unknown state of a container: {', '.join(sorted(states))}")
        self.raw = raw
        #: ``"waiting"``, ``"running"`` or ``"terminated"``.
        self.state: str = known
        self._fields = raw.get(known, {})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.state}>"

    @property
    def waiting(self) -> bool:
        """Whether the container waits to be started."""
        return self.state == "waiting"

    @property
    def running(self) -> bool:
        """Whether the container runs."""
        return self.state == "running"

    @property
    def terminated(self) -> bool:
        """Whether the container has ended."""
        return self.state == "terminated"

    @statusproperty
    def reason(self) -> str:
        """Why the container is in its state, as one word; when waiting or terminated."""
        return str(self._fields["reason"])

    @statusproperty
    def message(self) -> str:
        """Why the container is in its state, as a sentence; when waiting or terminated."""
        return str(self._fields["message"])

    @statusproperty
    def started_at(self) -> Time:
        """When the container started, in UTC; when running or terminated."""
        return parse_rfc3339(self._fields["startedAt"])

    @statusproperty
    def finished_at(self) -> Time:
        """When the container ended, in UTC; when terminated."""
        return parse_rfc3339(self._fields["finishedAt"])

    @statusproperty
    def exit_code(self) -> int:
        """The exit code; when terminated."""
        return int(self._fields["exitCode"])

    @statusproperty
    def signal(self) -> int:
        """The signal that ended the container, if the node reports it; when terminated."""
        return int(self._fields["signal"])

    @statusproperty
    def container_id(self) -> str:
        """The ID of the container; when terminated."""
        return str(self._fields["containerID"])
