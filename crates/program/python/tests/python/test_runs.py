"""Runs launched from Python."""

import asyncio
import hashlib
import os
import sys
import tempfile
import threading
import unittest
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import longshore
from longshore import aio
from longshore._runs import line_of

import train_example
from launched import Launched
from pods import present


class Runs(Launched):
    """Runs on one cluster with pods."""

    def test_a_folder(self) -> None:
        folder = self.folder(longshore_toml="command = ['sh', 'run.sh']\n[env]\nA = 'file'\nB = 'file'\n",
                             run_sh='echo "$A $B"; exit 3')
        run = longshore.run(folder, cluster=self.cluster, env={"A": "argument"}, name="named", timeout="1m")
        self.assertTrue(run.name.startswith("named-"))
        self.assertEqual(self.lines(run), ["main/0 | argument file"])
        self.assertEqual(run.wait().exit_code, 3)
        self.assertEqual(run.status, "failed")
        self.assertEqual(run.why()["exitCode"], 3)
        with self.assertRaisesRegex(longshore.LaunchError, "exit code 3"):
            run.wait(check=True)
        self.assertEqual(longshore.find_run(run.name, cluster=self.cluster).status, "failed")
        run.remove()
        with self.assertRaises(longshore.KubeError):
            longshore.find_run(run.name, cluster=self.cluster)

    def test_a_command_and_roles(self) -> None:
        folder = self.folder(longshore_toml="[roles.a]\ncount = 1\n[roles.b]\ncount = 1\n")
        command = ["sh", "-c", "echo $LONGSHORE_ROLE"]
        run = longshore.run(folder, command, cluster=self.cluster, roles={"a": 2})
        self.assertEqual(self.lines(run), ["a/0 | a", "a/1 | a", "b/0 | b"])

    def test_a_script(self) -> None:
        folder = self.folder(main_py="import helper", helper_py="print('helped')")
        run = longshore.run(folder / "main.py", cluster=self.cluster)
        self.assertEqual(self.lines(run), ["main/0 | helped"])

    def test_tasks_on_this_machine_use_the_same_interpreter(self) -> None:
        folder = self.folder(main_py="import os, sys; print(sys.prefix, os.environ['OMP_NUM_THREADS'])")
        with mock.patch.dict(os.environ, {"PATH": os.defpath, "OMP_NUM_THREADS": "3"}):
            run = longshore.run(folder / "main.py", cluster=self.cluster)
        self.assertEqual(self.lines(run), [f"main/0 | {sys.prefix} 3"])

    def test_code_that_does_not_fit_a_secret(self) -> None:
        folder = self.folder(main_py="import os; print(os.path.getsize('large'))")
        (folder / "large").write_bytes(os.urandom(3_000_000))
        run = longshore.run(folder / "main.py", cluster=self.cluster)
        self.assertEqual(self.lines(run), ["main/0 | 3000000"])

    def test_code_that_is_in_the_image_is_not_packed(self) -> None:
        folder = self.folder(main_py="")
        run = longshore.run(folder, ["sh", "-c", "ls | wc -l"], code=False, cluster=self.cluster)
        self.assertEqual(self.lines(run), ["main/0 | 0"])

    def test_functions(self) -> None:
        env = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        run = longshore.run(train_example.train, cluster=self.cluster, args=[0.5], kwargs={"steps": 2}, env=env)
        self.assertEqual(self.lines(run), ["main/0 | task 0 trains with 0.5 for 2 steps"])
        task = train_example.decorated.with_options(cluster=self.cluster, env=env)
        self.assertEqual(self.lines(task.launch(0.1)), [
            "main/0 | task 0 trains with 0.1 for 1 steps", "main/1 | task 1 trains with 0.1 for 1 steps",
        ])

    def test_a_run_is_cancelled(self) -> None:
        run = longshore.run(self.folder(), ["sh", "-c", "echo started; sleep 60"], cluster=self.cluster)
        events = run.events()
        while present(events.next(timeout=60))["event"] != "log":
            pass
        self.assertEqual(run.status, "running")
        threading.Timer(0.1, run.cancel).start()
        self.assertNotEqual(run.wait().exit_code, 0)
        self.assertEqual(run.status, "cancelled")

    def test_runs_of_other_users_are_changed_only_on_request(self) -> None:
        run = longshore.run(self.folder(), ["sleep", "1000"], cluster=self.cluster)
        self.assertEqual(run.summary().owner, "longshore-admin")
        digest = hashlib.sha256(b"cluster\nbob").hexdigest()[:16]
        owner = {"labels": {"longshore.dev/owner": f"bob-{digest}"}, "annotations": {"longshore.dev/owner": "bob"}}
        self.cluster.view("jobs", "default").patch(f"{run.name}-main", {"metadata": owner})
        found = longshore.find_run(run.name, cluster=self.cluster)
        self.assertEqual(found.summary().owner, "bob")
        for change in (found.cancel, found.remove, lambda: found.tag("best"), lambda: found.set_note("text")):
            with self.assertRaisesRegex(longshore.KubeError, "belongs to bob"):
                change()
        with self.assertRaisesRegex(longshore.KubeError, "is yours"):
            longshore.find_run(run.name[:-1], cluster=self.cluster)
        self.assertNotIn(run.name, [summary.name for summary in longshore.runs(mine=True, cluster=self.cluster)])
        [listed] = longshore.runs(name=run.name, all_users=True, cluster=self.cluster)
        listed.run.tag("best")
        allowed = longshore.find_run(run.name[:-1], all_users=True, cluster=self.cluster)
        self.assertEqual(allowed.tags, {"best": ""})
        allowed.remove()

    def test_the_lines_of_a_cancelled_run_are_kept(self) -> None:
        command = ["sh", "-c", "echo begun; exec sleep 300"]
        run = longshore.run(self.folder(), command, cluster=self.cluster)
        for line in run.logs():
            self.assertEqual((str(line), line.is_gap), ("main/0 | begun", False))
            run.cancel()
        self.assertEqual(self.lines(run), ["main/0 | begun"])

    def test_missing_lines_are_marked(self) -> None:
        gap = {"event": "gap", "role": "worker", "index": 2, "message": "lines may be missing"}
        expected = longshore.LogLine("worker", 2, "longshore: lines may be missing", is_gap=True)
        self.assertEqual(line_of(gap), expected)
        self.assertIsNone(line_of({"event": "progress"}))

    def test_asyncio(self) -> None:
        folder = self.folder(main_py="print('hello')")

        async def use() -> tuple[list[str], int, str]:
            async with aio.Cluster(kubeconfig=self.embedded.kubeconfig) as cluster:
                run = await aio.run(folder / "main.py", cluster=cluster, workers=2)
                lines = sorted([str(line) async for line in run.logs()])
                result = await run.wait(check=True)
                state = await run.status()
                await run.cancel()
                await run.remove()
                return lines, result.exit_code, state

        self.assertEqual(asyncio.run(use()), (["main/0 | hello", "main/1 | hello"], 0, "succeeded"))

    def test_outputs(self) -> None:
        script = "import os; open('m.json', 'w').write(os.environ['LONGSHORE_INDEX']); os.symlink('/etc/passwd', 'x.json')"
        folder = self.folder(main_py=script)
        run = longshore.run(folder / "main.py", cluster=self.cluster, workers=2, outputs=["*.json"])
        self.assertEqual(run.wait().exit_code, 0)
        outputs = run.outputs()
        self.assertEqual([(file.task, file.path, file.size, file.local) for file in outputs.files],
                         [("main/0", "m.json", 1, None), ("main/1", "m.json", 1, None)])
        self.assertEqual(outputs.running, [])
        self.assertRegex(outputs.left_out[0], "^main/0 x.json is a symbolic link")
        [fetched] = run.outputs(folder / "got", task="main/1").files
        self.assertEqual(present(fetched.local), folder / "got" / "main-1" / "m.json")
        self.assertEqual(present(fetched.local).read_text(), "1")
        present(fetched.local).write_text("own")
        with self.assertRaisesRegex(longshore.KubeError, "another content: m.json"):
            run.outputs(folder / "got")
        run.outputs(folder / "got", force=True)
        self.assertEqual(present(fetched.local).read_text(), "1")
        with self.assertRaisesRegex(longshore.KubeError, "no role"):
            run.outputs(task="worker/0")
        run.remove()
        with self.assertRaisesRegex(longshore.KubeError, "no outputs"):
            run.outputs()

    def test_a_sweep(self) -> None:
        folder = self.folder(main_py="import json, os, sys\n"
                             "rate = float(os.environ['LONGSHORE_PARAM_RATE'])\n"
                             "print(f'loss={rate * 2}')\n"
                             "with open(os.environ['LONGSHORE_METRICS'], 'a') as file:\n"
                             "    print(json.dumps({'acc': float('nan') if rate > 1 else rate}), file=file)\n"
                             "sys.exit(rate > 1 and not os.path.exists(sys.argv[1]))\n")
        marker = folder.parent / "fixed"
        run = longshore.run(folder, [sys.executable, "main.py", str(marker), "{n}"], cluster=self.cluster,
                            sweep={"rate": [0.5, 1.5], "n": "1..2"}, parallel=2, metrics=["loss"])
        self.assertEqual(run.wait().exit_code, 1)
        rows = run.sweep()
        self.assertEqual([(row.index, row.parameters, row.state, row.exit_code) for row in rows], [
            (0, {"rate": "0.5", "n": "1"}, "succeeded", 0), (1, {"rate": "0.5", "n": "2"}, "succeeded", 0),
            (2, {"rate": "1.5", "n": "1"}, "failed", 1), (3, {"rate": "1.5", "n": "2"}, "failed", 1),
        ])
        self.assertEqual(rows[0].metrics, {"acc": 0.5, "loss": 1.0})
        self.assertNotEqual(rows[2].metrics["acc"], rows[2].metrics["acc"])
        started, finished = present(rows[0].started), present(rows[0].finished)
        self.assertLessEqual(started, finished)
        self.assertNotIn("loss", run.sweep(logs=False)[0].metrics)
        marker.touch()
        again = run.retry()
        self.assertEqual(again.wait().exit_code, 0)
        self.assertEqual([(row.state, row.run) for row in again.sweep()],
                         [("succeeded", run.name)] * 2 + [("succeeded", again.name)] * 2)
        with self.assertRaisesRegex(longshore.KubeError, "no failed combinations"):
            run.retry()
        with self.assertRaisesRegex(longshore.KubeError, "is not a sweep"):
            longshore.run(folder, ["true"], cluster=self.cluster).sweep()
        with self.assertRaisesRegex(longshore.InvalidError, "names no parameter"):
            longshore.run(folder, ["true", "{x}"], cluster=self.cluster, sweep=[{"a": 1}, {"a": 2}])

    def test_a_sweep_with_asyncio(self) -> None:
        async def use() -> list[longshore.Combination]:
            async with aio.Cluster(kubeconfig=self.embedded.kubeconfig) as cluster:
                run = await aio.run(self.folder(), ["true"], cluster=cluster, sweep=[{"a": 1}, {"a": 2}])
                await run.wait()
                return await run.sweep()

        self.assertEqual([row.parameters for row in asyncio.run(use())], [{"a": "1"}, {"a": "2"}])

    def test_outputs_with_asyncio(self) -> None:
        folder = self.folder(main_py="open('m.json', 'w').write('1')")

        async def use() -> longshore.Outputs:
            async with aio.Cluster(kubeconfig=self.embedded.kubeconfig) as cluster:
                run = await aio.run(folder / "main.py", cluster=cluster, outputs=["*.json"])
                await run.wait(check=True)
                return await run.outputs(folder / "got")

        [file] = asyncio.run(use()).files
        self.assertEqual(present(file.local).read_text(), "1")

    def test_outputs_on_another_cluster(self) -> None:
        other = longshore.Cluster(present(self.embedded.url))
        with self.assertRaisesRegex(longshore.LaunchError, "this cluster keeps no files of tasks"):
            longshore.run(self.folder(), ["true"], cluster=other, outputs=["*.json"])

    def test_bad_arguments(self) -> None:
        folder = self.folder()

        def run(code: Any = folder, command: Sequence[str] = ("true",), **options: Any) -> longshore.Run:
            return longshore.run(code, command, cluster=self.cluster, **options)

        cases: list[tuple[Callable[[], object], type[Exception], str]] = [
            (lambda: run(image_name="a"), TypeError, "image_name"),
            (lambda: run(workers=2, roles={"a": 1}), TypeError, "not both"),
            (lambda: run(memory="4 apples"), longshore.InvalidError, "4 apples"),
            (lambda: run(env={"A=B": "x"}), longshore.InvalidError, "A=B"),
            (lambda: run(timeout="soon"), longshore.InvalidError, "soon"),
            (lambda: run(command=()), longshore.InvalidError, "command"),
            (lambda: run("/nonexistent"), FileNotFoundError, "/nonexistent"),
            (lambda: run(__file__[:-3] + ".sh"), FileNotFoundError, "test_runs.sh"),
            (lambda: run(args=[1]), TypeError, "those of a function"),
            (lambda: run(lambda: 1), TypeError, "no name in its module"),
            (lambda: run(train_example.train, args=[object()]), TypeError, "as JSON"),
            (lambda: run(train_example.train, args=["x" * 200_000]), TypeError, "200"),
            (lambda: run(image="not an image!"), longshore.KubeError, "image"),
        ]
        for call, error, text in cases:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                call()
        self.assertEqual(self.cluster.view("jobs", "default").filter(labels="app.kubernetes.io/name=none").list(), [])


class Sources(unittest.TestCase):
    """Functions without a file."""

    def test_the_source_of_a_notebook_function_is_packed(self) -> None:
        from longshore._code import locate

        with tempfile.TemporaryDirectory() as folder:
            cell = Path(folder, "cell.py")
            cell.write_text("@decorator\ndef train(rate):\n    return rate * 2\n")
            space: dict[str, Any] = {"decorator": lambda function: function, "__name__": "__main__"}
            exec(compile(cell.read_text(), str(cell), "exec"), space)
            function = space["train"]
            function.__module__ = None
            code = locate(function, [21])
            with code.folder() as packed:
                self.assertEqual((packed / "train_notebook.py").read_text(), "def train(rate):\n    return rate * 2\n")
            self.assertEqual(code.command[-1], "train_notebook:train")
        self.assertNotIn("decorator", sys.modules)


if __name__ == "__main__":
    unittest.main()
