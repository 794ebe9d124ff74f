"""In a pod: the service account leads to the cluster, and each task finds itself."""

import os
import sys
import tempfile
import time
import unittest

import longshore

PROGRAM = """
import os, pathlib, time
import longshore
resolver = longshore.KubernetesClusterResolver({"worker": ["job-name=train"]})
spec = longshore.ClusterSpec(resolver.wait({"worker": 2}, timeout=60))
print(resolver.task_type, resolver.task_id, resolver.master() == "grpc://" + spec.task_address("worker", resolver.task_id))
stranger = longshore.KubernetesClusterResolver({"ps": ["job-name=nobody"]})
print(stranger.task_type, stranger.task_id, repr(stranger.master()))
# Nobody ends before both have seen each other.
meeting = pathlib.Path(os.environ["MEETING"])
(meeting / str(resolver.task_id)).touch()
while len(list(meeting.iterdir())) < 2:
    time.sleep(0.05)
"""


class Pod(unittest.TestCase):
    def test_tasks_find_themselves(self):
        with tempfile.TemporaryDirectory() as meeting, longshore.EmbeddedCluster() as embedded:
            container = {
                "name": "main",
                "image": "any",
                "command": [sys.executable, "-B", "-c", PROGRAM],
                "env": [
                    {"name": "PYTHONPATH", "value": os.environ.get("PYTHONPATH", "")},
                    {"name": "MEETING", "value": meeting},
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
            item = cluster.create(job)
            end = time.monotonic() + 120
            while not item.fetch().field("status", "conditions"):
                self.assertLess(time.monotonic(), end, item.fetch().raw)
                time.sleep(0.1)
            logs = []
            for pod in cluster.view("pods", "default"):
                folder = embedded.kubeconfig.parent
                logs += [path.read_text() for path in folder.rglob("*.log") if pod.uid in str(path)]
            self.assertEqual(item.fetch().field("status", "succeeded"), 2, logs)
            for index in range(2):
                found = [log for log in logs if f"worker {index} True" in log]
                self.assertEqual(len(found), 1, logs)
                self.assertIn("None None ''", found[0])


if __name__ == "__main__":
    unittest.main()
