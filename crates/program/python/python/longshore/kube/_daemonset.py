"""DaemonSets."""

from . import _base
from ._util import count

_API_PATHS = ["apis/apps/v1", "apis/extensions/v1beta1"]


class DaemonSetView(_base.BaseView["DaemonSetItem"], _base.ViewABC["DaemonSetItem"]):
    """The DaemonSets."""

    kind = _base.Kind.DaemonSetList
    resource = "daemonsets"
    api_paths = _API_PATHS


class DaemonSetItem(_base.BaseItem, _base.ItemABC):
    """A DaemonSet: one pod per node."""

    kind = _base.Kind.DaemonSet
    resource = "daemonsets"
    api_paths = _API_PATHS

    @property
    def current_number_scheduled(self) -> int:
        """The number of nodes that should run the pod and do."""
        return count(self, "currentNumberScheduled")

    @property
    def desired_number_scheduled(self) -> int:
        """The number of nodes that should run the pod."""
        return count(self, "desiredNumberScheduled")

    @property
    def number_misscheduled(self) -> int:
        """The number of nodes that run the pod and should not."""
        return count(self, "numberMisscheduled")

    @property
    def number_ready(self) -> int:
        """The number of nodes whose pod is ready."""
        return count(self, "numberReady")
