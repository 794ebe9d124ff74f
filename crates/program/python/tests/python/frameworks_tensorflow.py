"""With TensorFlow installed: the real base class, real specs, and the same results."""

import contextlib
import json
import os
import random
import unittest
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import kubernetes
import tensorflow as tf

import longshore
from longshore import KubernetesClusterResolver
from tensorflow.python.distribute.cluster_resolver.sagemaker_cluster_resolver import (
    SageMakerClusterResolver as TheirSageMaker,
)

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


#: How many generated environments each class is compared in.
ENVIRONMENTS = 300


@contextlib.contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Only these variables of launchers are set."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("TF_CONFIG", "SLURM_", "SM_"))}
    with mock.patch.dict(os.environ, {**others, **variables}, clear=True):
        yield


def jobs(choose: random.Random) -> dict[str, list[str]]:
    """Jobs with the addresses of their tasks."""
    names = choose.sample(["chief", "worker", "ps", "evaluator", "a-b", "x"], choose.randint(1, 4))
    return {name: [f"{name}-{index}:{choose.randint(1, 65535)}" for index in range(choose.randint(1, 5))] for name in names}


class Environments(unittest.TestCase):
    """The resolvers of other launchers' variables, beside TensorFlow's, in generated environments."""

    def assert_same(self, ours: Any, theirs: Any, *, environments: bool = True) -> None:
        self.assertIsInstance(ours, tensorflow.ClusterResolver)
        self.assertEqual(ours.cluster_spec(), theirs.cluster_spec())
        self.assertEqual((ours.task_type, ours.task_id), (theirs.task_type, theirs.task_id))
        self.assertEqual(ours.rpc_layer, theirs.rpc_layer)
        self.assertEqual(ours.master(), theirs.master())
        spec = theirs.cluster_spec()
        for job in spec.jobs:
            for index in spec.task_indices(job):
                for layer in (None, "grpc", "http"):
                    self.assertEqual(ours.master(job, index, layer), theirs.master(job, index, layer))
        if environments:
            # TensorFlow's classes return the argument; ours, the empty text without one.
            self.assertEqual(ours.environment, theirs.environment or "")

    def compare(self, seed: int, make: Callable[[random.Random], tuple[dict[str, str], Callable[[], tuple[Any, Any]]]]) -> None:
        choose = random.Random(seed)
        for number in range(ENVIRONMENTS):
            variables, resolvers = make(choose)
            with self.subTest(number=number, variables=variables), environment(variables):
                self.assert_same(*resolvers())

    def test_tf_config(self) -> None:
        def make(choose: random.Random) -> tuple[dict[str, str], Callable[[], tuple[Any, Any]]]:
            cluster = jobs(choose)
            job = choose.choice(sorted(cluster))
            index = choose.randrange(len(cluster[job]))
            config: dict[str, Any] = {"cluster": cluster, "task": {"type": job, "index": choose.choice([index, str(index)])}}
            if choose.random() < 0.3:
                config["rpc_layer"] = choose.choice(["grpc", "http"])
            if choose.random() < 0.1:
                config["session_master"] = "grpc://elsewhere:1"
            arguments: dict[str, Any] = {}
            if choose.random() < 0.3:
                arguments["rpc_layer"] = choose.choice(["grpc", "http+x"])
            if choose.random() < 0.3:
                other = choose.choice(sorted(cluster))
                arguments |= {"task_type": other, "task_id": choose.randrange(len(cluster[other]))}
            if choose.random() < 0.3:
                arguments["environment"] = "google"
            return {"TF_CONFIG": json.dumps(config)}, lambda: (
                longshore.TFConfigClusterResolver(**arguments),
                tensorflow.TFConfigClusterResolver(**arguments),
            )

        self.compare(1, make)

    def test_tf_config_without_tasks(self) -> None:
        for text in (None, "{}", '{"cluster": {}}', '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}'):
            with self.subTest(text), environment({} if text is None else {"TF_CONFIG": text}):
                self.assert_same(longshore.TFConfigClusterResolver(), tensorflow.TFConfigClusterResolver())

    def test_slurm(self) -> None:
        def make(choose: random.Random) -> tuple[dict[str, str], Callable[[], tuple[Any, Any]]]:
            # TensorFlow's class sorts the names of hosts: these are in order.
            first = choose.randint(1, 40)
            counts = [choose.randint(1, 4) for _ in range(choose.randint(2, 6))]
            per_node = ",".join(f"{count}(x1)" if choose.random() < 0.3 else str(count) for count in counts)
            if len(set(counts)) == 1:
                per_node = f"{counts[0]}(x{len(counts)})"
            total = sum(counts)
            arguments: dict[str, Any] = {"gpus_per_node": 8, "gpus_per_task": 1, "auto_set_gpu": False}
            if choose.random() < 0.5:
                workers = choose.randint(1, total - 1)
                arguments["jobs"] = {"worker": workers, choose.choice(["ps", "zeta"]): total - workers}
            if choose.random() < 0.5:
                arguments["port_base"] = choose.randint(1, 60000)
            if choose.random() < 0.3:
                arguments["rpc_layer"] = choose.choice(["http", "grpc+x"])
            variables = {
                "SLURM_PROCID": str(choose.randrange(total)),
                "SLURM_STEP_NUM_TASKS": str(total),
                "SLURM_STEP_NODELIST": f"n[{first:03}-{first + len(counts) - 1:03}]",
                "SLURM_STEP_TASKS_PER_NODE": per_node,
            }
            return variables, lambda: (
                longshore.SlurmClusterResolver(**arguments),
                # Its task is known after the spec.
                after_spec(tensorflow.SlurmClusterResolver(**arguments)),
            )

        def after_spec(resolver: Any) -> Any:
            resolver.cluster_spec()
            return resolver

        choose = random.Random(2)
        for number in range(ENVIRONMENTS):
            variables, resolvers = make(choose)
            with self.subTest(number=number, variables=variables), environment(variables):
                ours, theirs = resolvers()
                # Its property of the environment raises an error.
                self.assert_same(ours, theirs, environments=False)
                self.assertEqual(ours.get_task_info(), theirs.get_task_info())
                self.assertEqual(ours.num_accelerators(), theirs.num_accelerators())

    def test_the_order_of_slurms_hosts_is_the_documented_difference(self) -> None:
        variables = {
            "SLURM_PROCID": "0",
            "SLURM_STEP_NUM_TASKS": "2",
            "SLURM_STEP_NODELIST": "n[2,10]",
            "SLURM_STEP_TASKS_PER_NODE": "1(x2)",
        }
        with environment(variables):
            theirs = tensorflow.SlurmClusterResolver(gpus_per_node=1, gpus_per_task=1, auto_set_gpu=False)
            self.assertEqual(theirs.cluster_spec().as_dict(), {"worker": ["n10:8888", "n2:8888"]})
            ours = longshore.SlurmClusterResolver()
            self.assertEqual(ours.cluster_spec().as_dict(), {"worker": ["n2:8888", "n10:8888"]})

    def test_sagemaker(self) -> None:
        def make(choose: random.Random) -> tuple[dict[str, str], Callable[[], tuple[Any, Any]]]:
            hosts = [f"algo-{number}" for number in choose.sample(range(1, 30), choose.randint(1, 12))]
            arguments: dict[str, Any] = {}
            if choose.random() < 0.5:
                arguments["port"] = choose.randint(1, 65535)
            if choose.random() < 0.3:
                arguments |= {"task_type": "worker", "task_id": choose.randrange(len(hosts))}
            if choose.random() < 0.5:
                arguments["rpc_layer"] = choose.choice(["grpc", "http"])
            if choose.random() < 0.3:
                arguments["environment"] = "sagemaker"
            variables = {"SM_HOSTS": json.dumps(hosts), "SM_CURRENT_HOST": choose.choice(hosts)}
            return variables, lambda: (longshore.SageMakerClusterResolver(**arguments), TheirSageMaker(**arguments))

        self.compare(3, make)

    def test_union(self) -> None:
        choose = random.Random(4)

        def part() -> Any:
            cluster: dict[str, Any] = jobs(choose)
            for job, tasks in cluster.items():
                if choose.random() < 0.3:
                    cluster[job] = {choose.randint(0, 9): address for address in tasks}
            return tensorflow.SimpleClusterResolver(
                tf.train.ClusterSpec(cluster),
                master=choose.choice(["", "grpc://first:1"]),
                task_type=choose.choice(sorted(cluster)),
                task_id=choose.randint(0, 3),
                rpc_layer=choose.choice(["grpc", "http"]),
                environment=choose.choice(["", "google"]),
                num_accelerators={"GPU": choose.randint(0, 3)},
            )

        def outcome(resolver: Any) -> Any:
            try:
                return resolver.cluster_spec()
            except KeyError:
                return KeyError

        twice = 0
        for number in range(ENVIRONMENTS):
            parts = [part() for _ in range(choose.randint(1, 3))]
            arguments: dict[str, Any] = {}
            if choose.random() < 0.3:
                arguments = {"rpc_layer": "http+x", "task_type": "worker", "task_id": choose.randint(1, 3)}
            with self.subTest(number=number):
                ours = longshore.UnionResolver(*parts, **arguments)
                theirs = tensorflow.UnionResolver(*parts, **arguments)
                self.assertEqual(outcome(ours), outcome(theirs))
                self.assertEqual(
                    (ours.task_type, ours.task_id, ours.rpc_layer, ours.environment, ours.num_accelerators()),
                    (theirs.task_type, theirs.task_id, theirs.rpc_layer, theirs.environment, theirs.num_accelerators()),
                )
                self.assertEqual(ours.master(), theirs.master())
                if outcome(theirs) is KeyError:
                    twice += 1
                    continue
                spec = theirs.cluster_spec()
                for job in spec.jobs:
                    for index in spec.task_indices(job):
                        self.assertEqual(ours.master(job, index), theirs.master(job, index))
        self.assertGreater(twice, 0)


if __name__ == "__main__":
    unittest.main()
