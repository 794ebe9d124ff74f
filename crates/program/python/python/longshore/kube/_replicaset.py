"""ReplicaSets and ReplicationControllers, which have the same status."""

from . import _base
from ._util import count

_SET_PATHS = ["apis/apps/v1", "apis/extensions/v1beta1"]
_CONTROLLER_PATHS = ["api/v1"]


class _ReplicasItem(_base.Scalable, _base.BaseItem):
    @property
    def observed_replicas(self) -> int:
        """The number of pods."""
        return count(self, "replicas")

    @property
    def observed_generation(self) -> int:
        """The generation that the status describes."""
        return count(self, "observedGeneration")

    @property
    def fully_labeled_replicas(self) -> int:
        """The number of pods that have all labels of the template."""
        return count(self, "fullyLabeledReplicas")

    @property
    def ready_replicas(self) -> int:
        """The number of pods that are ready."""
        return count(self, "readyReplicas")

    @property
    def available_replicas(self) -> int:
        """The number of pods that have been ready for ``minReadySeconds``."""
        return count(self, "availableReplicas")


class ReplicaSetView(_base.BaseView["ReplicaSetItem"], _base.ViewABC["ReplicaSetItem"]):
    """The ReplicaSets."""

    kind = _base.Kind.ReplicaSetList
    resource = "replicasets"
    api_paths = _SET_PATHS


class ReplicaSetItem(_ReplicasItem, _base.ItemABC):
    """A ReplicaSet: a number of equal pods."""

    kind = _base.Kind.ReplicaSet
    resource = "replicasets"
    api_paths = _SET_PATHS


class ReplicationControllerView(_base.BaseView["ReplicationControllerItem"], _base.ViewABC["ReplicationControllerItem"]):
    """The ReplicationControllers."""

    kind = _base.Kind.ReplicationControllerList
    resource = "replicationcontrollers"
    api_paths = _CONTROLLER_PATHS


class ReplicationControllerItem(_ReplicasItem, _base.ItemABC):
    """A ReplicationController: the predecessor of the ReplicaSet."""

    kind = _base.Kind.ReplicationController
    resource = "replicationcontrollers"
    api_paths = _CONTROLLER_PATHS
