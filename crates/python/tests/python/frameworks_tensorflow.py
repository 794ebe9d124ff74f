"""With TensorFlow installed: the real base class, real specs, and the same results."""

import os
import unittest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import kubernetes
import tensorflow as tf

import longshore
from longshore import KubernetesClusterResolver

from pods import WithCluster

tensorflow = tf.distribute.cluster_resolver


class TensorFlow(WithCluster):
    def test_the_resolver_is_a_tensorflow_resolver(self) -> None:
        self.add("worker-0", ip="10.0.0.1")
        resolver = KubernetesClusterResolver(override_client=self.cluster)
        self.assertIsInstance(resolver, tensorflow.ClusterResolver)
        spec = resolver.cluster_spec()
        self.assertIsInstance(spec, tf.train.ClusterSpec)
        self.assertIsInstance(resolver.wait({"worker": 1}, 10), tf.train.ClusterSpec)
        self.assertEqual(spec.as_dict(), {"worker": ["10.0.0.1:8470"]})
        definition = longshore.ClusterSpec(spec).as_cluster_def()
        self.assertEqual(definition, spec.as_cluster_def())
        KubernetesClusterResolver(executable_location=tensorflow.KubernetesExecutableLocation.OFF_CLUSTER)
        union = tensorflow.UnionResolver(resolver)
        self.assertEqual(union.cluster_spec().as_dict(), spec.as_dict())

    def test_results_are_the_same_as_tensorflows(self) -> None:
        self.add("worker-10", host_ip="192.168.0.10")
        self.add("worker-2", host_ip="192.168.0.2")
        config = kubernetes.client.Configuration()
        kubernetes.config.load_kube_config(str(self.embedded.kubeconfig), client_configuration=config)
        with kubernetes.client.ApiClient(config) as api:
            client = kubernetes.client.CoreV1Api(api)
            theirs = tensorflow.KubernetesClusterResolver(override_client=client)
            for override in (self.cluster, client):
                ours = KubernetesClusterResolver(
                    override_client=override, all_namespaces=True, address="host_ip", order="lexical"
                )
                self.assertEqual(theirs.cluster_spec(), ours.cluster_spec())
                self.assertEqual(theirs.master("worker", 1), ours.master("worker", 1))
                self.assertEqual(theirs.environment, ours.environment)
            self.add("worker-3", phase="Pending")
            for resolver in (theirs, ours):
                with self.assertRaisesRegex(RuntimeError, 'Pod "worker-3" is not running; phase: "Pending"'):
                    resolver.cluster_spec()

    def test_a_strategy_accepts_the_resolver(self) -> None:
        self.add("worker-0", ip="127.0.0.1")
        resolver = KubernetesClusterResolver(tf_server_port=34567, override_client=self.cluster)
        resolver.task_type, resolver.task_id = "worker", 0
        strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
        self.assertEqual(strategy.num_replicas_in_sync, 1)
        self.assertIs(strategy.cluster_resolver, resolver)


if __name__ == "__main__":
    unittest.main()
