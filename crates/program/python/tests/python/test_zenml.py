"""The ZenML backend: its parameters, its Job, and pipelines that run in pods.

A stub package replaces ZenML. It has the modules that the pod's program imports.
"""

import contextlib
import copy
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import longshore
import longshore.zenml
from longshore import OrchestratorKubernetesBackend, PipelineRun

from pods import present

UUID = "8c0b0e94-3c1f-4a65-9d57-2f6d1c4b7a10"
ZENML_STUB = Path(__file__).parents[4] / "runs/zenml/tests/stand_in"
DOCUMENT = Path(__file__).parents[5] / "docs/zenml.md"


def config(artifacts: str | Path = "gs://team/zenml", name: str = "training_digits", **more: Any) -> dict[str, Any]:
    """A config as returned by `pipeline.to_config()`."""
    return {
        "version": "1",
        "artifact_store": str(artifacts),
        "metadata": {"type": "mysql", "args": {"password": "hunter2"}},
        "backend": {"type": "orchestrator", "source": "zenml.backends.X@zenml_0.3.8", "args": {}},
        "pipeline": {
            "args": {"name": f"{name}_{UUID}", **more},
            "source": "digits.pipeline.run",
            "datasource": {"id": "0e4a"},
            "steps": {"b": 1, "a": {"factor": 0.1, "exact": 123456789012345678901234567890}},
        },
    }


class Job(unittest.TestCase):
    """Tests that need no cluster."""

    def test_the_default_parameters(self) -> None:
        backend = OrchestratorKubernetesBackend()
        self.assertEqual(
            (backend.image, backend.job_prefix, backend.extra_labels, backend.extra_annotations, backend.namespace,
             backend.image_pull_policy, backend.kubernetes_config_path),
            ("python:3-slim", "zenml-", None, None, None, "IfNotPresent", "~/.kube/config"),
        )

    def test_the_job(self) -> None:
        given = config()
        before = copy.deepcopy(given)
        backend = OrchestratorKubernetesBackend(
            "zenml:1", "mine-", {"team": 7, "app": "mine"}, {"note": "for all"}, "ml", "Never", "/k",
        )
        job = backend.create_job_object(given)
        self.assertEqual(given, before)
        name = f"mine-training-digits-{UUID}"
        self.assertEqual((job["metadata"]["name"], job["metadata"]["namespace"]), (name, "ml"))
        self.assertEqual(job["metadata"]["annotations"]["note"], "for all")
        labels = {
            "app": "zenml", "team": "7", "pipeline": f"training_digits_{UUID}", "datasource-id": "0e4a",
            "pipeline-id": UUID, "longshore.dev/run": name,
        }
        template = job["spec"]["template"]
        for metadata in (job["metadata"], template["metadata"]):
            self.assertEqual(metadata["labels"], {**metadata["labels"], **labels})
        self.assertEqual((job["spec"]["backoffLimit"], template["spec"]["restartPolicy"]), (1, "Never"))
        [container] = template["spec"]["containers"]
        self.assertEqual((container["name"], container["image"], container["imagePullPolicy"]), (name, "zenml:1", "Never"))
        self.assertNotIn("hunter2", json.dumps(job))

    def test_invalid_parameters_and_configs(self) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"image_pull_policy": "Sometimes"}, "choose one of Always, Never, IfNotPresent"),
            ({"settings": "/nonexistent.toml"}, "nonexistent.toml"),
        ]
        for parameters, text in cases:
            with self.subTest(parameters), self.assertRaisesRegex(ValueError, text):
                OrchestratorKubernetesBackend(**parameters)
        backend = OrchestratorKubernetesBackend()
        for given, text in [
            ({}, 'no "pipeline.args.name"'),
            ({"pipeline": {"args": {"name": 7}}}, "must be a text, but is a number"),
            (config(factor=float("nan")), "JSON compliant"),
        ]:
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                backend.create_job_object(given)
        with self.assertRaisesRegex(longshore.InvalidError, "extra_labels"):
            OrchestratorKubernetesBackend(extra_labels={"a b": "c"}).create_job_object(config())
        elsewhere = OrchestratorKubernetesBackend(kubernetes_config_path="/nonexistent")
        with self.assertRaisesRegex(longshore.ConfigError, "^The path you provided does not contain a valid Kubernetes config"):
            elsewhere.run(config())

    def test_settings_apply_to_the_job(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "longshore.toml")
            file.write_text("launcher_image = 'longshore:1'\n[resources]\nmemory = '4Gi'\n")
            job = OrchestratorKubernetesBackend(settings=file).create_job_object(config())
        spec = job["spec"]["template"]["spec"]
        self.assertEqual(spec["initContainers"][0]["image"], "longshore:1")
        self.assertEqual(spec["containers"][0]["resources"]["limits"], {"memory": "4Gi"})

    def test_the_repository_is_the_nearest_folder_with_zenml_metadata(self) -> None:
        repository = vars(longshore.zenml)["_repository"]
        with tempfile.TemporaryDirectory() as folder:
            inner = Path(folder, "repository/steps/deep").resolve()
            inner.mkdir(parents=True)
            with working_directory(inner):
                self.assertEqual(repository(), inner)
                (inner.parents[1] / ".zenml").mkdir()
                self.assertEqual(repository(), inner.parents[1])

    def test_the_config_block_recreates_the_backend(self) -> None:
        backend = OrchestratorKubernetesBackend(image="i", extra_labels={"team": "vision"})
        block = backend.to_config()
        self.assertEqual((block["type"], block["source"]), ("orchestrator", "longshore.zenml.OrchestratorKubernetesBackend"))
        again = OrchestratorKubernetesBackend(**block["args"])
        self.assertEqual((again.image, again.extra_labels), ("i", {"team": "vision"}))
        self.assertEqual(again.to_config(), block)

    def test_with_zenml_installed_the_class_is_a_zenml_backend(self) -> None:
        program = (
            "import sys; sys.path.append(sys.argv[1])\n"
            "from zenml.backends.orchestrator.base.orchestrator_base_backend import OrchestratorBaseBackend\n"
            "import longshore\n"
            "backend = longshore.OrchestratorKubernetesBackend(image='a', extra_labels={'b': 'c'})\n"
            "assert isinstance(backend, OrchestratorBaseBackend)\n"
            "print(backend._source, backend.BACKEND_TYPE, longshore.OrchestratorKubernetesBackend(**backend._kwargs).image)\n"
        )
        done = subprocess.run(
            [sys.executable, "-B", "-c", program, str(ZENML_STUB)], check=True, capture_output=True, text=True)
        self.assertEqual(done.stdout, "longshore.zenml.OrchestratorKubernetesBackend orchestrator a\n")


@contextlib.contextmanager
def working_directory(folder: Path) -> Iterator[None]:
    """`contextlib.chdir`, which Python 3.10 lacks."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class Environment(unittest.TestCase):
    """A cluster that runs pods, a repository with the ZenML stub, and an artifact store."""

    #: The contents of the file `data` in the repository.
    data = b""

    def setUp(self) -> None:
        self.assertIsNotNone(shutil.which("longshore"), "pods need the longshore program: `cargo build --package longshore-cli`")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.artifacts, self.temporary = self.folder / "artifacts", self.folder / "tmp"
        self.repository = self.folder / "repository"
        shutil.copytree(ZENML_STUB, self.repository)
        for path in (self.artifacts, self.temporary, self.repository / ".zenml", self.repository / "venv"):
            path.mkdir()
        (self.repository / "venv/pyvenv.cfg").write_text("x")
        (self.repository / "data").write_bytes(self.data)
        self.embedded = longshore.EmbeddedCluster()
        self.addCleanup(self.embedded.stop)
        self.enter(working_directory(self.repository / "digits"))
        self.backend = OrchestratorKubernetesBackend(kubernetes_config_path=self.embedded.kubeconfig)

    def enter(self, context: Any) -> None:
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def report(self) -> dict[str, Any]:
        """What the pipeline in the pod reports."""
        report: dict[str, Any] = json.loads((self.artifacts / "report.json").read_text())
        return report


class Pipelines(Environment):
    # More than the packer keeps in memory.
    data = os.urandom(5 << 20)

    def test_a_pipeline_runs(self) -> None:
        given = config(self.artifacts)
        before = copy.deepcopy(given)
        out = io.StringIO()
        with mock.patch.dict(os.environ, {"TMPDIR": str(self.temporary)}), contextlib.redirect_stdout(out):
            with self.assertLogs("longshore.zenml", "INFO") as logs:
                run = self.backend.run(given, follow=True)
        self.assertIsInstance(run, PipelineRun)
        self.assertEqual((run.exit_code, run.name), (0, f"zenml-training-digits-{UUID}"))
        self.assertIn(f"ran training_digits_{UUID}\n", out.getvalue())
        self.assertRegex("\n".join(logs.output), r"packed \d+ files, \d+ bytes; left out: \.zenml/")

        self.assertEqual(given, before)
        report = self.report()
        self.assertEqual(report["config"], before)
        self.assertEqual(list(report["config"]), list(before), "the keys keep their order")
        self.assertEqual(report["files"], [".git", ".zenml", "data", "digits", "zenml"])
        self.assertNotIn("hunter2", json.dumps([report["arguments"], report["environment"]]))
        job = self.embedded.cluster.view("jobs", "default").fetch(run.name)
        self.assertNotIn("hunter2", json.dumps(job.raw))

        [staged] = (self.artifacts / "staging/bundles").iterdir()
        self.assertEqual(run.config["backend"]["args"], {"tar_path": str(staged)})
        self.assertEqual(list(self.temporary.iterdir()), [])

        with self.assertRaisesRegex(longshore.AlreadyExistsError, f"longshore rm {run.name}"):
            self.backend.run(given)
        # With the uploaded code, under another name.
        again = copy.deepcopy(run.config)
        again["pipeline"]["args"].update(name="training_again", exit=3)
        second = OrchestratorKubernetesBackend(
            kubernetes_config_path=self.embedded.kubeconfig, job_prefix="again-").launch_job(again)
        with contextlib.redirect_stdout(io.StringIO()) as out, self.assertLogs("longshore.zenml", "ERROR"):
            self.assertEqual(second.wait(logs=False), 3)
        self.assertEqual((second.name, out.getvalue()), ("again-training-again", ""))

    def test_the_image_has_the_code(self) -> None:
        subprocess.run(["git", "init", "--quiet", str(self.repository)], check=True)
        (self.repository / ".zenml/.zenml_config").write_text("{}")
        settings = self.folder / "longshore.toml"
        settings.write_text(f"[[template.spec.containers]]\nname = 'main'\nworkingDir = '{self.repository}'\n")
        self.backend.settings = settings
        files = sorted(path.name for path in self.repository.iterdir())
        given = config(self.artifacts)
        run = self.backend.launch_job(given)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(run.wait(), 0, run.reason)
        self.assertEqual(run.config, given)
        report = self.report()
        self.assertEqual((report["folder"], report["files"]), (str(self.repository), files))

    def test_a_wait_does_not_block_other_threads(self) -> None:
        (self.repository / "digits/pipeline.py").write_text("import time\ndef run(*_):\n    time.sleep(600)\n")
        run = self.backend.run(config(self.artifacts))
        following = run.follow()
        while present(following.next(30))["event"] != "progress":
            pass
        waited = []
        helper = threading.Thread(target=lambda: waited.append(run.wait()))
        helper.start()
        run.cancel()
        helper.join(60)
        self.assertEqual((waited, run.exit_code), ([130], 130))

    def test_ctrl_c_stops_the_wait_and_not_the_run(self) -> None:
        (self.repository / "digits/pipeline.py").write_text("import time\ndef run(*_):\n    time.sleep(600)\n")
        program = (
            "import json, signal, sys, longshore\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "backend = longshore.OrchestratorKubernetesBackend(kubernetes_config_path=sys.argv[1])\n"
            "run = backend.run(json.loads(sys.argv[2]))\n"
            "try:\n    print('waiting', flush=True)\n    run.wait()\n"
            "except KeyboardInterrupt:\n    print('interrupted', run.exit_code)\n"
        )
        command = [sys.executable, "-B", "-c", program, str(self.embedded.kubeconfig), json.dumps(config(self.artifacts))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            try:
                self.assertEqual(present(child.stdout).readline(), "waiting\n")
                child.send_signal(signal.SIGINT)
                self.assertEqual(child.communicate(timeout=60)[0], "interrupted None\n")
            finally:
                child.kill()
        [job] = self.embedded.cluster.view("jobs", "default")
        self.assertFalse(job.field("spec", "suspend"))


class Pipeline:
    """The methods of a ZenML pipeline that the document uses."""

    def __init__(self, artifacts: Path) -> None:
        self.artifacts, self.runs = artifacts, 0

    def to_config(self) -> dict[str, Any]:
        self.runs += 1
        return config(self.artifacts, f"training_{self.runs}")

    def run(self, backend: OrchestratorKubernetesBackend) -> None:
        backend.run(self.to_config())


class Document(Environment):
    """docs/zenml.md: writes its files and runs its Python and shell blocks, in order."""

    def test_the_document(self) -> None:
        os.chdir(self.repository)
        kubeconfig = self.folder / ".kube/config"
        kubeconfig.parent.mkdir()
        shutil.copy(self.embedded.kubeconfig, kubeconfig)
        self.enter(mock.patch.dict(os.environ, {"HOME": str(self.folder)}))
        names = {"pipeline": Pipeline(self.artifacts)}
        executed = 0
        for language, name, text in blocks(DOCUMENT.read_text()):
            with self.subTest(text):
                if name:
                    Path(name).write_text(text)
                elif language == "python":
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(text, str(DOCUMENT), "exec"), names)
                    executed += 1
                elif language == "sh":
                    done = subprocess.run(
                        ["sh", "-e", "-c", text], capture_output=True, text=True, check=False)
                    self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
                    executed += 1
        self.assertEqual(executed, 5)


def blocks(document: str) -> Iterator[tuple[str, str, str]]:
    """The language, the file name and the text of each code block."""
    pieces = document.split("\n```")
    for piece in pieces[1::2]:
        head, _, text = piece.partition("\n")
        language, _, name = head.partition(" ")
        yield language, name, text + "\n"


if __name__ == "__main__":
    unittest.main()
