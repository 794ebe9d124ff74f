"""Arguments of runs: texts where sequences are expected, and unknown names."""

import asyncio
import re
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import longshore
from longshore import aio

import train_example
from launched import Launched


def words(*words: str) -> Iterator[str]:
    yield from words


class Sequences(Launched):
    def test_commands(self) -> None:
        """A text is a line for a shell, as in longshore.toml; any iterable of texts is a program with arguments."""
        folder = self.folder(longshore_toml="command = ['false']\n")
        commands: list[Any] = ["echo a 'b c' | tr a-z A-Z", ["echo", "A", "B C"], ("echo", "A", "B C"), words("echo", "A", "B C"), [Path("echo"), "A", "B C"]]
        for command in commands:
            with self.subTest(command):
                self.assertEqual(self.lines(longshore.run(folder, command, cluster=self.cluster)), ["main/0 | A B C"])

        async def use() -> list[str]:
            run = await aio.run(folder, "echo a | tr a-z A-Z", cluster=self.cluster)
            return [str(line) async for line in run.logs()]

        self.assertEqual(asyncio.run(use()), ["main/0 | A"])

    def test_values_that_are_no_sequences_of_texts(self) -> None:
        folder = self.folder()
        made = self.cluster.view("pods", "default").create({
            "metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "a", "command": ["sleep", "60"]}]}})
        pod = made.wait("ready", timeout=60)

        def run(command: Any = ("true",), **options: Any) -> longshore.Run:
            return longshore.run(folder, command, cluster=self.cluster, **options)

        def of_asyncio(**arguments: Any) -> None:
            asyncio.run(aio.run(folder, cluster=self.cluster, **arguments))

        given: list[Any] = [b"echo hi", bytearray(b"a"), {"echo": 1}, 3, [b"echo"], ["echo", 3], [None]]
        calls: list[tuple[str, Callable[[], object]]] = []
        for value in given:
            calls.append((f"command={value!r}", lambda value=value: run(value)))  # type: ignore[misc]
            calls.append((f"aio command={value!r}", lambda value=value: of_asyncio(command=value)))  # type: ignore[misc]
        for single in ["abc", b"abc", {"a": 1}, 3]:
            calls.append((f"args={single!r}", lambda single=single: longshore.run(train_example.train, args=single)))  # type: ignore[misc]
        for other in ["abc", b"abc", ["A=1"], 3]:
            for name in ["env", "roles"]:
                calls.append((f"{name}={other!r}", lambda name=name, other=other: run(**{name: other})))  # type: ignore[misc]
            calls.append((f"kwargs={other!r}", lambda other=other: longshore.run(train_example.train, kwargs=other)))  # type: ignore[misc]
        lists = ["allow_secrets", "env_from", "ignore", "image_pull_secrets", "metrics", "no_retry_exit_codes", "outputs",
                 "tolerations", "volumes", "webhook_on"]
        for name in lists:
            for text in ["abc", b"abc", [b"abc"]]:
                calls.append((f"{name}={text!r}", lambda name=name, text=text: run(**{name: text})))  # type: ignore[misc]
        for text in ["abc", b"abc", [b"abc"]]:
            calls.append((f"tags={text!r}", lambda text=text: longshore.runs(tags=text, cluster=self.cluster)))  # type: ignore[misc]
        for state in [b"failed", [b"failed"], 3]:
            calls.append((f"state={state!r}", lambda state=state: longshore.runs(state, cluster=self.cluster)))  # type: ignore[misc]
        for command in ["echo hi", b"echo hi", [b"echo"], 3]:
            calls.append((f"exec({command!r})", lambda command=command: pod.exec(command)))  # type: ignore[misc]
            calls.append((f"open_exec({command!r})", lambda command=command: pod.open_exec(command)))  # type: ignore[misc]
        before = len(longshore.runs(cluster=self.cluster))
        for name, call in calls:
            with self.subTest(name), self.assertRaises(TypeError):
                call()
        self.assertEqual(len(longshore.runs(cluster=self.cluster)), before)

    def test_empty_commands(self) -> None:
        folder = self.folder(longshore_toml="command = ['true']\n")
        given: list[Any] = ["", " ", [], (), words()]
        for empty in given:
            with self.subTest(empty), self.assertRaisesRegex(longshore.InvalidError, "the command is empty"):
                longshore.run(folder, empty, cluster=self.cluster)

    def test_iterables_of_options(self) -> None:
        folder = self.folder()
        run = longshore.run(folder, "touch a.json b.json", cluster=self.cluster, outputs=words("a.*", "b.*"))
        run.wait(check=True)
        self.assertEqual([file.path for file in run.outputs().files], ["a.json", "b.json"])

    def test_options_of_a_task(self) -> None:
        """`run` applies them, and its own arguments override them."""
        task = longshore.task(train_example.train, env={"A": "1"}, name="named", command=["sh", "-c", "echo $A"])
        self.assertEqual(self.lines(longshore.run(task, cluster=self.cluster)), ["main/0 | 1"])
        run = longshore.run(task, cluster=self.cluster, env={"A": "2"}, name="other")
        self.assertTrue(run.name.startswith("other-"))
        self.assertEqual(self.lines(run), ["main/0 | 2"])


class Names(unittest.TestCase):
    def unknown(self, name: str) -> str:
        launch: Any = longshore.run
        with self.assertRaises(TypeError) as raised:
            launch(".", ["true"], **{name: 1})
        return str(raised.exception)

    def test_the_closest_argument_is_suggested(self) -> None:
        cases = {
            "gpu": "gpus", "cpus": "cpu", "mem": "memory", "Memory": "memory", "worker": "workers", "replicas": "workers",
            "num_workers": "workers", "role": "roles", "envs": "env", "environment": "env", "sweeps": "sweep", "cmd": "command",
            "context": "cluster", "clusters": "cluster", "time_out": "timeout", "retry": "retries", "output": "outputs",
            "tag": "tags", "label": "labels", "images": "image", "volume": "volumes", "notes": "note", "imgae": "image",
        }
        for wrong, right in cases.items():
            with self.subTest(wrong):
                self.assertIn(f"run() has no argument `{wrong}`: did you mean `{right}`?", self.unknown(wrong))
        self.assertIn("no argument `elephants`. Its arguments: ", self.unknown("elephants"))
        self.assertIn("first argument, without a name", self.unknown("folder"))

    def test_each_listed_argument_exists(self) -> None:
        listed = self.unknown("elephants").partition("Its arguments: ")[2].split(", ")
        for name in ["workers", "gpus", "cpu", "memory", "env", "sweep", "command", "image", "retries"]:
            self.assertIn(name, listed)
        launch: Any = longshore.run
        for name in listed:
            with self.subTest(name):
                try:
                    launch("/no/such/folder", **{name: None})
                except (TypeError, FileNotFoundError) as error:
                    self.assertNotRegex(str(error), "has no argument|does not apply|unexpected")

    def test_all_calls_check_the_names(self) -> None:
        async def of_asyncio() -> None:
            await aio.run(".", ["true"], gpu=1)

        task = longshore.task(train_example.train)
        calls: list[Callable[[], object]] = [
            lambda: longshore.task(gpu=1)(train_example.train),
            lambda: longshore.task(train_example.train, gpu=1),
            lambda: task.with_options(gpu=1),
            lambda: asyncio.run(of_asyncio()),
        ]
        for call in calls:
            with self.assertRaisesRegex(TypeError, re.escape("run() has no argument `gpu`: did you mean `gpus`?")):
                call()


if __name__ == "__main__":
    unittest.main()
