"""Shared by the tests: a cluster, and pods with the status that a test needs."""

import unittest

import longshore


def pod(name, *, phase="Running", ip="10.1.2.3", host_ip="192.168.0.1", labels=None, gpus=0, namespace="default"):
    """A pod as JSON, including its status."""
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {"job-name": "tensorflow"}},
        "spec": {"containers": [{"name": "main", "image": "any", "resources": {"limits": limits}}]},
        "status": {"phase": phase, "podIP": ip, "hostIP": host_ip},
    }


def add(cluster, pod):
    """Creates a pod and sets its status, as a kubelet does."""
    return cluster.create(pod).patch_status({"status": pod["status"]}, kind="merge")


class WithCluster(unittest.TestCase):
    """Each test has its own API server."""

    def setUp(self):
        self.embedded = longshore.EmbeddedCluster(pods=False)
        self.addCleanup(self.embedded.stop)
        self.cluster = self.embedded.cluster

    def add(self, name, **options):
        return add(self.cluster, pod(name, **options))
