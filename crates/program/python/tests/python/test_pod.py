"""In a pod, the resolver connects with the service account and detects its own task."""

import os
import sys
import tempfile
import time
import unittest

import longshore
import longshore.testing

PROGRAM = """
import os, pathlib, time
import longshore
import longshore.testing
resolver = longshore.KubernetesClusterResolver({"worker": ["job-name=train"]})
spec = longshore.ClusterSpec(resolver.wait({"worker": 2}, timeout=60))
print(resolver.task_type, resolver.task_id, resolver.master() == "grpc://" + spec.task_address("worker", resolver.task_id))
other = longshore.KubernetesClusterResolver({"ps": ["job-name=other"]})
print(other.task_type, other.task_id, repr(other.master()))
# Both tasks must run until both have resolved the cluster spec.
barrier = pathlib.Path(os.environ["BARRIER"])
(barrier / str(resolver.task_id)).touch()
while len(list(barrier.iterdir())) < 2:
    time.sleep(0.05)
"""


GROUP = "rbac.authorization.k8s.io"


def grant_pods(cluster: longshore.Cluster) -> None:
    """Lets the default service account list and watch pods."""
    metadata = {"name": "pod-reader", "namespace": "default"}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}
    account = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    role = {"apiGroup": GROUP, "kind": "Role", "name": "pod-reader"}
    kind = {"apiVersion": f"{GROUP}/v1", "metadata": metadata}
    cluster.create({**kind, "kind": "Role", "rules": [rule]})
    cluster.create({**kind, "kind": "RoleBinding", "roleRef": role, "subjects": [account]})


class Pod(unittest.TestCase):
    def test_tasks_detect_their_role_and_index(self) -> None:
        with tempfile.TemporaryDirectory() as barrier, longshore.EmbeddedCluster() as embedded:
            container = {
                "name": "main",
                "image": "any",
                "command": [sys.executable, "-B", "-c", PROGRAM],
                "env": [
                    {"name": "PYTHONPATH", "value": os.environ.get("PYTHONPATH", "")},
                    {"name": "BARRIER", "value": barrier},
                ],
            }
            job = {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": "train", "namespace": "default"},
                "spec": {
                    "completionMode": "Indexed",
                    "completions": 2,
                    "parallelism": 2,
                    "backoffLimit": 0,
                    "template": {
                        "metadata": {"labels": {"job-name": "train"}},
                        "spec": {"restartPolicy": "Never", "containers": [container]},
                    },
                },
            }
            cluster = embedded.cluster
            grant_pods(cluster)
            item = cluster.create(job).wait("finished", timeout=120)
            logs = ["\n".join(pod.logs()) for pod in cluster.view("pods", "default")]
            self.assertEqual(item.fetch().field("status", "succeeded"), 2, logs)
            for index in range(2):
                found = [log for log in logs if f"worker {index} True" in log]
                self.assertEqual(len(found), 1, logs)
                self.assertIn("None None ''", found[0])

    def test_several_nodes(self) -> None:
        with longshore.testing.embedded_cluster(pods=True, nodes=2) as tested:
            names = [node.name for node in tested.cluster.view("nodes")]
            self.assertEqual(names, ["longshore", "longshore-2"])
        for arguments, text in (({"nodes": 0}, "from 1 to 100"), ({"nodes": 2, "pods": False}, "without pods")):
            with self.assertRaisesRegex(ValueError, text):
                longshore.EmbeddedCluster(**arguments)  # type: ignore[arg-type]

    def test_the_command_and_the_user_of_an_image(self) -> None:
        """A container without a command runs that of its image, as the user of its image."""
        user = os.getuid() or 4321
        with longshore.EmbeddedCluster(
            image_entrypoints={"trainer": "sh -c 'echo trained as $(id -u)'"},
            image_users={"trainer": user, "other": "1:1"},
        ) as embedded:
            pod = embedded.cluster.view("pods", "default").create({
                "metadata": {"name": "a"},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "trainer:2"}]},
            })
            pod.wait("finished", timeout=60)
            self.assertEqual(list(pod.logs()), [f"trained as {user}"])
        for options, text in [
            ({"image_entrypoints": {"a": ""}}, "the command is empty"),
            ({"image_entrypoints": {"a": "'"}}, "a quote is not closed"),
            ({"image_users": {"a": "root"}}, "root"),
        ]:
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                longshore.EmbeddedCluster(pods=False, **options)  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
