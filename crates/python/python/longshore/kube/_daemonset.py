"""DaemonSets."""

from . import _base
from ._util import statusproperty

_API_PATHS = ["apis/apps/v1", "apis/extensions/v1beta1"]


class DaemonSetView(_base.BaseView, _base.ViewABC):
    """The DaemonSets."""

    kind = _base.Kind.DaemonSetList
    resource = "daemonsets"
    api_paths = _API_PATHS


class DaemonSetItem(_base.BaseItem, _base.ItemABC):
    """A DaemonSet: one pod per node."""

    kind = _base.Kind.DaemonSet
    resource = "daemonsets"
    api_paths = _API_PATHS

    @statusproperty
    def current_number_scheduled(self) -> int:
        """The number of nodes that should run the pod and do."""
        return int(self.raw["status"]["currentNumberScheduled"])

    @statusproperty
    def desired_number_scheduled(self) -> int:
        """The number of nodes that should run the pod."""
        return int(self.raw["status"]["desiredNumberScheduled"])

    @statusproperty
    def number_misscheduled(self) -> int:
        """The number of nodes that run the pod and should not."""
        return int(self.raw["status"]["numberMisscheduled"])

    @statusproperty
    def number_ready(self) -> int:
        """The number of nodes whose pod is ready."""
        return int(self.raw["status"]["numberReady"])
