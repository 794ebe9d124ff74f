"""`override_client` with the official client's `CoreV1Api`, and with mocks of it."""

import collections
import importlib.util
import unittest
from typing import TYPE_CHECKING, Any
from unittest import mock

import longshore
from longshore import KubernetesClusterResolver

from pods import WithCluster

HAS_KUBERNETES = importlib.util.find_spec("kubernetes") is not None
if TYPE_CHECKING or HAS_KUBERNETES:
    import kubernetes  # pyright: ignore[reportMissingImports]


def mock_client(pods_by_selector: dict[str, list[mock.MagicMock]]) -> mock.MagicMock:
    """A mock client, as in the tests of users of TensorFlow's class."""
    Pods = collections.namedtuple("Pods", "items")
    client = mock.MagicMock()
    client.list_pod_for_all_namespaces.side_effect = lambda *_, **options: Pods(pods_by_selector[options["label_selector"]])
    return client


def mock_pod(name: str, phase: str, host_ip: str) -> mock.MagicMock:
    pod = mock.MagicMock()
    pod.metadata.name, pod.status.phase, pod.status.host_ip = name, phase, host_ip
    return pod


class MockClient(unittest.TestCase):
    def spec(
        self, pods: dict[str, list[mock.MagicMock]], mapping: dict[str, list[str]] | None = None, **options: Any
    ) -> dict[str, Any]:
        options = {"all_namespaces": True, "address": "host_ip", "order": "lexical", **options}
        resolver = KubernetesClusterResolver(mapping, override_client=mock_client(pods), **options)
        return longshore.ClusterSpec(resolver.cluster_spec()).as_dict()

    def test_cases_from_tensorflows_tests(self) -> None:
        pods = [
            mock_pod("tensorflow-abc123", "Running", "10.1.2.3"),
            mock_pod("tensorflow-def456", "Running", "10.1.2.4"),
            mock_pod("tensorflow-999999", "Running", "10.1.2.5"),
        ]
        expected = {"worker": ["10.1.2.5:8470", "10.1.2.3:8470", "10.1.2.4:8470"]}
        self.assertEqual(self.spec({"job-name=tensorflow": pods}), expected)

    def test_each_selector_is_passed_unchanged(self) -> None:
        found = {
            "job-name=worker1": [mock_pod("b", "Running", "10.1.2.4"), mock_pod("a", "Running", "10.1.2.3")],
            "job-name=worker2": [mock_pod("c", "Running", "10.1.2.5")],
        }
        expected = {"worker": ["10.1.2.3:8470", "10.1.2.4:8470", "10.1.2.5:8470"]}
        self.assertEqual(self.spec(found, {"worker": list(found)}), expected)

    def test_a_pod_that_is_not_running(self) -> None:
        found = {"job-name=tensorflow": [mock_pod("tensorflow-0", "Failed", "10.1.2.3")]}
        with self.assertRaises(RuntimeError) as raised:
            self.spec(found)
        self.assertEqual(str(raised.exception), 'Pod "tensorflow-0" is not running; phase: "Failed"')

    def test_masters_and_accelerators(self) -> None:
        pods = {"job-name=tensorflow": [mock_pod("worker-0", "Running", "10.1.2.3")]}
        resolver = KubernetesClusterResolver(override_client=mock_client(pods), all_namespaces=True, address="host_ip")
        self.assertEqual(resolver.master("worker", 0), "grpc://10.1.2.3:8470")
        self.assertEqual(resolver.master(), "")
        self.assertEqual(resolver.num_accelerators(), {})
        self.assertIsNone(resolver.task_type)
        with self.assertRaisesRegex(TypeError, "only a longshore.Cluster"):
            resolver.watch()

    def test_exceptions_of_the_client_propagate(self) -> None:
        client = mock.MagicMock()
        client.list_namespaced_pod.side_effect = PermissionError("not you")
        with self.assertRaisesRegex(PermissionError, "not you"):
            KubernetesClusterResolver(override_client=client).cluster_spec()

    def test_a_client_is_used_by_the_list_method_that_it_has(self) -> None:
        pods = [{"metadata": {"name": "a"}, "status": {"phase": "Running", "podIP": "10.0.0.1"}},
                {"metadata": {"name": "b", "namespace": "other"}, "status": {"phase": "Running", "podIP": "10.0.0.2"}}]
        double = mock.MagicMock()
        double.list_pod_for_all_namespaces.return_value.items = pods
        cases: list[tuple[mock.Mock, dict[str, Any], list[str]]] = [
            (double, {}, ["10.0.0.1:8470", "10.0.0.2:8470"]),
            (double, {"namespace": "default"}, ["10.0.0.1:8470"]),
            (double, {"all_namespaces": True}, ["10.0.0.1:8470", "10.0.0.2:8470"]),
            (mock.Mock(spec=["list_pod_for_all_namespaces"], **{"list_pod_for_all_namespaces.return_value": {"items": pods}}),
             {"namespace": "other"}, ["10.0.0.1:8470", "10.0.0.2:8470"]),
            (mock.Mock(spec=["list_namespaced_pod"], **{"list_namespaced_pod.return_value": {"items": pods[:1]}}),
             {}, ["10.0.0.1:8470"]),
        ]
        for client, options, expected in cases:
            resolver = KubernetesClusterResolver({"worker": ["a=b"]}, override_client=client, **options)
            self.assertEqual(resolver.cluster_spec().as_dict(), {"worker": expected})
        with self.assertRaisesRegex(TypeError, "returned no list of pods"):
            KubernetesClusterResolver(override_client=mock.MagicMock()).cluster_spec()


@unittest.skipUnless(HAS_KUBERNETES, "the official client is not installed")
class Official(WithCluster):
    def test_results_are_the_same_as_with_our_client(self) -> None:
        self.add("worker-10", ip="10.0.0.10", gpus=1)
        self.add("worker-2", ip="fd00::2", gpus=2)
        self.add("other", ip="10.0.0.3", namespace="kube-system")
        config = kubernetes.client.Configuration()
        kubernetes.config.load_kube_config(str(self.embedded.kubeconfig), client_configuration=config)
        with kubernetes.client.ApiClient(config) as api:
            theirs = kubernetes.client.CoreV1Api(api)
            cases: list[dict[str, Any]] = [
                {"namespace": "default"}, {"all_namespaces": True}, {"namespace": "kube-system"},
                {"namespace": "default", "address": "host_ip", "order": "lexical"}, {"tensorflow": True},
            ]
            for options in cases:
                with self.subTest(options):
                    by_theirs = KubernetesClusterResolver(override_client=theirs, **options)
                    by_ours = KubernetesClusterResolver(override_client=self.cluster, **options)
                    self.assertEqual(list(by_theirs.tasks()), list(by_ours.tasks()))
                    self.assertEqual(by_theirs.cluster_spec(), by_ours.cluster_spec())
                    self.assertEqual(by_theirs.num_accelerators(), by_ours.num_accelerators())


if __name__ == "__main__":
    unittest.main()
