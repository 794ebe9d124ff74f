"""`ClusterSpec` behaves like TensorFlow's class."""

import copy
import pickle
import unittest
from collections.abc import Callable

from longshore import ClusterSpec, KubeError, NoSuchTaskError, SpecError


class Spec(unittest.TestCase):
    def test_dense_and_sparse_jobs(self) -> None:
        spec = ClusterSpec({"worker": ["a:1", "b:1"], "ps": {3: "d:1", 1: "c:1"}})
        self.assertEqual(spec.as_dict(), {"worker": ["a:1", "b:1"], "ps": {1: "c:1", 3: "d:1"}})
        self.assertEqual(spec.jobs, ["ps", "worker"])
        self.assertEqual(spec.num_tasks("ps"), 2)
        self.assertEqual(spec.task_indices("ps"), [1, 3])
        self.assertEqual(spec.task_address("ps", 3), "d:1")
        self.assertEqual(spec.job_tasks("ps"), [None, "c:1", None, "d:1"])
        self.assertEqual(ClusterSpec({"worker": {1: "b", 0: "a"}}).as_dict(), {"worker": ["a", "b"]})

    def test_a_spec_from_another_spec(self) -> None:
        spec = ClusterSpec({"worker": ("a:1", "b:1")})
        self.assertEqual(ClusterSpec(spec), spec)

        class Theirs:
            def as_dict(self) -> dict[str, list[str]]:
                return {"worker": ["a:1", "b:1"]}

        self.assertEqual(ClusterSpec(Theirs()), spec)
        self.assertEqual(hash(ClusterSpec(spec)), hash(spec))
        self.assertNotEqual(spec, ClusterSpec({"worker": ["a:1"]}))
        self.assertNotEqual(spec, {"worker": ["a:1", "b:1"]})
        self.assertEqual(pickle.loads(pickle.dumps(spec)), spec)
        self.assertEqual(copy.deepcopy(spec), spec)
        self.assertEqual(repr(spec), "ClusterSpec({'worker': ['a:1', 'b:1']})")
        self.assertEqual(eval(repr(spec)), spec)

    def test_a_spec_without_jobs_is_false(self) -> None:
        self.assertFalse(ClusterSpec({}))
        self.assertTrue(ClusterSpec({"worker": []}))

    def test_the_cluster_def(self) -> None:
        spec = ClusterSpec({"worker": ["a:1"], "ps": {2: "b:1"}})
        try:
            import tensorflow  # noqa: F401
        except ImportError:
            expected = {"job": [{"name": "ps", "tasks": {"2": "b:1"}}, {"name": "worker", "tasks": {"0": "a:1"}}]}
            self.assertEqual(spec.as_cluster_def(), expected)

    def test_missing_jobs_and_tasks(self) -> None:
        spec = ClusterSpec({"worker": ["a:1"]})
        cases: list[tuple[Callable[[], object], str]] = [
            (lambda: spec.task_address("x", 0), "No such job in cluster: 'x'"),
            (lambda: spec.num_tasks("x"), "No such job in cluster: 'x'"),
            (lambda: spec.task_indices("x"), "No such job in cluster: 'x'"),
            (lambda: spec.job_tasks("x"), "No such job in cluster: 'x'"),
            (lambda: spec.task_address("worker", 3), "No task with index 3 in job 'worker'"),
            (lambda: spec.task_address("worker", -1), "No task with index -1 in job 'worker'"),
        ]
        for call, text in cases:
            with self.assertRaises(ValueError) as raised:
                call()
            self.assertIsInstance(raised.exception, NoSuchTaskError)
            self.assertIsInstance(raised.exception, KubeError)
            self.assertEqual(str(raised.exception), text)

    def test_invalid_specs(self) -> None:
        for cluster, named in [
            ({"worker": [1]}, "task 0 of job 'worker' has 1"),
            ({"worker": ["a:1", None]}, "task 1 of job 'worker' has null"),
            ({"worker": {-1: "a:1"}}, "has a task -1"),
            ({"worker": {"1": "a:1"}}, "has a task '1'"),
            ({"worker": {1.5: "a:1"}}, "has a task 1.5"),
            ({"worker": {2**40: "a:1"}}, "has a task 1099511627776"),
            ({"worker": "a:1"}, 'are "a:1"'),
            ({"worker": 7}, "are 7"),
            (7, "is 7"),
            (["a:1"], "is ["),
            ({7: ["a:1"]}, "is 7"),
        ]:
            with self.subTest(cluster=cluster), self.assertRaises(TypeError) as raised:
                ClusterSpec(cluster)
            self.assertIn(named, str(raised.exception))
        self.assertTrue(issubclass(SpecError, ValueError))

    def test_a_job_with_a_huge_gap_has_no_list(self) -> None:
        spec = ClusterSpec({"worker": {4_000_000_000: "a:1"}})
        self.assertEqual(spec.as_dict(), {"worker": {4_000_000_000: "a:1"}})
        with self.assertRaisesRegex(ValueError, "4000000000"):
            spec.job_tasks("worker")
