"""Deployments."""

from . import _base
from ._util import statusproperty

_API_PATHS = ["apis/apps/v1", "apis/extensions/v1beta1"]


class DeploymentView(_base.BaseView, _base.ViewABC):
    """The Deployments."""

    kind = _base.Kind.DeploymentList
    resource = "deployments"
    api_paths = _API_PATHS


class DeploymentItem(_base.BaseItem, _base.ItemABC):
    """A Deployment: pods that are replaced step by step when their template changes."""

    kind = _base.Kind.Deployment
    resource = "deployments"
    api_paths = _API_PATHS

    @statusproperty
    def observed_generation(self) -> int:
        """The generation that the status describes."""
        return int(self.raw["status"]["observedGeneration"])

    @statusproperty
    def observed_replicas(self) -> int:
        """The number of pods that have not ended."""
        return int(self.raw["status"]["replicas"])

    @statusproperty
    def updated_replicas(self) -> int:
        """The number of these pods that have the current template."""
        return int(self.raw["status"]["updatedReplicas"])

    @statusproperty
    def available_replicas(self) -> int:
        """The number of pods that have been ready for ``minReadySeconds``."""
        return int(self.raw["status"]["availableReplicas"])

    @statusproperty
    def unavailable_replicas(self) -> int:
        """The number of pods that are missing or not yet available."""
        return int(self.raw["status"]["unavailableReplicas"])
