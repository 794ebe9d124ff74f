"""Shared by the tests: a cluster, and pods with the status that a test needs."""

import unittest
from typing import Any, TypeVar

import longshore
from longshore.types import Pod

_T = TypeVar("_T")


def present(value: _T | None) -> _T:
    """The value, which must not be `None`."""
    assert value is not None
    return value


def pod(
    name: str,
    *,
    phase: Any = "Running",
    ip: str = "10.1.2.3",
    host_ip: str = "192.168.0.1",
    labels: dict[str, str] | None = None,
    gpus: int = 0,
    namespace: str = "default",
) -> Pod:
    """A pod as JSON, including its status."""
    limits: dict[str, str | float] = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {"job-name": "tensorflow"}},
        "spec": {"containers": [{"name": "main", "image": "any", "resources": {"limits": limits}}]},
        "status": {"phase": phase, "podIP": ip, "hostIP": host_ip},
    }


def add(cluster: longshore.Cluster, pod: Pod) -> longshore.Item[Pod]:
    """Creates a pod and sets its status, as a kubelet does."""
    made: longshore.Item[Pod] = cluster.create(pod)
    return made.patch_status({"status": pod["status"]}, kind="merge")


class WithCluster(unittest.TestCase):
    """Each test has its own API server."""

    def setUp(self) -> None:
        self.embedded = longshore.EmbeddedCluster(pods=False)
        self.addCleanup(self.embedded.stop)
        self.cluster = self.embedded.cluster

    def add(self, name: str, **options: Any) -> longshore.Item[Pod]:
        return add(self.cluster, pod(name, **options))
