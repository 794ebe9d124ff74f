"""Runs the programs in docs/python-recipes.md."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import longshore

PAGE = Path(__file__).resolve().parents[5] / "docs" / "python-recipes.md"

TEXT = PAGE.read_text(encoding="utf-8")

#: The files of the page, by name: the code blocks with a name.
FILES = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))

#: Runs files as the cells of a notebook, where functions have a source but modules have no file.
NOTEBOOK = """
import linecache, pathlib, sys
for path in sys.argv[1:]:
    text = pathlib.Path(path).read_text()
    name = f"/cells/{path}"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), globals())
"""

#: Prints the results of the cells.
RESULTS = "print(best.parameters, sorted({row.state for row in run.sweep()}), sorted(squares.items()))\n"


def installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) for module in modules)


class Recipes(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name, text in FILES.items():
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def embedded(self, **options: Any) -> longshore.EmbeddedCluster:
        embedded = longshore.EmbeddedCluster(**options)
        self.addCleanup(embedded.stop)
        self.kubeconfig = str(embedded.kubeconfig)
        return embedded

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts Python as a client of the embedded cluster."""
        env = {**os.environ, "KUBECONFIG": self.kubeconfig, "LONGSHORE_KUBECONFIG": self.kubeconfig}
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=self.folder, env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def run_python(self, *arguments: str) -> str:
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, output)
        return output

    def pytest(self, file: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file]
        # The wheel registers the plugin by itself.
        if "LONGSHORE_TEST_WHEEL" not in os.environ:
            command += ["-p", "longshore.pytest_plugin"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_each_program_runs_in_a_test(self) -> None:
        text = Path(__file__).read_text(encoding="utf-8")
        self.assertTrue(FILES)
        for name in FILES:
            self.assertIn(f'"{name}"', text)
        # A block without a name would not run.
        self.assertNotRegex(TEXT, r"```python\n")

    def test_the_controller(self) -> None:
        embedded = self.embedded(pods=False)
        maps = embedded.cluster.view("configmaps", "default")

        def create(name: str, **data: str) -> None:
            maps.create({"metadata": {"name": name}, "data": data})
            maps.wait(name, lambda item: item.labels.get("keys") == str(len(data)), timeout=60)

        first = self.start("controller.py")
        create("a", x="1", y="2")
        rules = [
            embedded.faults.add(
                {"match": {"verbs": [verb], "resource": "configmaps"}, "effect": effect, "times": 1}
            )
            for verb, effect in [("watch", {"watch": {"end": "break"}}), ("patch", {"answer": {"code": 500}})]
        ]
        create("b")
        self.assertEqual([embedded.faults.fired(rule) for rule in rules], [1, 1])
        second = self.start("controller.py")
        first.terminate()
        output, _ = first.communicate(timeout=60)
        self.assertEqual(first.returncode, 0, output)
        self.assertIn("b: PATCH", output)
        create("c", x="1")
        self.assertIsNone(second.poll())

    @unittest.skipUnless(installed("kopf", "pytest"), "kopf or pytest is not installed")
    def test_an_operator(self) -> None:
        self.assertIn("greeter.py", FILES["test_greeter.py"])
        self.assertIn("kopf.on", FILES["greeter.py"])
        self.assertIn("1 passed", self.pytest("test_greeter.py"))

    def test_a_sweep(self) -> None:
        self.embedded()
        (self.folder / "results.py").write_text(RESULTS)
        cells = ["sweep/launch.py", "sweep/collect.py", "sweep/files.py", "results.py"]
        output = self.run_python("-c", NOTEBOOK, *cells)
        self.assertEqual(output, "{'rate': '0.3'} ['cancelled', 'succeeded'] [('0', 0), ('1', 1), ('2', 4)]\n")

    def test_training_that_continues(self) -> None:
        self.embedded()
        # As a cell, and as a script, which the tasks import, and with it the package.
        path = os.environ.get("PYTHONPATH", "")
        (self.folder / "longshore.toml").write_text(f"[env]\nPYTHONPATH = '{path}'\n")
        for arguments in [["-c", NOTEBOOK, "resume.py"], ["resume.py"]]:
            output = self.run_python(*arguments).splitlines()
            self.assertEqual(output[:3], ["begins at step 0", "begins at step 3", "1 restart"])

    @unittest.skipUnless(installed("kubernetes", "pytest"), "the official client or pytest is not installed")
    def test_the_official_client(self) -> None:
        self.assertIn("2 passed", self.pytest("test_colour.py"))

    def test_a_deployment(self) -> None:
        embedded = self.embedded()
        self.assertIn('"shop.yaml"', FILES["deploy.py"])
        for colour in ["red", "blue"]:
            file = self.folder / "shop.yaml"
            # A new template, so that the pods are replaced.
            file.write_text(FILES["shop.yaml"].replace("$COLOUR", f"$COLOUR {colour}"))
            output = self.run_python("deploy.py")
            self.assertEqual(output, "ConfigMap shop is ready\nDeployment shop is ready\n")
            pods = embedded.cluster.view("pods", "default").filter(labels="app=shop")
            current = [pod for pod in pods if not pod.field("metadata", "deletionTimestamp")]
            lines = [pod.logs(follow=True).next(timeout=60) for pod in current]
            self.assertEqual(lines, [f"red {colour}"] * 2)

    def test_a_deployment_that_does_not_start(self) -> None:
        self.embedded()
        (self.folder / "shop.yaml").write_text(FILES["shop.yaml"].replace("[sh,", "[missing-program,"))
        (self.folder / "deploy.py").write_text(FILES["deploy.py"].replace("timeout=120", "timeout=5"))
        process = self.start("deploy.py")
        output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, output)
        self.assertRegex(output, "(?s)shop-.*: .*missing-program.*Deployment shop: timed out")


if __name__ == "__main__":
    unittest.main()
