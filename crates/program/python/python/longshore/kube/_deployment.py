"""Deployments."""

from . import _base
from ._util import count

_API_PATHS = ["apis/apps/v1", "apis/extensions/v1beta1"]


class DeploymentView(_base.BaseView["DeploymentItem"], _base.ViewABC["DeploymentItem"]):
    """The Deployments."""

    kind = _base.Kind.DeploymentList
    resource = "deployments"
    api_paths = _API_PATHS


class DeploymentItem(_base.Scalable, _base.BaseItem, _base.ItemABC):
    """A Deployment: pods that are replaced step by step when their template changes."""

    kind = _base.Kind.Deployment
    resource = "deployments"
    api_paths = _API_PATHS

    @property
    def observed_generation(self) -> int:
        """The generation that the status describes."""
        return count(self, "observedGeneration")

    @property
    def observed_replicas(self) -> int:
        """The number of pods that have not ended."""
        return count(self, "replicas")

    @property
    def updated_replicas(self) -> int:
        """The number of these pods that have the current template."""
        return count(self, "updatedReplicas")

    @property
    def available_replicas(self) -> int:
        """The number of pods that have been ready for ``minReadySeconds``."""
        return count(self, "availableReplicas")

    @property
    def unavailable_replicas(self) -> int:
        """The number of pods that are missing or not yet available."""
        return count(self, "unavailableReplicas")
