"""`override_client`: what is shaped like the official client's `CoreV1Api`."""

import collections
import unittest
from unittest import mock

import longshore
from longshore import KubernetesClusterResolver

from pods import WithCluster

try:
    import kubernetes
except ImportError:
    kubernetes = None


def double(pods_by_selector):
    """A test double as users of TensorFlow's class have it."""
    Pods = collections.namedtuple("Pods", "items")
    client = mock.MagicMock()
    client.list_pod_for_all_namespaces.side_effect = lambda *_, **how: Pods(pods_by_selector[how["label_selector"]])
    return client


def its_pod(name, phase, host_ip):
    pod = mock.MagicMock()
    pod.metadata.name, pod.status.phase, pod.status.host_ip = name, phase, host_ip
    return pod


class Double(unittest.TestCase):
    def spec(self, pods, mapping=None, **how):
        how = {"all_namespaces": True, "address": "host_ip", "order": "lexical", **how}
        resolver = KubernetesClusterResolver(mapping, override_client=double(pods), **how)
        return longshore.ClusterSpec(resolver.cluster_spec()).as_dict()

    def test_tensorflows_own_vectors(self):
        pods = [
            its_pod("tensorflow-abc123", "Running", "10.1.2.3"),
            its_pod("tensorflow-def456", "Running", "10.1.2.4"),
            its_pod("tensorflow-999999", "Running", "10.1.2.5"),
        ]
        expected = {"worker": ["10.1.2.5:8470", "10.1.2.3:8470", "10.1.2.4:8470"]}
        self.assertEqual(self.spec({"job-name=tensorflow": pods}), expected)

    def test_each_selector_is_asked_in_its_own_words(self):
        found = {
            "job-name=worker1": [its_pod("b", "Running", "10.1.2.4"), its_pod("a", "Running", "10.1.2.3")],
            "job-name=worker2": [its_pod("c", "Running", "10.1.2.5")],
        }
        expected = {"worker": ["10.1.2.3:8470", "10.1.2.4:8470", "10.1.2.5:8470"]}
        self.assertEqual(self.spec(found, {"worker": list(found)}), expected)

    def test_a_pod_that_does_not_run(self):
        found = {"job-name=tensorflow": [its_pod("tensorflow-0", "Failed", "10.1.2.3")]}
        with self.assertRaises(RuntimeError) as raised:
            self.spec(found)
        self.assertEqual(str(raised.exception), 'Pod "tensorflow-0" is not running; phase: "Failed"')

    def test_masters_and_accelerators(self):
        pods = {"job-name=tensorflow": [its_pod("worker-0", "Running", "10.1.2.3")]}
        resolver = KubernetesClusterResolver(override_client=double(pods), all_namespaces=True, address="host_ip")
        self.assertEqual(resolver.master("worker", 0), "grpc://10.1.2.3:8470")
        self.assertEqual(resolver.master(), "")
        self.assertEqual(resolver.num_accelerators(), {})
        self.assertIsNone(resolver.task_type)
        with self.assertRaisesRegex(TypeError, "only a longshore.Cluster"):
            resolver.watch()

    def test_what_the_client_raises_comes_through(self):
        client = mock.MagicMock()
        client.list_namespaced_pod.side_effect = PermissionError("not you")
        with self.assertRaisesRegex(PermissionError, "not you"):
            KubernetesClusterResolver(override_client=client).cluster_spec()


@unittest.skipIf(kubernetes is None, "the official client is not there")
class Official(WithCluster):
    def test_it_gives_the_same_as_ours(self):
        self.add("worker-10", ip="10.0.0.10", gpus=1)
        self.add("worker-2", ip="fd00::2", gpus=2)
        self.add("other", ip="10.0.0.3", namespace="kube-system")
        config = kubernetes.client.Configuration()
        kubernetes.config.load_kube_config(str(self.embedded.kubeconfig), client_configuration=config)
        with kubernetes.client.ApiClient(config) as api:
            theirs = kubernetes.client.CoreV1Api(api)
            for how in [{}, {"all_namespaces": True}, {"address": "host_ip", "order": "lexical"}, {"namespace": "kube-system"}]:
                with self.subTest(how):
                    by_theirs = KubernetesClusterResolver(override_client=theirs, **how)
                    by_ours = KubernetesClusterResolver(override_client=self.cluster, **how)
                    self.assertEqual(list(by_theirs.tasks()), list(by_ours.tasks()))
                    self.assertEqual(by_theirs.cluster_spec(), by_ours.cluster_spec())
                    self.assertEqual(by_theirs.num_accelerators(), by_ours.num_accelerators())


if __name__ == "__main__":
    unittest.main()
