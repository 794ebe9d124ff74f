"""ReplicaSets and ReplicationControllers, which have the same status."""

from . import _base
from ._util import statusproperty

_SET_PATHS = ["apis/apps/v1", "apis/extensions/v1beta1"]
_CONTROLLER_PATHS = ["api/v1"]


class _ReplicasItem(_base.BaseItem):
    @statusproperty
    def observed_replicas(self) -> int:
        """The number of pods."""
        return int(self.raw["status"]["replicas"])

    @statusproperty
    def observed_generation(self) -> int:
        """The generation that the status describes."""
        return int(self.raw["status"]["observedGeneration"])

    @statusproperty
    def fully_labeled_replicas(self) -> int:
        """The number of pods that have all labels of the template."""
        return int(self.raw["status"]["fullyLabeledReplicas"])

    @statusproperty
    def ready_replicas(self) -> int:
        """The number of pods that are ready."""
        return int(self.raw["status"]["readyReplicas"])

    @statusproperty
    def available_replicas(self) -> int:
        """The number of pods that have been ready for ``minReadySeconds``."""
        return int(self.raw["status"]["availableReplicas"])


class ReplicaSetView(_base.BaseView, _base.ViewABC):
    """The ReplicaSets."""

    kind = _base.Kind.ReplicaSetList
    resource = "replicasets"
    api_paths = _SET_PATHS


class ReplicaSetItem(_ReplicasItem, _base.ItemABC):
    """A ReplicaSet: a number of equal pods."""

    kind = _base.Kind.ReplicaSet
    resource = "replicasets"
    api_paths = _SET_PATHS


class ReplicationControllerView(_base.BaseView, _base.ViewABC):
    """The ReplicationControllers."""

    kind = _base.Kind.ReplicationControllerList
    resource = "replicationcontrollers"
    api_paths = _CONTROLLER_PATHS


class ReplicationControllerItem(_ReplicasItem, _base.ItemABC):
    """A ReplicationController: the predecessor of the ReplicaSet."""

    kind = _base.Kind.ReplicationController
    resource = "replicationcontrollers"
    api_paths = _CONTROLLER_PATHS
