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
    code = "import longshore; print(len(longshore.Cluster.from_kubeconfig().view('namespaces')) > 3)"
    env = {**os.environ, "KUBECONFIG": longshore_cluster.kubeconfig}
    assert subprocess.check_output([sys.executable, "-c", code], env=env, text=True) == "True\\n"


def test_kube(longshore_kube, longshore_cluster):
    pytest.importorskip("pyrsistent")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}}
    made = longshore_kube.create(secret, namespace=longshore_cluster.namespace)
    assert made.meta.labels.set("app", "shop").meta.labels == {"app": "shop"}
    assert longshore_cluster.view("secrets").fetch("login").labels == {"app": "shop"}
    assert longshore_cluster.kube.secrets.fetch("login", namespace=longshore_cluster.namespace).meta.uid == made.meta.uid


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


REPLAY = '''
import longshore
import pytest

@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "maps.jsonl"
    path.write_text(RECORDING)
    return path

def test_recorded_responses(longshore_replay, recording):
    replay = longshore_replay(recording, strict=True)
    cluster = longshore.Cluster(kubeconfig=replay.kubeconfig)
    assert cluster.view("configmaps", "shop").fetch("settings").field("data", "colour") == "blue"
    assert replay.served == 1

def test_other_requests(longshore_replay, recording):
    replay = longshore_replay(recording)
    with pytest.raises(longshore.APIError, match="NotRecorded"):
        replay.cluster.view("configmaps", "shop").fetch("other")

def test_strict(longshore_replay, recording):
    longshore_replay(recording, strict=True)
'''

#: The recording of one request.
RECORDING = (
    '{"recording":1,"namespace":"shop"}\n'
    '{"id":1,"request":{"method":"GET","path":"/api/v1/namespaces/shop/configmaps/settings"},'
    '"response":{"status":200,"headers":{"content-type":"application/json"},"body":{"json":'
    '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings","namespace":"shop"},'
    '"data":{"colour":"blue"}}}}}\n'
)


class Replays(unittest.TestCase):
    def replay(self) -> longshore.Replay:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name, "maps.jsonl")
        path.write_text(RECORDING)
        replay = longshore.Replay(path)
        self.addCleanup(replay.stop)
        return replay

    def test_a_replay_reports_what_it_has_served(self) -> None:
        replay = self.replay()
        view = replay.cluster.view("configmaps", "shop")
        self.assertEqual(view.fetch("settings").field("data", "colour"), "blue")
        with self.assertRaises(longshore.APIError):
            view.fetch("other")
        self.assertTrue(replay.kubeconfig.exists())
        replay.stop()
        self.assertFalse(replay.kubeconfig.exists())
        self.assertEqual((replay.served, replay.unused), (1, []))
        [missing] = replay.not_recorded
        self.assertEqual(missing["request"], "GET /api/v1/namespaces/shop/configmaps/other")
        self.assertIn("stopped", repr(replay))
        with self.assertRaisesRegex(AssertionError, "configmaps/other"):
            testing.check_replay(replay)

    def test_a_file_that_is_not_a_recording(self) -> None:
        with self.assertRaisesRegex(longshore.ConfigError, "its first line"):
            longshore.Replay(__file__)
        with self.assertRaisesRegex(longshore.ConfigError, "no-such-file"):
            longshore.Replay("no-such-file")


#: `longshore.kube` needs pyrsistent.
HAS_PACKAGES = importlib.util.find_spec("pytest") and importlib.util.find_spec("pyrsistent")


@unittest.skipUnless(HAS_PACKAGES, "pytest or pyrsistent is not installed")
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
        self.assertIn("8 passed", self.pytest(TESTS))

    def test_replays(self) -> None:
        output = self.pytest(f"RECORDING = {RECORDING!r}\n{REPLAY}")
        # The fixture fails at the end of two tests.
        self.assertIn("3 passed, 2 errors", output)
        self.assertIn("requests that were not recorded", output)
        self.assertIn("recorded requests that were not made", output)

    def test_pods_run(self) -> None:
        self.assertIn("1 passed", self.pytest(PODS))

    @unittest.skipUnless(importlib.util.find_spec("xdist"), "pytest-xdist is not installed")
    def test_workers_of_xdist_have_clusters_of_their_own(self) -> None:
        self.assertIn("8 passed", self.pytest(TESTS, "-n", "2"))

    def test_another_cluster(self) -> None:
        with longshore.EmbeddedCluster(pods=False) as other:
            output = self.pytest(TESTS, "--longshore-context", "longshore", KUBECONFIG=str(other.kubeconfig))
            self.assertIn("7 passed, 1 skipped", output)
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
