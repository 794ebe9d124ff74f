"""Clusters for tests: what the fixtures of pytest return, and a base class for unittest.

>>> from longshore import testing
>>> class Tests(testing.ClusterTestCase):
...     def test_a_config_map(self) -> None:
...         maps = self.cluster.view("configmaps", self.namespace)
...         maps.create({"metadata": {"name": "a"}})
...         self.assertEqual(len(maps), 1)
>>> import io, unittest
>>> result = unittest.TextTestRunner(stream=io.StringIO()).run(Tests("test_a_config_map"))
>>> result.wasSuccessful()
True
"""

from __future__ import annotations

import os
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ._native import Cluster, EmbeddedCluster, Faults, Replay
from .errors import KubeError

if TYPE_CHECKING:
    from . import kube

__all__ = ["ClusterTestCase", "NoFaultsError", "TestCluster", "check_replay", "embedded_cluster", "real_cluster"]


#: Where kubectl finds the kubeconfig by default.
DEFAULT = str(Path.home() / ".kube" / "config")


class NoFaultsError(KubeError):
    """The cluster is not an embedded one, and injects no faults."""


class TestCluster:
    """A cluster for a test."""

    #: pytest does not take the class for one with tests.
    __test__ = False

    def __init__(
        self, cluster: Cluster, kubeconfig: str, namespace: str, faults: Faults | None, context: str | None = None
    ) -> None:
        #: The client.
        self.cluster = cluster
        #: The kubeconfig for other clients and programs, as the variable ``KUBECONFIG``.
        self.kubeconfig = kubeconfig
        #: The context of the kubeconfig; ``None`` for the current one.
        self.context = context
        #: The namespace of the test.
        self.namespace = namespace
        self._faults = faults

    @property
    def faults(self) -> Faults:
        """The faults that the server injects.

        :raises NoFaultsError: On a real cluster.
        """
        if self._faults is None:
            raise NoFaultsError("a real cluster injects no faults: run this test on an embedded cluster")
        return self._faults

    @property
    def kube(self) -> kube.Cluster:
        """The cluster of :mod:`longshore.kube`, by the same connection; needs pyrsistent."""
        from . import kube

        return kube.Cluster.of(self.cluster)

    def view(self, kind: str) -> Any:
        """The objects of a kind in the test's namespace, or all of a kind without namespaces."""
        view = self.cluster.view(kind)
        try:
            return view.in_namespace(self.namespace)
        except KubeError:
            return view

    def __repr__(self) -> str:
        return f"<TestCluster {self.cluster.url} namespace={self.namespace}>"


@contextmanager
def embedded_cluster(*, pods: bool = False, nodes: int = 1) -> Iterator[TestCluster]:
    """A new embedded cluster, only its API server by default. With ``pods``, it has ``nodes`` nodes."""
    with EmbeddedCluster(pods=pods, nodes=nodes) as embedded:
        kubeconfig = embedded.kubeconfig
        if kubeconfig is None:
            raise KubeError("the embedded cluster has no kubeconfig")
        yield TestCluster(embedded.cluster, str(kubeconfig), "default", embedded.faults)


@contextmanager
def real_cluster(context: str) -> Iterator[TestCluster]:
    """A new namespace of the cluster of a context of the kubeconfig. It is deleted at the end."""
    with Cluster.from_kubeconfig(context=context) as cluster:
        spaces = cluster.view("namespaces")
        space = spaces.create({"metadata": {"generateName": "longshore-test-"}})
        try:
            yield TestCluster(cluster, os.environ.get("KUBECONFIG") or DEFAULT, space.name, None, context)
        finally:
            space.delete()


def check_replay(replay: Replay, *, strict: bool = False) -> None:
    """Fails if a request was not recorded or, with ``strict``, a recorded request was not made.

    :raises AssertionError: The message lists the requests.
    """
    missing = [f"{each['request']}: {each['reason']}" for each in replay.not_recorded]
    assert not missing, "requests that were not recorded:\n" + "\n".join(missing)
    unused = replay.unused if strict else []
    assert not unused, "recorded requests that were not made:\n" + "\n".join(unused)


class ClusterTestCase(unittest.TestCase):
    """A test case whose tests each have a new cluster.

    With the variable ``LONGSHORE_TEST_CONTEXT``, each has a new namespace of the cluster of this
    context instead.
    """

    #: Whether the cluster runs pods.
    pods: ClassVar[bool] = False

    test_cluster: TestCluster
    cluster: Cluster
    kubeconfig: str
    namespace: str

    def setUp(self) -> None:
        super().setUp()
        context = os.environ.get("LONGSHORE_TEST_CONTEXT")
        made = real_cluster(context) if context else embedded_cluster(pods=self.pods)
        self.test_cluster = made.__enter__()
        close: Callable[..., Any] = made.__exit__
        self.addCleanup(close, None, None, None)
        self.cluster = self.test_cluster.cluster
        self.kubeconfig = self.test_cluster.kubeconfig
        self.namespace = self.test_cluster.namespace
