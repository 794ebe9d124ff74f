"""`KubernetesClusterResolver` with Longshore's client."""

import os
import threading
import time
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

import longshore
from longshore import ExecutableLocation, KubernetesClusterResolver, MissingTasksError, PodError

from pods import WithCluster, present


class Resolver(WithCluster):
    def resolver(self, mapping: Any = None, port: int = 8470, **options: Any) -> KubernetesClusterResolver:
        return KubernetesClusterResolver(mapping, port, override_client=self.cluster, **options)

    def spec(self, mapping: Any = None, port: int = 8470, **options: Any) -> dict[str, Any]:
        return longshore.ClusterSpec(self.resolver(mapping, port, **options).cluster_spec()).as_dict()

    def test_cases_from_tensorflows_tests(self) -> None:
        self.add("tensorflow-abc123", ip="10.1.2.3")
        self.add("tensorflow-def456", ip="10.1.2.4")
        self.add("tensorflow-999999", ip="10.1.2.5")
        expected = {"worker": ["10.1.2.5:8470", "10.1.2.3:8470", "10.1.2.4:8470"]}
        self.assertEqual(self.spec(order="lexical"), expected)

    def test_master_urls(self) -> None:
        for index in range(3):
            self.add(f"worker-{index}", ip=f"10.1.2.{index + 3}")
        resolver = self.resolver()
        self.assertEqual(resolver.master("worker", 2), "grpc://10.1.2.5:8470")
        self.assertEqual(resolver.master(), "")
        self.assertEqual(resolver.master("worker"), "")
        resolver.task_type, resolver.task_id = "worker", 1
        self.assertEqual((resolver.task_type, resolver.task_id), ("worker", 1))
        self.assertEqual(resolver.master(), "grpc://10.1.2.4:8470")
        self.assertEqual(resolver.master(task_id=0), "grpc://10.1.2.3:8470")
        self.assertEqual(resolver.master("worker", 2, ""), "10.1.2.5:8470")
        resolver.rpc_layer = None
        self.assertEqual(resolver.master("worker", 2), "10.1.2.5:8470")
        self.assertEqual(resolver.master("worker", 2, "http"), "http://10.1.2.5:8470")
        self.assertEqual(resolver.environment, "")
        with self.assertRaisesRegex(ValueError, "No task with index 7 in job 'worker'"):
            resolver.master("worker", 7)

    def test_tasks_are_in_the_order_of_the_selectors(self) -> None:
        self.add("b", ip="10.0.0.2", labels={"job-name": "worker1"})
        self.add("a", ip="10.0.0.1", labels={"job-name": "worker2"})
        mapping = {"worker": ["job-name=worker1", "job-name=worker2"], "ps": ["job-name=none"]}
        self.assertEqual(self.spec(mapping, 2222), {"worker": ["10.0.0.2:2222", "10.0.0.1:2222"], "ps": {}})
        self.assertEqual(self.spec({"w": "job-name in (worker1,worker2)"}), {"w": ["10.0.0.1:8470", "10.0.0.2:8470"]})
        self.assertEqual(self.spec({"w": {"job-name": "worker1"}}), {"w": ["10.0.0.2:8470"]})

    def test_pods_that_are_not_running(self) -> None:
        self.add("good")
        self.add("tensorflow-0", phase="Failed")
        with self.assertRaises(RuntimeError) as raised:
            self.resolver().cluster_spec()
        self.assertEqual(str(raised.exception), 'Pod "tensorflow-0" is not running; phase: "Failed"')
        self.assertIsInstance(raised.exception, PodError)
        self.assertEqual(self.spec(not_running="skip_finished"), {"worker": ["10.1.2.3:8470"]})

    def test_differences_from_tensorflow(self) -> None:
        for index in (10, 2):
            self.add(f"worker-{index}", ip=f"10.0.0.{index}", host_ip=f"192.168.0.{index}")
        self.add("worker-3", ip="fd00::3", namespace="kube-system")
        self.assertEqual(self.spec(), {"worker": ["10.0.0.2:8470", "10.0.0.10:8470"]})
        self.assertEqual(
            self.spec(order="lexical", address="host_ip", namespace="default"),
            {"worker": ["192.168.0.10:8470", "192.168.0.2:8470"]},
        )
        all_namespaces = {"worker": ["10.0.0.2:8470", "[fd00::3]:8470", "10.0.0.10:8470"]}
        self.assertEqual(self.spec(all_namespaces=True), all_namespaces)
        twice = {"a": ["job-name=tensorflow"], "b": ["job-name"]}
        with self.assertRaisesRegex(PodError, 'matched by two selectors, of role "a" and role "b"'):
            self.spec(twice)
        self.assertEqual(self.spec(twice, once=True)["b"], {})

    def test_one_switch_selects_tensorflows_behaviour(self) -> None:
        for index in (10, 2):
            self.add(f"worker-{index}", ip=f"10.0.0.{index}", host_ip=f"192.168.0.{index}")
        self.add("worker-3", host_ip="192.168.0.3", namespace="kube-system")
        expected = {"worker": ["192.168.0.10:8470", "192.168.0.2:8470", "192.168.0.3:8470"]}
        self.assertEqual(self.spec(tensorflow=True), expected)
        self.assertEqual(self.spec(tensorflow=True, namespace="kube-system"), {"worker": ["192.168.0.3:8470"]})
        twice = self.spec({"a": ["job-name=tensorflow"], "b": ["job-name"]}, tensorflow=True)
        self.assertEqual((len(twice["a"]), len(twice["b"])), (3, 3))
        with self.assertRaisesRegex(ValueError, "tensorflow=True replaces address, once"):
            self.resolver(tensorflow=True, address="dns", once=True)

    def test_a_job_without_pods_is_explained_once(self) -> None:
        self.add("worker-0", namespace="kube-system")
        resolver = self.resolver()
        with self.assertLogs("longshore.resolver", "WARNING") as logged:
            self.assertEqual(resolver.cluster_spec().as_dict(), {"worker": {}})
        self.assertEqual(len(logged.output), 1)
        self.assertIn("the job worker has no tasks: no running pod of the namespace default", logged.output[0])
        self.assertIn("pods match in kube-system (1)", logged.output[0])
        with self.assertNoLogs("longshore.resolver", "WARNING"):
            resolver.cluster_spec()

    def test_a_client_of_others_searches_all_namespaces(self) -> None:
        pods: list[dict[str, Any]] = [
            {
                "metadata": {"name": f"worker-{index}", "namespace": namespace, "labels": {}, "uid": f"u{index}"},
                "status": {"phase": "Running", "podIP": f"10.0.0.{index}"},
            }
            for index, namespace in enumerate(["ml", "default", "ops"])
        ]

        class Client:
            def list_namespaced_pod(self, namespace: str, label_selector: str) -> dict[str, Any]:
                return {"items": [pod for pod in pods if pod["metadata"]["namespace"] == namespace]}

        class ClientOfAll(Client):
            def list_pod_for_all_namespaces(self, label_selector: str) -> dict[str, Any]:
                return {"items": pods}

        def spec(client: object, **options: Any) -> dict[str, Any]:
            resolver = KubernetesClusterResolver(override_client=client, **options)
            return longshore.ClusterSpec(resolver.cluster_spec()).as_dict()

        everything = {"worker": ["10.0.0.0:8470", "10.0.0.1:8470", "10.0.0.2:8470"]}
        self.assertEqual(spec(ClientOfAll()), everything)
        self.assertEqual(spec(ClientOfAll(), namespace="ops"), {"worker": ["10.0.0.2:8470"]})
        self.assertEqual(spec(Client()), {"worker": ["10.0.0.1:8470"]})
        with self.assertLogs("longshore.resolver", "WARNING") as logged:
            self.assertEqual(spec(ClientOfAll(), namespace="none"), {"worker": {}})
        self.assertIn("pods match in default (1), ml (1), ops (1)", logged.output[0])

    def test_accelerators(self) -> None:
        self.add("worker-0", gpus=2)
        self.add("worker-1", gpus=4)
        resolver = self.resolver()
        self.assertEqual(resolver.num_accelerators(), {"GPU": 2})
        self.assertEqual(resolver.num_accelerators("worker", 1), {"GPU": 4})
        self.assertEqual(resolver.num_accelerators(config_proto=object()), {"GPU": 2})
        found = [(task["index"], task["resources"]) for task in resolver.accelerators()]
        self.assertEqual(found, [(0, {"nvidia.com/gpu": 2}), (1, {"nvidia.com/gpu": 4})])

    def test_formats(self) -> None:
        self.add("worker-0", ip="10.0.0.1", gpus=8)
        self.add("worker-1", ip="10.0.0.2", gpus=8)
        tasks = self.resolver().tasks()
        self.assertEqual(len(tasks), 2)
        self.assertEqual([task["pod"]["name"] for task in tasks], ["worker-0", "worker-1"])
        self.assertEqual(tasks.render("hostfile"), "10.0.0.1 slots=8\n10.0.0.2 slots=8\n")
        variables = tasks.variables("worker", 1)
        self.assertEqual((variables["MASTER_ADDR"], variables["RANK"]), ("10.0.0.1", "1"))
        self.assertIn('"index":1', variables["TF_CONFIG"])
        cases: list[tuple[Callable[[], object], str]] = [
            (lambda: tasks.render("nothing"), "unknown format"),
            (lambda: tasks.render("torch"), "describes a single task"),
            (lambda: tasks.variables("worker", 5), "No task with index 5"),
        ]
        for call, text in cases:
            with self.assertRaisesRegex(ValueError, text):
                call()

    def test_arguments(self) -> None:
        cases: list[tuple[dict[str, Any], type[Exception], str]] = [
            ({"executable_location": 7}, ValueError, "executable location provided is invalid: 7"),
            ({"tf_server_port": 70000}, ValueError, "70000"),
            ({"address": "ip"}, ValueError, "choose one of pod_ip, host_ip, dns, hostname"),
            ({"order": "random"}, ValueError, "choose one of natural, lexical, index"),
            ({"not_running": "x"}, ValueError, "choose one of fail, skip_finished, skip, keep"),
            ({"namespace": "a", "all_namespaces": True}, ValueError, "not both"),
            ({"override_client": "nonsense"}, TypeError, "override_client must be"),
            ({"job_to_label_mapping": {"worker": 7}}, TypeError, "the selectors of job 'worker'"),
        ]
        for options, error, text in cases:
            with self.subTest(options), self.assertRaisesRegex(error, text):
                KubernetesClusterResolver(**options)
        for location in ExecutableLocation:
            KubernetesClusterResolver(executable_location=location)
        with self.assertRaisesRegex(ValueError, "a==b==c"):
            self.resolver({"worker": ["a==b==c"]}).cluster_spec()

    def test_the_resolver_connects_on_first_use(self) -> None:
        with mock.patch.dict(os.environ, {"KUBECONFIG": "/nonexistent"}):
            resolver = KubernetesClusterResolver()
            self.assertEqual(resolver.master(), "")
            with self.assertRaises(longshore.KubeError):
                resolver.cluster_spec()

    def test_a_closed_cluster(self) -> None:
        resolver = self.resolver()
        self.cluster.close()
        with self.assertRaises(longshore.ClosedError):
            resolver.cluster_spec()

    def test_waiting(self) -> None:
        self.add("worker-0", ip="10.0.0.1")
        resolver = self.resolver()
        with self.assertRaises(MissingTasksError) as raised:
            resolver.wait({"worker": 2}, timeout=0.2)
        self.assertIsInstance(raised.exception, TimeoutError)
        self.assertEqual(raised.exception.missing, {"worker": (1, 2, ["1 not created yet"])})

        def late() -> None:
            time.sleep(0.2)
            self.add("worker-1", ip="10.0.0.2")

        helper = threading.Thread(target=late)
        helper.start()
        # The wait must release the interpreter's lock, or the helper could not add the pod.
        spec = longshore.ClusterSpec(resolver.wait({"worker": 2}, timeout=30))
        helper.join()
        self.assertEqual(spec.num_tasks("worker"), 2)
        with self.assertRaises(ValueError):
            resolver.wait({"worker": 2}, timeout=-1)

    def test_watching(self) -> None:
        self.add("worker-0", ip="10.0.0.1")
        generations = self.resolver(not_running="skip").watch()
        first = present(generations.next(10))
        self.assertEqual((first.number, len(first.joined), first.left), (1, 1, []))
        self.assertIsNone(generations.next(0.1))
        self.add("worker-1", ip="10.0.0.2")
        second = next(generations)
        self.assertEqual([task["pod"]["name"] for task in second.joined], ["worker-1"])
        self.cluster.view("pods", "default").delete("worker-0")
        third = present(generations.next(30))
        self.assertEqual(third.number, 3)
        self.assertEqual(third.spec.as_dict(), {"worker": ["10.0.0.2:8470"]})
        self.assertEqual([task["pod"]["name"] for task in third.left], ["worker-0"])


if __name__ == "__main__":
    unittest.main()
