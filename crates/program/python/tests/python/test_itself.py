"""A program that launches runs does not launch itself: neither in a task nor in a process of multiprocessing."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import longshore

from launched import Launched

#: The variables of a task.
TASK = {"LONGSHORE_RUN": "digits-x7k2p", "LONGSHORE_ROLE": "main", "LONGSHORE_INDEX": "0"}

HEAD = """
import asyncio, concurrent.futures, contextlib, sys
import longshore
from longshore import aio

@longshore.task
def f(x=0): ...
"""

#: Lines of a module that launch a run.
LAUNCHES = {
    "a task": "f.launch(3)",
    "a function": "longshore.run(f, args=[3])",
    "a folder": "longshore.run('.', ['true'])",
    "a text as the command": "longshore.run('.', 'true')",
    "a sweep": "longshore.run(f, sweep={'a': [1, 2]})",
    "a schedule": "f.with_options(cron='0 3 * * *').launch()",
    "asyncio": "asyncio.run(aio.run(f, args=[3]))",
    "in a condition": "if True:\n    f.launch(3)",
    "in a try": "try:\n    f.launch(3)\nfinally:\n    pass",
    "in a with": "with contextlib.suppress(KeyError):\n    f.launch(3)",
    "in a function": "def start():\n    for number in [1, 2]:\n        f.launch(number)\nstart()",
    "by threads": "with concurrent.futures.ThreadPoolExecutor() as pool:\n    list(pool.map(f.launch, [1, 2]))",
    "a pipeline": "longshore.OrchestratorKubernetesBackend(kubernetes_config_path='none').launch_job("
    "{'pipeline': {'args': {'name': 'a'}}})",
}

GUARD = 'put the lines that launch it below `if __name__ == "__main__":`'

#: The error of a launch that is not refused: no cluster has this kubeconfig.
NO_CLUSTER = "cannot|kubeconfig|no such file"


class Itself(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def python(self, *arguments: str, task: bool = False) -> str:
        """The last line of a failed program in the folder."""
        env = {name: value for name, value in os.environ.items() if name not in TASK}
        env |= {"LONGSHORE_KUBECONFIG": "/nonexistent/kubeconfig", **(TASK if task else {})}
        done = subprocess.run([sys.executable, *arguments], cwd=self.folder, env=env, capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stderr.strip().splitlines()[-1]

    def write(self, text: str, name: str = "train.py") -> None:
        (self.folder / name).write_text(HEAD + text + "\n")

    def test_a_task_that_imports_a_module_never_launches(self) -> None:
        for name, launch in LAUNCHES.items():
            self.write(launch)
            with self.subTest(name):
                error = self.python("-c", "import train", task=True)
                self.assertIn("the task main/0 of the run digits-x7k2p imports train.py (line ", error)
                self.assertIn(GUARD, error)
        # A module that another one imports, and a process of multiprocessing in the task.
        (self.folder / "other.py").write_text("import train\n")
        for program in ["import other", "import runpy; runpy.run_path('train.py', run_name='__mp_main__')"]:
            self.assertIn(GUARD, self.python("-c", program, task=True))

    def test_a_process_of_multiprocessing_never_launches(self) -> None:
        for name in ["a task", "a folder", "asyncio", "by threads"]:
            launch = LAUNCHES[name]
            self.write("import multiprocessing\n"
                       "if __name__ == '__main__':\n"
                       "    process = multiprocessing.get_context('spawn').Process(target=print)\n"
                       "    process.start(); process.join(); sys.exit(process.exitcode)\n"
                       + launch)
            with self.subTest(name):
                error = self.python("train.py")
                self.assertIn("a process of multiprocessing imports train.py (line ", error)
                self.assertIn(GUARD, error)

    def test_a_launch_that_tasks_would_repeat_is_refused_before_it_starts(self) -> None:
        repeated = ["a task", "a function", "a sweep", "a schedule", "asyncio", "in a with", "in a function"]
        for name in repeated:
            self.write(LAUNCHES[name])
            with self.subTest(name):
                error = self.python("train.py")
                self.assertIn("the tasks import train.py (line ", error)
                self.assertIn(GUARD, error)

    def test_a_guarded_launch_is_not_refused(self) -> None:
        launch = "f.launch(3)"
        guarded = [
            f"if __name__ == '__main__':\n    {launch}",
            f"def main():\n    {launch}\nif __name__ == '__main__':\n    main()",
            f"if __name__ != '__main__':\n    raise ImportError\n{launch}",
            f"if __name__ != '__main__':\n    sys.exit()\n{launch}",
        ]
        for text in guarded:
            self.write(text)
            with self.subTest(text):
                self.assertRegex(self.python("train.py"), f"(?i){NO_CLUSTER}")
        # The module of the function does not launch it.
        self.write("")
        (self.folder / "launch.py").write_text("import train\ntrain.f.launch(3)\n")
        self.assertRegex(self.python("launch.py"), f"(?i){NO_CLUSTER}")

    def test_a_program_of_a_task_may_launch_another_run(self) -> None:
        self.write("def g():\n    f.launch(3)")
        # After the import, as the function of a run.
        self.assertRegex(self.python("-c", "import train; train.g()", task=True), f"(?i){NO_CLUSTER}")
        for launch in [
            "longshore.run('other.py')",
            "longshore.run('.', [sys.executable, 'train.py', 'worker'])",
            "longshore.run('.', 'python3 train.py worker')",
            "longshore.run('train.py', env={'WORKER': '1'})",
            "longshore.run('train.py', sweep={'rate': [1, 2]})",
        ]:
            self.write(launch)
            (self.folder / "other.py").write_text("")
            with self.subTest(launch):
                self.assertRegex(self.python("train.py", task=True), f"(?i){NO_CLUSTER}")

    def test_a_script_in_a_task_does_not_launch_itself(self) -> None:
        for launch in [
            "longshore.run(__file__)",
            "longshore.run('train.py')",
            "longshore.run('.', ['python3', 'train.py'])",
            "longshore.run('.', 'python3 train.py')",
            "longshore.run('train.py', env={'LONGSHORE_ROLE': 'main'})",
            "asyncio.run(aio.run('train.py'))",
        ]:
            self.write(launch)
            with self.subTest(launch):
                self.assertIn("would launch itself again", self.python("train.py", task=True))


class Launching(Launched):
    def test_one_run_is_launched(self) -> None:
        """A condition hides the launch from the check of the client: the task refuses it."""
        folder = self.folder(train_py=HEAD + "if f:\n    print(f.launch(3).wait(logs=True))\n")
        env = {**os.environ, "LONGSHORE_KUBECONFIG": str(self.embedded.kubeconfig)}
        done = subprocess.run([sys.executable, "train.py"], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
        self.assertIn("Result(exit_code=1", done.stdout, done.stderr)
        self.assertEqual(len(longshore.runs(cluster=self.cluster)), 1)


if __name__ == "__main__":
    unittest.main()
