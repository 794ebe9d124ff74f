"""The orchestrator for ZenML, with ZenML installed: registered with ZenML's program, pipelines of
steps that run on an embedded cluster, and what ZenML records of them."""

import doctest
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from typing_extensions import Annotated
from zenml import pipeline, step
from zenml.client import Client
from zenml.config import ResourceSettings
from zenml.config.retry_config import StepRetryConfig
from zenml.enums import ExecutionMode
from zenml.utils import source_utils
from zenml.utils.run_utils import stop_run

import longshore
from longshore import _native
from longshore._zenml import names, order
from longshore.types import Job
from longshore.zenml_orchestrator import LongshoreOrchestratorSettings

#: This folder, which the steps import this module from.
SOURCES = Path(__file__).parent

#: How long to wait for steps, in seconds.
TIMEOUT = 120

#: The node of a cluster that runs containers.
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node"},
    "status": {
        "nodeInfo": {"containerRuntimeVersion": "containerd://2.1.0"},
        "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "100"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


def wait_for_file(path: Path) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"there is no {path}")
        time.sleep(0.1)


@step
def load() -> Annotated[list[int], "numbers"]:
    print("loading numbers")
    return [3, 1, 2]


@step
def sort(numbers: list[int]) -> Annotated[list[int], "ordered"]:
    return sorted(numbers)


@step
def report(ordered: list[int]) -> Annotated[str, "text"]:
    return " ".join(map(str, ordered))


@pipeline(enable_cache=False)
def three_steps() -> None:
    report(sort(load()))


@pipeline
def cached_steps() -> None:
    report(sort(load()))


@step
def meet(numbers: list[int], own: str, other: str, folder: str) -> Annotated[str, "met"]:
    """Ends when the other step runs too."""
    Path(folder, own).touch()
    wait_for_file(Path(folder, other))
    return own


@step
def join(left: str, right: str) -> Annotated[str, "text"]:
    return f"{left} {right}"


@pipeline(enable_cache=False)
def two_branches(folder: str) -> None:
    numbers = load()
    join(meet(numbers, "a", "b", folder), meet(numbers, "b", "a", folder))


@step
def fail(numbers: list[int], folder: str) -> list[int]:
    """Fails while the other step waits."""
    wait_for_file(Path(folder, "waiting"))
    raise ValueError("no such digits")


@step
def wait(numbers: list[int], seconds: float, folder: str) -> list[int]:
    print("waiting", flush=True)
    Path(folder, "waiting").touch()
    time.sleep(seconds)
    return numbers


@pipeline(enable_cache=False)
def failing(seconds: float, folder: str) -> None:
    numbers = load()
    report(fail(numbers, folder))
    wait(numbers, seconds, folder)


@step
def end_abruptly() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


@pipeline(enable_cache=False)
def ended_abruptly() -> None:
    end_abruptly()


@step(retry=StepRetryConfig(max_retries=2))
def fail_twice(folder: str) -> Annotated[int, "attempts"]:
    """Fails in the first attempt, and is killed in the second."""
    attempts = Path(folder, "attempts")
    count = int(attempts.read_text()) if attempts.exists() else 0
    attempts.write_text(str(count + 1))
    if count == 0:
        raise ValueError("first attempt")
    if count == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return count + 1


@pipeline(enable_cache=False)
def failing_twice(folder: str) -> None:
    fail_twice(folder)


@step(
    environment={"FROM_STEP": "hidden-value"},
    settings={
        "resources": ResourceSettings(cpu_count=0.25, memory="1GiB"),
        "orchestrator": LongshoreOrchestratorSettings(
            cpu="100m", options={"annotations": {"team": "vision"}, "env": {"FROM_OPTIONS": "options"}}
        ),
    },
)
def variables() -> Annotated[list[str], "values"]:
    return [os.environ["FROM_STEP"], os.environ["FROM_OPTIONS"], os.getcwd(), sys.executable]


@pipeline(enable_cache=False)
def with_settings() -> None:
    variables()


@pipeline(enable_cache=False)
def with_invalid_settings() -> None:
    load.with_options(settings={"orchestrator": LongshoreOrchestratorSettings(memory="4 apples")})()


@pipeline(enable_cache=False)
def long(folder: str) -> None:
    report(wait(load(), 600.0, folder))


def setUpModule() -> None:
    """A new configuration of ZenML and a new cluster; registers the orchestrator as a user does."""
    source_utils.set_custom_source_root(str(SOURCES))
    temporary = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(temporary.cleanup)
    folder = Path(temporary.name)
    environment = {
        "AUTO_OPEN_DASHBOARD": "false",
        "LONGSHORE_DATA_DIR": str(folder / "cluster"),
        "ZENML_ANALYTICS_OPT_IN": "false",
        "ZENML_CONFIG_PATH": str(folder / "zenml"),
        "ZENML_CUSTOM_SOURCE_ROOT": str(SOURCES),
        "ZENML_LOGGING_COLORS_DISABLED": "true",
    }
    patch = mock.patch.dict(os.environ, environment)
    patch.start()
    unittest.addModuleCleanup(patch.stop)
    execute("longshore", "up")
    unittest.addModuleCleanup(execute, "longshore", "down", "--force")
    options = []
    if not hasattr(_native, "selected_cluster"):
        options.append(f"--kubeconfig={folder / 'cluster' / 'kubeconfig'}")
    zenml = str(Path(sys.executable).with_name("zenml"))
    source = "longshore.zenml_orchestrator.LongshoreOrchestratorFlavor"
    execute(zenml, "orchestrator", "flavor", "register", source)
    execute(zenml, "orchestrator", "register", "longshore", "--flavor", "longshore", *options)
    execute(zenml, "stack", "register", "local-longshore", "-o", "longshore", "-a", "default", "--set")


def execute(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")


def record() -> Any:
    """ZenML's record of the newest pipeline run."""
    newest = Client().list_pipeline_runs(sort_by="desc:created", size=1).items[0]
    return Client().get_pipeline_run(newest.id)


def statuses(run: Any) -> dict[str, str]:
    return {name: str(step_run.status) for name, step_run in run.steps.items()}


def output(run: Any, name: str) -> Any:
    """The only output of a step."""
    [[artifact]] = run.steps[name].outputs.values()
    return artifact.load()


class Registered(unittest.TestCase):
    """The stack with the orchestrator is the active one."""

    def setUp(self) -> None:
        self.stack = Client().active_stack
        self.cluster = self.stack.orchestrator.cluster()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def jobs(self, run: Any) -> dict[str, longshore.Item[Job]]:
        """The Jobs of the runs of a pipeline run, by step."""
        jobs = self.cluster.view("jobs", "default").filter(labels={"zenml-run": str(run.id)})
        return {job.labels["zenml-step"]: job for job in jobs}

    def run_of(self, run: Any, name: str) -> longshore.Run:
        """The Longshore run of a step."""
        return longshore.find_run(self.jobs(run)[name].labels["longshore.dev/run"], cluster=self.cluster)


class Pipelines(Registered):
    def test_the_stack(self) -> None:
        self.assertEqual(self.stack.name, "local-longshore")
        self.assertEqual(self.stack.orchestrator.flavor, "longshore")
        self.assertTrue(self.stack.orchestrator.shares_files())

    def test_three_steps_pass_artifacts(self) -> None:
        with self.assertLogs("longshore.zenml_orchestrator", "INFO") as logs:
            run = three_steps()
        self.assertEqual(run.status, "completed")
        self.assertEqual(statuses(run), dict.fromkeys(["load", "sort", "report"], "completed"))
        self.assertEqual(output(run, "sort"), [1, 2, 3])
        self.assertEqual(output(run, "report"), "1 2 3")
        self.assertLessEqual(run.steps["load"].end_time, run.steps["sort"].start_time)
        self.assertLessEqual(run.steps["sort"].end_time, run.steps["report"].start_time)
        self.assertEqual(set(self.jobs(run)), {"load", "sort", "report"})
        launched = self.run_of(run, "load")
        self.assertEqual(launched.status, "succeeded")
        self.assertEqual(run.steps["load"].run_metadata["longshore_run"], launched.name)
        self.assertTrue(launched.name.startswith("three-steps-load-"), launched.name)
        # The output of a step is shown here, and is in the log of its run.
        self.assertIn("[load] loading numbers", [line.getMessage() for line in logs.records])
        self.assertIn("loading numbers", [line.line for line in launched.logs()])

    def test_parallel_steps(self) -> None:
        run = two_branches(folder=str(self.folder))
        self.assertEqual(run.status, "completed")
        self.assertEqual(output(run, "join"), "a b")

    def test_cached_steps_launch_nothing(self) -> None:
        cached_steps()
        run = cached_steps()
        self.assertEqual(run.status, "completed")
        self.assertEqual(set(statuses(run).values()), {"cached"})
        self.assertEqual(self.jobs(run), {})

    def test_a_failing_step(self) -> None:
        with self.assertRaises(RuntimeError) as raised:
            failing(seconds=0.0, folder=str(self.folder))
        cause = "^step `fail` failed: .*ValueError: no such digits; read its log: "
        self.assertRegex(str(raised.exception), cause)
        run = record()
        self.assertEqual(run.status, "failed")
        # The step that needs the failed one is not started, and the independent one ends.
        self.assertEqual(statuses(run), {"load": "completed", "fail": "failed", "wait": "completed"})
        self.assertNotIn("report", self.jobs(run))
        self.assertEqual(self.run_of(run, "fail").status, "failed")

    def test_fail_fast_cancels_the_other_steps(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "^step `fail` failed: [^`]*ValueError"):
            fail_fast = failing.with_options(execution_mode=ExecutionMode.FAIL_FAST)
            fail_fast(seconds=600.0, folder=str(self.folder))
        run = record()
        self.assertEqual(run.status, "failed")
        self.assertEqual(statuses(run), {"load": "completed", "fail": "failed", "wait": "stopped"})
        self.assertEqual(self.run_of(run, "wait").status, "cancelled")

    def test_a_step_that_is_killed(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "step `end_abruptly` failed: .*137.*memory"):
            ended_abruptly()
        self.assertEqual(statuses(record()), {"end_abruptly": "failed"})

    def test_retries(self) -> None:
        run = failing_twice(folder=str(self.folder))
        self.assertEqual(run.status, "completed")
        self.assertEqual(run.steps["fail_twice"].version, 3)
        self.assertEqual(output(run, "fail_twice"), 3)

    def test_settings(self) -> None:
        run = with_settings()
        values = output(run, "variables")
        self.assertEqual(values[:2], ["hidden-value", "options"])
        self.assertNotEqual(values[2], str(SOURCES))
        self.assertEqual(values[3], sys.executable)
        job = self.jobs(run)["variables"]
        self.assertEqual(job.annotations["team"], "vision")
        [container] = job.field("spec", "template", "spec", "containers")
        self.assertEqual(container["resources"]["requests"], {"cpu": "100m", "memory": "1Gi"})
        # The values of variables are in a Secret only.
        pods = self.cluster.view("pods", "default").filter(labels={"job-name": job.name})
        for item in [job, *pods]:
            self.assertNotIn("hidden-value", json.dumps(item.raw))
            self.assertNotIn("ZENML_STORE_URL", json.dumps(item.raw))

    def test_a_step_that_cannot_be_launched(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "step `load` failed: .*4 apples"):
            with_invalid_settings()
        run = record()
        self.assertEqual((run.status, statuses(run), self.jobs(run)), ("failed", {"load": "failed"}, {}))


class Stopped(Registered):
    """A pipeline in a process of its own, which is stopped while a step runs."""

    def start(self) -> tuple[subprocess.Popen[bytes], Path]:
        log = self.folder / "log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-c", f"import zenml_today; zenml_today.long({str(self.folder)!r})"],
                stdout=file, stderr=file)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + TIMEOUT
        while "[wait] waiting" not in log.read_text():
            self.assertIsNone(process.poll(), log.read_text())
            self.assertLess(time.monotonic(), deadline, log.read_text())
            time.sleep(0.2)
        return process, log

    def check(self, process: subprocess.Popen[bytes], log: Path, error: str) -> None:
        self.assertNotEqual(process.wait(TIMEOUT), 0, log.read_text())
        self.assertIn(error, log.read_text())
        run = record()
        self.assertEqual(run.status, "stopped")
        self.assertEqual(statuses(run), {"load": "completed", "wait": "stopped"})
        self.assertEqual(self.run_of(run, "wait").status, "cancelled")

    def test_ctrl_c(self) -> None:
        process, log = self.start()
        process.send_signal(signal.SIGINT)
        self.check(process, log, "KeyboardInterrupt")

    def test_stop_from_another_process(self) -> None:
        process, log = self.start()
        stop_run(record())
        self.check(process, log, "the pipeline run was stopped")


class OtherClusters(Registered):
    """A cluster whose nodes run containers: only what is created, because no node executes it."""

    snapshot: Any

    @classmethod
    def setUpClass(cls) -> None:
        cls.snapshot = three_steps().snapshot

    def setUp(self) -> None:
        super().setUp()
        embedded = longshore.EmbeddedCluster(pods=False)
        self.addCleanup(embedded.stop)
        self.cluster = embedded.cluster
        node = self.cluster.create(NODE)
        node.patch_status({"status": NODE["status"]})
        Client().create_stack_component(
            name=f"other-{time.monotonic_ns()}", flavor="longshore", component_type="orchestrator",
            configuration={"kubeconfig": str(embedded.kubeconfig)},
        )
        self.orchestrator = type(self.stack.orchestrator).from_model(
            Client().list_stack_components(type="orchestrator", sort_by="desc:created", size=1).items[0])

    def launch(self, settings: LongshoreOrchestratorSettings, build: Any = None) -> tuple[str, list[str], Any]:
        step = self.snapshot.step_configurations["load"]
        config = step.config.model_copy(update={"settings": {"orchestrator.longshore": settings}})
        step = step.model_copy(update={"config": config})
        pipeline_configuration = self.snapshot.pipeline_configuration
        snapshot = SimpleNamespace(
            id=self.snapshot.id, build=build, pipeline_configuration=pipeline_configuration)
        env = {"TOKEN": "hidden-value"}
        self.orchestrator.launch("load", step, snapshot, env, "orchestrator-run", self.snapshot.id)
        job = self.jobs(self.snapshot)["load"]
        self.assertNotIn("hidden-value", json.dumps(job.raw))
        [container] = job.field("spec", "template", "spec", "containers")
        command = container["command"]
        return container["image"], command[command.index("--") + 1:], job.field("spec", "template", "spec")

    def test_components_of_this_machine_are_refused(self) -> None:
        self.assertFalse(self.orchestrator.shares_files())
        valid, problem = self.orchestrator._validate(self.stack)
        self.assertFalse(valid)
        self.assertIn("zenml login", problem)

    def test_an_image_of_the_settings(self) -> None:
        settings = LongshoreOrchestratorSettings(image="registry.example/zenml:1")
        image, command, pod = self.launch(settings)
        self.assertEqual(image, "registry.example/zenml:1")
        self.assertEqual(command[:2], ["python3", "-c"])
        self.assertIn("LongshoreStepEntrypoint", " ".join(command))
        # Longshore sends the code.
        self.assertIn("fetch", [container["name"] for container in pod["initContainers"]])

    def test_an_image_that_zenml_built(self) -> None:
        name = "registry.example/{component_key}:{step}"
        build = SimpleNamespace(get_image=lambda **arguments: name.format(**arguments))
        self.launch(LongshoreOrchestratorSettings(), build)
        image, command, pod = self.launch(LongshoreOrchestratorSettings(), build)
        self.assertEqual(image, "registry.example/orchestrator:load")
        self.assertEqual(command[:3], ["python", "-m", "zenml.entrypoints.entrypoint"])
        self.assertEqual(command.count("--step_name"), 1)
        # The code is in the image, or ZenML downloads it.
        self.assertNotIn("fetch", [container["name"] for container in pod.get("initContainers", [])])

    def test_builds(self) -> None:
        self.assertEqual(self.stack.orchestrator.get_docker_builds(self.snapshot), [])
        with self.assertRaisesRegex(RuntimeError, "container registry"):
            self.orchestrator.get_docker_builds(self.snapshot)


class Module(unittest.TestCase):
    def test_the_package_does_not_import_zenml(self) -> None:
        program = "import longshore, longshore._runs, sys; assert 'zenml' not in sys.modules"
        subprocess.run([sys.executable, "-c", program], check=True)

    def test_docstrings(self) -> None:
        for module in [names, order]:
            results = doctest.testmod(module, verbose=False)
            self.assertGreater(results.attempted, 0)
            self.assertEqual(results.failed, 0)


if __name__ == "__main__":
    unittest.main()
