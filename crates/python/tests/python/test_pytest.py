"""The fixtures of pytest, and the base class for unittest."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import longshore
from longshore import testing

TESTS = '''
import os, subprocess, sys, unittest

import pytest

import longshore


def test_each_test_has_a_new_cluster(longshore_cluster):
    maps = longshore_cluster.view("configmaps")
    maps.create({"metadata": {"name": "a"}})
    assert [item.name for item in maps if item.name == "a"] == ["a"]


test_each_test_has_a_new_cluster_again = test_each_test_has_a_new_cluster


def test_module(longshore_module_cluster, longshore_session_cluster):
    assert longshore_module_cluster.namespace
    assert longshore_module_cluster.cluster.url
    longshore_session_cluster.view("configmaps").create({"metadata": {"name": "shared"}})


def test_session(longshore_session_cluster):
    assert longshore_session_cluster.view("configmaps").find("shared") or os.environ.get("PYTEST_XDIST_WORKER")


def test_faults(longshore_cluster):
    rule = longshore_cluster.faults.add({"match": {"verbs": ["create"]}, "effect": {"answer": {"code": 409}}, "times": 1})
    with pytest.raises(longshore.ConflictError):
        longshore_cluster.view("configmaps").create({"metadata": {"name": "a"}})
    assert longshore_cluster.faults.fired(rule) == 1


def test_other_clients_use_the_kubeconfig(longshore_cluster):
    code = "import longshore; print(len(longshore.Cluster().view('namespaces')) > 3)"
    env = {**os.environ, "KUBECONFIG": longshore_cluster.kubeconfig}
    assert subprocess.check_output([sys.executable, "-c", code], env=env, text=True) == "True\\n"


def test_cluster_objects(longshore_cluster):
    assert longshore_cluster.view("namespaces").fetch(longshore_cluster.namespace)
'''

PODS = '''
def test_pods(longshore_cluster_with_pods):
    container = {"name": "main", "image": "any", "command": ["echo", "hello"]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    pod = longshore_cluster_with_pods.view("pods").create({"metadata": {"name": "a"}, "spec": spec})
    pod.wait("finished", timeout=60)
    assert list(pod.logs()) == ["hello"]
'''


@unittest.skipUnless(importlib.util.find_spec("pytest"), "pytest is not installed")
class Pytest(unittest.TestCase):
    def pytest(self, text: str, *arguments: str, **environment: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "test_it.py").write_text(text)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
            # The wheel registers the plugin by itself.
            if "LONGSHORE_TEST_WHEEL" not in os.environ:
                command += ["-p", "longshore.pytest_plugin"]
            done = subprocess.run([*command, *arguments, "-rs", folder], capture_output=True, text=True,
                                  env={**os.environ, **environment}, cwd=folder)
            return done.stdout + done.stderr

    def test_embedded_clusters(self) -> None:
        self.assertIn("7 passed", self.pytest(TESTS))

    def test_pods_run(self) -> None:
        self.assertIn("1 passed", self.pytest(PODS))

    @unittest.skipUnless(importlib.util.find_spec("xdist"), "pytest-xdist is not installed")
    def test_workers_of_xdist_have_clusters_of_their_own(self) -> None:
        self.assertIn("7 passed", self.pytest(TESTS, "-n", "2"))

    def test_another_cluster(self) -> None:
        with longshore.EmbeddedCluster(pods=False) as other:
            output = self.pytest(TESTS, "--longshore-context", "longshore", KUBECONFIG=str(other.kubeconfig))
            self.assertIn("6 passed, 1 skipped", output)
            self.assertIn("a real cluster injects no faults", output)
            spaces = [item for item in other.cluster.view("namespaces") if item.name.startswith("longshore-test-")]
            # An API server alone does not finish the deletion.
            self.assertTrue(all(item.field("metadata", "deletionTimestamp") for item in spaces))

    def test_an_unknown_context_is_named(self) -> None:
        with longshore.EmbeddedCluster(pods=False) as other:
            output = self.pytest(TESTS, "--longshore-context", "missing", KUBECONFIG=str(other.kubeconfig))
            self.assertIn("missing", output)
            self.assertRegex(output, r"\d errors")


class Unittest(testing.ClusterTestCase):
    def test_the_cluster_is_new(self) -> None:
        self.assertEqual(self.cluster.view("configmaps", self.namespace).list(), [])
        self.test_cluster.view("configmaps").create({"metadata": {"name": "a"}})
        self.assertTrue(Path(self.kubeconfig).exists())

    test_the_cluster_is_new_again = test_the_cluster_is_new

    def test_faults_of_a_real_cluster(self) -> None:
        real = testing.TestCluster(self.cluster, self.kubeconfig, "default", None)
        with self.assertRaisesRegex(testing.NoFaultsError, "real cluster"):
            real.faults

    def test_bad_rules_are_rejected(self) -> None:
        with self.assertRaisesRegex(ValueError, "fault rule"):
            self.test_cluster.faults.add({"match": 3})


if __name__ == "__main__":
    unittest.main()
