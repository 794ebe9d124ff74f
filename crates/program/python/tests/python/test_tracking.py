"""Lists of runs, tags, notes, usage and comparisons."""

import asyncio
import sys
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any

import longshore
from longshore import aio

from launched import Launched
from pods import present


class Tracking(Launched):
    def test_tags_and_notes(self) -> None:
        run = longshore.run(self.folder(), ["true"], cluster=self.cluster, tags={"dataset": "v2"}, note="baseline")
        self.assertEqual((run.tags, run.note), ({"dataset": "v2"}, "baseline"))
        run.wait()
        run.tag("best", dataset=None, lr=0.1)
        run.set_note("diverged")
        self.assertEqual((run.tags, run.note), ({"best": "", "lr": "0.1"}, "diverged"))
        run.set_note(None)
        self.assertIsNone(run.note)
        with self.assertRaisesRegex(longshore.InvalidError, 'invalid tag "a/b"'):
            run.tag("a/b")
        with self.assertRaisesRegex(longshore.InvalidError, "4097 bytes"):
            run.set_note("x" * 4097)
        with self.assertRaisesRegex(longshore.InvalidError, "tag"):
            longshore.run(self.folder(), ["true"], cluster=self.cluster, tags={"a b": "1"})

    def test_runs_are_filtered(self) -> None:
        def launch(name: str, code: int, **tags: str) -> longshore.Run:
            command = ["sh", "-c", f"exit {code}"]
            run = longshore.run(self.folder(), command, cluster=self.cluster, name=name, tags=tags)
            run.wait()
            return run

        start = datetime.now(timezone.utc) - timedelta(seconds=1)
        small, large = launch("filter-small", 0, size="small"), launch("filter-large", 3, size="large", best="")

        def names(*states: str, **filters: Any) -> list[str]:
            given = {"name": "filter-*", **filters}
            return [one.name for one in longshore.runs(states, cluster=self.cluster, **given)]

        self.assertEqual(names(), [large.name, small.name])
        self.assertEqual(names("failed"), [large.name])
        self.assertEqual(names("active"), [])
        self.assertEqual(names("failed", "succeeded"), [large.name, small.name])
        self.assertEqual(names(tags={"size": "small"}), [small.name])
        self.assertEqual(names(tags=["size"], limit=1), [large.name])
        self.assertEqual(names(tags={"best": None}), [large.name])
        self.assertEqual(names(name="*-small-*"), [small.name])
        for since in [start, timedelta(hours=1), "1h"]:
            self.assertEqual(len(names(since=since)), 2, since)
        self.assertEqual(names(since=datetime.now() + timedelta(hours=1)), [])
        self.assertEqual(len(names(all_namespaces=True)), 2)
        self.assertEqual(names(namespace="kube-system"), [])
        [summary] = longshore.runs("failed", name=large.name, cluster=self.cluster)
        self.assertEqual((summary.exit_code, summary.state, summary.succeeded, summary.tasks), (3, "failed", 0, 1))
        self.assertEqual(summary.command, ["sh", "-c", "exit 3"])
        self.assertLessEqual(present(summary.created), present(summary.finished))
        self.assertEqual(summary.run.wait().exit_code, 3)
        wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
            ({"state": "lost"}, longshore.InvalidError, '"lost" is not a state'),
            ({"tags": ["a b"]}, longshore.InvalidError, 'invalid tag "a b"'),
            ({"tags": "best"}, TypeError, "give \\['best'\\]"),
            ({"name": "["}, longshore.InvalidError, "the pattern"),
            ({"since": "soon"}, longshore.InvalidError, "soon"),
            ({"since": 3}, TypeError, "expected a datetime or a text, found"),
        ]
        for filters, error, text in wrong:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                longshore.runs(cluster=self.cluster, **filters)

    def test_usage(self) -> None:
        script = "import time\nblock = bytearray(64 << 20)\nend = time.time() + 3\nwhile time.time() < end: pass\n"
        run = longshore.run(self.folder(main_py=script) / "main.py", cluster=self.cluster, workers=2, cpu="100m",
                            memory="256Mi")
        self.assertEqual(run.wait().exit_code, 0)
        usage = run.usage()
        self.assertEqual(usage.unseen, [])
        self.assertEqual([task.task for task in usage.tasks], ["main/0", "main/1"])
        for task in usage.tasks:
            self.assertEqual((task.requested_cpu, task.requested_memory, task.running), (0.1, 256 << 20, False))
            self.assertIsNone(task.cpu)
            recorded = present(task.recorded)
            self.assertGreater(recorded.peak_memory, 64 << 20)
            self.assertGreater(recorded.seconds, 1)
            self.assertTrue(recorded.series)
            self.assertIsNone(recorded.gpu)

    def test_comparisons(self) -> None:
        folder = self.folder(main_py="print('old')")
        one = longshore.run(folder / "main.py", cluster=self.cluster, tags={"lr": "1"}, env={"SECRET": "first"})
        one.wait()
        (folder / "main.py").write_text("print('new')")
        other = longshore.run(folder / "main.py", cluster=self.cluster, tags={"lr": "2"}, env={"SECRET": "second"})
        other.wait()
        difference = longshore.compare(one, other)
        self.assertEqual([*difference["runs"]], [one.name, other.name])
        self.assertFalse(difference["sameCode"])
        [file] = difference["files"]
        self.assertEqual(file["path"], "main.py")
        self.assertIn("+print('new')", file["diff"])
        self.assertIn(["1", "2"], [[*change["values"]] for change in difference["options"]])
        self.assertIn("SECRET", [variable["name"] for variable in difference["environment"]])
        self.assertNotIn("second", str(difference))
        self.assertEqual(difference["unseen"], [])
        self.assertTrue(longshore.compare(one, one)["sameCode"])

    def test_metrics(self) -> None:
        script = "echo '{\"loss\": '$LOSS', \"bad\": NaN}' >> $LONGSHORE_METRICS; echo acc=0.5"
        runs = []
        for loss in ["1", "4"]:
            run = longshore.run(
                self.folder(), ["sh", "-c", script], cluster=self.cluster, env={"LOSS": loss}, metrics=["acc"]
            )
            run.wait(check=True)
            runs.append(run)
        values = runs[0].metrics()["main/0"]
        self.assertEqual((values["loss"], values["acc"]), (1.0, 0.5))
        self.assertNotEqual(values["bad"], values["bad"])
        self.assertNotIn("acc", runs[0].metrics(logs=False)["main/0"])
        difference = longshore.compare(*runs)
        [loss] = [change for change in difference["metrics"] if change["name"] == "loss"]
        self.assertEqual((loss["task"], [*loss["values"]], loss["difference"]), ("main/0", [1, 4], 3))

    def test_asyncio(self) -> None:
        async def use() -> None:
            async with aio.Cluster(kubeconfig=self.embedded.kubeconfig) as cluster:
                run = await aio.run(self.folder(), ["true"], cluster=cluster, tags={"a": "1"}, name="async")
                await run.wait()
                await run.tag(b=2)
                await run.set_note("done")
                self.assertEqual((await run.tags(), await run.note()), ({"a": "1", "b": "2"}, "done"))
                [task] = (await run.usage()).tasks
                self.assertEqual(task.task, "main/0")
                [found] = await aio.runs("succeeded", tags={"b": "2"}, name="async-*", cluster=cluster)
                self.assertEqual((found.name, (await found.run.wait()).exit_code), (run.name, 0))
                self.assertTrue((await aio.compare(run, found.run))["sameCode"])

        asyncio.run(use())


class Import(unittest.TestCase):
    def test_the_module_of_runs_does_not_hide_the_function(self) -> None:
        self.assertTrue(callable(longshore.run) and callable(longshore.runs))
        self.assertNotIn("longshore.runs", sys.modules)


if __name__ == "__main__":
    unittest.main()
