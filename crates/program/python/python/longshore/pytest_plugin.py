"""Fixtures of pytest. The wheel registers them: installing Longshore is enough.

Each fixture returns a :class:`longshore.testing.TestCluster`:

========================================  =================================================
``longshore_cluster``                     a new API server for each test
``longshore_cluster_with_pods``           a new cluster that runs pods, for each test
``longshore_module_cluster``              one API server for the tests of a module
``longshore_module_cluster_with_pods``    one cluster that runs pods for the tests of a module
``longshore_session_cluster``             one API server for all tests of a process
``longshore_session_cluster_with_pods``   one cluster that runs pods for all tests of a process
========================================  =================================================

``longshore_kube`` and ``longshore_kube_with_pods`` return the first two of these clusters as a
:class:`longshore.kube.Cluster`.

``longshore_replay`` replays a recording: ``longshore_replay("pods.jsonl")`` returns a
:class:`longshore.Replay`. The test fails if a request was not recorded.

With ``--longshore-context NAME``, each is a new namespace of the cluster of this context instead,
and tests that inject faults are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from ._native import Replay
from .testing import NoFaultsError, TestCluster, check_replay, embedded_cluster, real_cluster

if TYPE_CHECKING:
    from . import kube


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("longshore", "Kubernetes clusters for tests")
    group.addoption(
        "--longshore-context",
        metavar="NAME",
        help="run the tests on the cluster of this context of the kubeconfig, each in a new namespace, "
        "instead of on embedded clusters",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    try:
        return (yield)
    except NoFaultsError as error:
        pytest.skip(str(error))


def _cluster(config: pytest.Config, *, pods: bool) -> Iterator[TestCluster]:
    context: str | None = config.getoption("--longshore-context")
    with real_cluster(context) if context else embedded_cluster(pods=pods) as cluster:
        yield cluster


@pytest.fixture
def longshore_cluster(request: Any) -> Iterator[TestCluster]:
    """A new API server for this test."""
    yield from _cluster(request.config, pods=False)


@pytest.fixture
def longshore_cluster_with_pods(request: Any) -> Iterator[TestCluster]:
    """A new cluster that runs pods, for this test."""
    yield from _cluster(request.config, pods=True)


@pytest.fixture(scope="module")
def longshore_module_cluster(request: Any) -> Iterator[TestCluster]:
    """One API server for the tests of a module."""
    yield from _cluster(request.config, pods=False)


@pytest.fixture(scope="module")
def longshore_module_cluster_with_pods(request: Any) -> Iterator[TestCluster]:
    """One cluster that runs pods for the tests of a module."""
    yield from _cluster(request.config, pods=True)


@pytest.fixture(scope="session")
def longshore_session_cluster(request: Any) -> Iterator[TestCluster]:
    """One API server for all tests of this process. With xdist, each worker has its own."""
    yield from _cluster(request.config, pods=False)


@pytest.fixture(scope="session")
def longshore_session_cluster_with_pods(request: Any) -> Iterator[TestCluster]:
    """One cluster that runs pods for all tests of this process. With xdist, each worker has its own."""
    yield from _cluster(request.config, pods=True)


@pytest.fixture
def longshore_kube(longshore_cluster: TestCluster) -> kube.Cluster:
    """The cluster of ``longshore_cluster`` as a :class:`longshore.kube.Cluster`."""
    return longshore_cluster.kube


@pytest.fixture
def longshore_kube_with_pods(longshore_cluster_with_pods: TestCluster) -> kube.Cluster:
    """The cluster of ``longshore_cluster_with_pods`` as a :class:`longshore.kube.Cluster`."""
    return longshore_cluster_with_pods.kube


@pytest.fixture
def longshore_replay() -> Iterator[Callable[..., Replay]]:
    """Replays a recording of ``longshore record``, with the arguments of :class:`longshore.Replay`."""
    started: list[tuple[Replay, bool]] = []

    def start(path: Any, *, strict: bool = False, **options: bool) -> Replay:
        replay = Replay(path, strict=strict, **options)
        started.append((replay, strict))
        return replay

    yield start
    for replay, _ in started:
        replay.stop()
    for replay, strict in started:
        check_replay(replay, strict=strict)
