"""The keys of longshore.toml as options of ``longshore.run``."""

import os
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import longshore

from launched import Launched
from pods import present

#: Fails in its first attempt, after it has written how far it came.
RESUMED = """
import os, pathlib, sys
attempt = int(os.environ["LONGSHORE_ATTEMPT"])
state = pathlib.Path(os.environ["LONGSHORE_CHECKPOINT_DIR"], "step")
print(f"attempt {attempt} begins at {state.read_text() if state.exists() else 0}", flush=True)
state.write_text("3")
sys.exit(int(sys.argv[1]) if attempt == 1 else 0)
"""


class RunOptions(Launched):
    def test_data(self) -> None:
        """Relative folders are those of the current folder, and paths are accepted."""
        folder = self.folder(main_py="import os, pathlib\n"
                             "print(pathlib.Path(os.environ['LONGSHORE_DATA_DIGITS'], 'a.csv').read_text())\n"
                             "print(pathlib.Path('/labels/a.csv').read_text())\n")
        digits, labels = folder.parent / "digits", folder.parent / "labels"
        for data in [digits, labels]:
            data.mkdir()
            (data / "a.csv").write_text(data.name)
        before = Path.cwd()
        self.addCleanup(os.chdir, before)
        os.chdir(folder.parent)
        run = longshore.run(folder / "main.py", cluster=self.cluster,
                            data={"digits": Path("digits"), "labels": {"source": labels, "path": "/labels"}})
        self.assertEqual(self.lines(run), ["main/0 | digits", "main/0 | labels"])
        [pod] = self.cluster.view("pods", run.namespace).filter(labels={"longshore.dev/run": run.name})
        self.assertIn('"digits":"', pod.raw["metadata"]["annotations"]["longshore.dev/data"])
        with self.assertRaisesRegex(longshore.LaunchError, "nothing"):
            longshore.run(folder / "main.py", cluster=self.cluster, data={"digits": "nothing"})

    def test_a_task_continues_from_its_checkpoint(self) -> None:
        folder = self.folder(main_py=RESUMED)
        results = folder.parent / "results"
        results.mkdir()

        def run(code: str) -> longshore.Run:
            return longshore.run(
                folder, ["python3", "main.py", code], cluster=self.cluster, retries=2, no_retry_exit_codes=[2],
                volumes=[{"host": results, "path": "/results"}], checkpoint_dir="/results/checkpoints",
            )

        first = run("7")
        self.assertEqual(first.wait().exit_code, 0)
        self.assertEqual(self.lines(first), ["main/0 | attempt 1 begins at 0", "main/0 | attempt 2 begins at 3"])
        self.assertEqual(first.summary().restarts, 1)
        self.assertEqual((results / "checkpoints" / first.name / "step").read_text(), "3")
        second = run("2")
        self.assertEqual(second.wait().exit_code, 2)
        self.assertEqual(second.summary().restarts, 0)

    def test_all_tasks_are_restarted(self) -> None:
        script = ('echo "attempt $LONGSHORE_ATTEMPT of $LONGSHORE_INDEX"; test $LONGSHORE_ATTEMPT = 2 && exit 0; '
                  "test $LONGSHORE_INDEX = 1 && exit 9; sleep 600")
        run = longshore.run(self.folder(), ["sh", "-c", script], cluster=self.cluster, workers=2, retries=1, restart="run")
        lines = self.lines(run)
        for index in range(2):
            self.assertIn(f"main/{index} | attempt 2 of {index}", lines)
        self.assertEqual(run.summary().state, "succeeded")
        with self.assertRaisesRegex(longshore.InvalidError, "restart"):
            longshore.run(self.folder(), ["true"], cluster=self.cluster, retries=1, restart="all")

    def test_time_limits_of_a_task(self) -> None:
        script = "trap 'echo warned' USR1; sleep 30 & wait; wait"
        run = longshore.run(self.folder(), ["sh", "-c", script], cluster=self.cluster, task_timeout="3s",
                            timeout_warning="2s", timeout_signal="USR1", termination_grace="1s")
        self.assertIn("main/0 | warned", self.lines(run))
        self.assertEqual(run.status, "failed")

    def test_idle_gpus(self) -> None:
        folder = self.folder(longshore_toml="command = ['sleep', '60']")
        tools = folder.parent / "tools"
        tools.mkdir()
        program = tools / "nvidia-smi"
        program.write_text('#!/bin/sh\necho "0, GPU-1, 1, 100, 1000"\n')
        program.chmod(0o755)
        with mock.patch.dict(os.environ, {"PATH": f"{tools}:{os.environ['PATH']}"}):
            run = longshore.run(folder, cluster=self.cluster, idle_timeout="2s", env={"CUDA_VISIBLE_DEVICES": "0"})
        self.assertEqual(run.wait().exit_code, 123)
        [task] = run.usage().tasks
        gpu = present(present(task.recorded).gpu)
        self.assertEqual((gpu.count, gpu.mean_percent), (1, 1))

    def test_outputs_of_running_tasks(self) -> None:
        folder = self.folder(main_py="import time\nopen('a.json', 'w').write('1')\nprint('written', flush=True)\n"
                             "time.sleep(600)\n")
        run = longshore.run(folder / "main.py", cluster=self.cluster, outputs=["*.json"], outputs_every="1m")
        self.assertEqual(next(run.logs()).line, "written")
        self.assertEqual([file.path for file in run.outputs().files], ["a.json"])
        self.assertRegex("\n".join(run.warnings), "outputs_every has no effect: the embedded cluster keeps them itself")
        run.cancel()

    def test_outputs_in_a_claim(self) -> None:
        self.cluster.create({
            "kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "results", "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        })
        folder = self.folder(main_py="open('a.json', 'w').write('1')\n")
        # A cluster of this machine keeps outputs itself; by another kubeconfig, it is any cluster.
        kubeconfig = folder.parent / "kubeconfig"
        kubeconfig.write_text(self.embedded.kubeconfig.read_text())
        other = longshore.Cluster(kubeconfig=kubeconfig)
        run = longshore.run(folder / "main.py", cluster=other, outputs=["*.json"], outputs_claim="results")
        self.assertEqual(run.wait().exit_code, 0)
        [pod] = self.cluster.view("pods", run.namespace).filter(labels={"longshore.dev/run": run.name})
        claims = [volume["persistentVolumeClaim"] for volume in pod.raw["spec"]["volumes"] if "persistentVolumeClaim" in volume]
        self.assertEqual([claim["claimName"] for claim in claims], ["results"])
        with self.assertRaisesRegex(longshore.KubeError, "use the command `longshore outputs`"):
            run.outputs()

    def test_contexts(self) -> None:
        """The name of a context is a cluster, with the namespace of the context."""
        self.cluster.create({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "team"}})
        folder = self.folder(longshore_toml="command = ['true']\n[contexts.east]\nnamespace = 'team'\n"
                             f"kubeconfig = '{self.embedded.kubeconfig}'\n")
        self.assertEqual(longshore.run(folder, cluster="east").namespace, "team")
        with mock.patch.dict(os.environ, {"LONGSHORE_CONTEXT": "east"}):
            run = longshore.run(folder)
            self.assertEqual(run.namespace, "team")
        self.assertEqual(run.wait().exit_code, 0)
        with self.assertRaisesRegex(longshore.ConfigError, "several contexts: west, east"):
            longshore.run(folder, cluster="west,east")

    def test_keys_that_do_not_apply(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"kubeconfig": "a"}, "give cluster="),
            ({"contexts": {"a": {}}}, "write them in longshore.toml"),
            ({"forward": [6006]}, "forward ports"),
            ({"notify": "a"}, "notifies"),
            ({"data": {"a": 3}}, "a folder"),
            ({"tagss": {}}, "did you mean `tags`"),
        ]
        for options, text in cases:
            with self.subTest(text), self.assertRaisesRegex(TypeError, text):
                longshore.run(self.folder(), ["true"], cluster=self.cluster, **options)


if __name__ == "__main__":
    unittest.main()
