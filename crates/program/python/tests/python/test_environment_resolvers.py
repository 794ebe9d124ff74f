"""Cluster resolvers of the environment, and the union of resolvers."""

import json
import os
import unittest
from typing import Any
from unittest import mock

import longshore
import longshore.cluster_resolver
from longshore import SageMakerClusterResolver, SlurmClusterResolver, TFConfigClusterResolver, UnionResolver


def dense(resolver: Any) -> dict[str, Any]:
    return longshore.ClusterSpec(resolver.cluster_spec()).as_dict()


class Fixed:
    """A resolver of others: only its methods count."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.task_type, self.task_id, self.rpc_layer, self.environment = "worker", 0, "grpc", ""

    def cluster_spec(self) -> longshore.ClusterSpec:
        return longshore.ClusterSpec(self.spec)

    def master(self, task_type: Any = None, task_id: Any = None, rpc_layer: Any = None) -> str:
        return "first"

    def num_accelerators(self, *arguments: Any) -> dict[str, int]:
        return {"GPU": 2}


class Environment(unittest.TestCase):
    def set(self, **variables: str) -> None:
        patch = mock.patch.dict(os.environ, variables)
        patch.start()
        self.addCleanup(patch.stop)

    def test_tf_config(self) -> None:
        self.assertEqual(dense(TFConfigClusterResolver()), {})
        self.assertEqual(TFConfigClusterResolver().master(), "")
        config = {"cluster": {"worker": ["a:1", "b:1"], "ps": ["c:1"]}, "task": {"type": "worker", "index": 1}}
        self.set(TF_CONFIG=json.dumps(config | {"rpc_layer": "http"}))
        resolver = TFConfigClusterResolver()
        self.assertEqual(dense(resolver), config["cluster"])
        self.assertEqual((resolver.task_type, resolver.task_id, resolver.rpc_layer), ("worker", 1, "http"))
        self.assertEqual(resolver.master(), "http://b:1")
        self.assertEqual(resolver.master("ps", 0, "grpc"), "grpc://c:1")
        resolver.task_type, resolver.task_id, resolver.rpc_layer = "ps", 0, ""
        self.assertEqual(resolver.master(), "c:1")
        self.assertEqual(TFConfigClusterResolver("worker", 0, environment="google").environment, "google")

    def test_tf_config_of_a_single_task_has_no_master(self) -> None:
        self.set(TF_CONFIG=json.dumps({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}))
        self.assertEqual(TFConfigClusterResolver().master(), "")
        self.set(TF_CONFIG=json.dumps({"session_master": "somewhere"}))
        self.assertEqual(TFConfigClusterResolver().master(), "somewhere")

    def test_invalid_variables_are_value_errors(self) -> None:
        self.set(TF_CONFIG="[")
        with self.assertRaisesRegex(ValueError, "TF_CONFIG is invalid"):
            TFConfigClusterResolver().cluster_spec()
        with self.assertRaisesRegex(ValueError, "SLURM_PROCID is not set: Slurm sets it"):
            SlurmClusterResolver().cluster_spec()
        with self.assertRaisesRegex(ValueError, "SM_HOSTS is not set"):
            SageMakerClusterResolver().cluster_spec()

    def test_slurm(self) -> None:
        self.set(
            SLURM_PROCID="3",
            SLURM_STEP_NUM_TASKS="4",
            SLURM_STEP_NODELIST="n[2,10]",
            SLURM_STEP_TASKS_PER_NODE="2(x2)",
        )
        resolver = SlurmClusterResolver()
        self.assertEqual(dense(resolver), {"worker": ["n2:8888", "n2:8889", "n10:8888", "n10:8889"]})
        self.assertEqual(resolver.get_task_info(), ("worker", 3))
        self.assertEqual(resolver.master(), "grpc://n10:8889")
        split = SlurmClusterResolver({"worker": 3, "ps": 1}, port_base=1)
        self.assertEqual(dense(split), {"ps": ["n2:1"], "worker": ["n2:2", "n10:1", "n10:2"]})
        self.assertEqual(SlurmClusterResolver(gpus_per_task=2, auto_set_gpu=False).num_accelerators(), {"GPU": 2})
        with self.assertRaisesRegex(ValueError, "srun --gpus-per-task"):
            SlurmClusterResolver(auto_set_gpu=True)
        with self.assertRaisesRegex(ValueError, "srun --ntasks 9"):
            SlurmClusterResolver({"worker": 9}).cluster_spec()

    def test_sagemaker(self) -> None:
        self.set(SM_HOSTS='["algo-1", "algo-2"]', SM_CURRENT_HOST="algo-2")
        resolver = SageMakerClusterResolver()
        self.assertEqual(dense(resolver), {"worker": ["algo-1:2223", "algo-2:2223"]})
        self.assertEqual((resolver.task_id, resolver.master()), (1, "algo-2:2223"))
        other = SageMakerClusterResolver(1, "worker", 0, "grpc", "sagemaker")
        self.assertEqual((other.master(), other.environment), ("grpc://algo-1:1", "sagemaker"))

    def test_accelerators_are_those_of_the_variable(self) -> None:
        if vars(longshore.cluster_resolver)["_tf"] is not None:
            self.skipTest("TensorFlow counts its own devices")
        self.set(CUDA_VISIBLE_DEVICES="0,1")
        self.assertEqual(TFConfigClusterResolver().num_accelerators(), {"GPU": 2})
        self.set(CUDA_VISIBLE_DEVICES="")
        self.assertEqual(TFConfigClusterResolver().num_accelerators(), {})

    def test_union(self) -> None:
        first, second = Fixed({"worker": ["a:1"], "ps": {}}), Fixed({"worker": ["b:1"], "chief": ["c:1"]})
        union = UnionResolver(first, second)
        self.assertEqual(dense(union), {"chief": ["c:1"], "ps": {}, "worker": ["a:1", "b:1"]})
        self.assertEqual(union.master(), "first")
        self.assertEqual((union.master("worker", 1), union.master("worker", 1, "grpc")), ("b:1", "grpc://b:1"))
        self.assertEqual((union.task_type, union.task_id, union.environment), ("worker", 0, ""))
        self.assertEqual(union.num_accelerators(), {"GPU": 2})
        union.task_type, union.task_id, union.rpc_layer = "chief", 0, ""
        self.assertEqual((union.task_type, union.task_id), ("chief", 0))
        self.assertEqual(union.master("chief", 0), "c:1")

    def test_union_of_jobs_with_missing_indices(self) -> None:
        sparse = UnionResolver(Fixed({"worker": {1: "b:1"}}), Fixed({"worker": ["a:1"]}))
        self.assertEqual(dense(sparse), {"worker": ["a:1", "b:1"]})
        with self.assertRaisesRegex(KeyError, "tasks .1. of job 'worker'"):
            UnionResolver(Fixed({"worker": {1: "b:1"}}), Fixed({"worker": {1: "c:1"}})).cluster_spec()
        with self.assertRaisesRegex(ValueError, "at least one"):
            UnionResolver()
        wrong: Any = 7
        with self.assertRaisesRegex(TypeError, "must be cluster resolvers"):
            UnionResolver(wrong)


if __name__ == "__main__":
    unittest.main()
