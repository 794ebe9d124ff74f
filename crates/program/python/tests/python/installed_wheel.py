"""Tests of the installed wheel, in a virtual environment with nothing else but pytest."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import longshore

PROGRAM = pathlib.Path(sys.prefix, "bin", "longshore")
FIXTURE = """
def test_a_configmap(longshore_cluster):
    made = longshore_cluster.cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}})
    assert made.name == "a"
"""


class InstalledWheel(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name, "code")
        self.folder.mkdir()
        # Without the PATH of the environment: pods find the program all the same.
        self.environment = {
            "HOME": folder.name,
            "LONGSHORE_DATA_DIR": str(pathlib.Path(folder.name, "data")),
            "PATH": "/usr/bin:/bin",
        }

    def call(self, *command: str | os.PathLike[str]) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def test_the_package_is_that_of_the_environment(self) -> None:
        self.assertTrue(pathlib.Path(longshore.__file__).is_relative_to(sys.prefix), longshore.__file__)

    def test_the_program_is_native_and_has_the_version_of_the_package(self) -> None:
        self.assertEqual(PROGRAM.read_bytes()[:4], b"\x7fELF")
        self.assertEqual(self.call(PROGRAM, "--version"), f"longshore {longshore.__version__}\n")

    def test_the_program_runs_code(self) -> None:
        out = self.call(PROGRAM, "run", "--", "python3", "-c", "print(6 * 7)")
        self.assertIn("42", out)

    def test_a_script_launches_itself(self) -> None:
        self.folder.joinpath("hello.py").write_text("import os; print('task', os.environ['LONGSHORE_INDEX'])")
        self.folder.joinpath("launch.py").write_text(
            "import longshore\n"
            "run = longshore.run('hello.py', workers=2)\n"
            "print(sorted(line.line for line in run.logs()), run.wait().exit_code)\n"
            "print(longshore.find_run().name == run.name)\n"
        )
        out = self.call(sys.executable, "launch.py")
        self.assertEqual(out, "['task 0', 'task 1'] 0\nTrue\n")

    def test_a_cluster_with_pods_needs_no_path(self) -> None:
        self.folder.joinpath("hello.py").write_text("print('hello')")
        # Larger than a Secret.
        self.folder.joinpath("large").write_bytes(os.urandom(3_000_000))
        self.folder.joinpath("launch.py").write_text(
            "import longshore\n"
            "with longshore.EmbeddedCluster() as embedded:\n"
            "    print(longshore.run('hello.py', cluster=embedded.cluster).wait())\n"
        )
        out = self.call(sys.executable, "launch.py")
        self.assertEqual(out, "Result(exit_code=0, reason='all tasks succeeded')\n")

    def test_pytest_has_the_fixtures(self) -> None:
        self.folder.joinpath("test_it.py").write_text(FIXTURE)
        self.assertIn("1 passed", self.call(sys.executable, "-m", "pytest", "-q"))


if __name__ == "__main__":
    unittest.main()
