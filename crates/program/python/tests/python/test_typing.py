"""Type checkers accept correct programs, this package, its tests and the documentation's examples."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import longshore

import examples

HERE = Path(__file__).parent
TOOLS = HERE.parents[1] / "tools"
HAS_MYPY = importlib.util.find_spec("mypy") is not None
#: Libraries of which the tests and the examples use the types.
HAS_LIBRARIES = all(importlib.util.find_spec(name) for name in ["kopf", "pyrsistent", "pytest"])

VERSIONS = ["3.10", "3.13"]

#: The calls of mypy share the types of the standard library.
CACHE = tempfile.mkdtemp()

#: Accesses of typed objects that are correct.
TYPED = """
from __future__ import annotations

from typing import Any, TypedDict

import longshore
from longshore import aio
from longshore.types import Container, JSONSchemaProps, NetworkPolicyIngressRule, Pod

class Widget(TypedDict, total=False):
    size: int

def phase(pod: longshore.Item[Pod]) -> str:
    return pod.raw["status"]["phase"]

def of_any_kind(view: longshore.View, item: longshore.Item) -> tuple[int, str]:
    return len(view), item.name

def use(cluster: longshore.Cluster, kind: str, manifest: dict[str, Any]) -> None:
    container: Container = {"name": "main", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}
    pods = cluster.view("pods", "default")
    pod = pods.create({"metadata": {"name": "a"}, "spec": {"containers": [container]}})
    pod = pod.wait(lambda item: phase(item) == "Running", timeout=10)
    of_any_kind(pods, pod)
    names: list[str] = [one.raw["metadata"]["name"] for one in pods.filter(labels="a=b").in_namespace("b")]
    for event in pods.watch():
        changed: longshore.WatchEvent = event
        phases: list[str] = [phase(one) for one in event.items or []]
    with pods.cache().changes() as changes:
        for _, item in changes:
            phase(item)
    replicas: int = cluster.view("deploy").fetch("a").raw["spec"]["replicas"]
    owned: list[longshore.Item[Pod]] = cluster.view("Job").fetch("a").children(pods)
    involved: str = pod.events()[0].raw["involvedObject"]["name"]
    rule: NetworkPolicyIngressRule = {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": []}}]}
    schema: JSONSchemaProps = {"properties": {"a": {"$ref": "b", "not": {"type": "string"}}}}
    # Kinds that only the program knows.
    cluster.view(kind).create(manifest)
    of_any_kind(cluster.view(kind), cluster.create(manifest))
    raw: dict[str, Any] = cluster.view(kind).fetch("a").raw
    widgets: longshore.View[Widget] = cluster.view("widgets")
    size: int = widgets.create({"size": 1}).raw["size"]
    untyped: longshore.View = cluster.view("pods")
    untyped.create(manifest)
    made: longshore.Item[Pod] = cluster.create({"kind": "Pod"})

async def use_async(cluster: aio.Cluster) -> None:
    jobs = await cluster.view("jobs")
    parallelism: int = (await jobs.fetch("a")).raw["spec"]["parallelism"]
    names: list[str] = [job.raw["metadata"]["name"] async for job in jobs]
    async for event in await jobs.watch():
        if event.item and event.evtype != aio.WatchEvent.DELETED:
            parallelism = event.item.raw["spec"]["parallelism"]
    widgets: aio.View[Widget] = await cluster.view("widgets")
"""

#: Accesses of items of ``longshore.kube`` that are correct.
TYPED_KUBE = """
from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from datetime import datetime

import longshore
from longshore import kube

def use(cluster: kube.Cluster) -> None:
    rs = cluster.replicasets.fetch("auth", namespace="default")
    counts: list[int] = [rs.ready_replicas, rs.observed_generation, rs.scale(3).available_replicas]
    created: datetime = rs.fetch().meta.created
    labelled: kube.ReplicaSetItem = rs.meta.labels.set("a", "b").meta.labels.delete("a")
    changed: kube.ReplicaSetItem = rs.replace(rs.raw.set("spec", {})).patch({"spec": {}}, kind="merge")
    for pod in cluster.pods.filter(labels=rs.meta.labels, fields={"status.phase": "Running"}):
        running: bool = pod.phase is pod.PodPhase.Running
        address: ipaddress.IPv4Address | ipaddress.IPv6Address = pod.ip
        codes: list[int] = [one.state.exit_code for one in pod.containers if one.state.terminated]
    with cluster.nodes.watch() as watcher:
        for evtype, node in watcher:
            added: bool = evtype is kube.WatchEvent.ADDED
            capacity: Mapping[str, int | float] = node.capacity
        event = watcher.next(timeout=1)
        names: list[str] = [event.item.meta.name, event.evtype.value]
    secret: kube.SecretItem = cluster.create({"kind": "Secret"}, namespace="a")
    token: bytes = secret.data["token"]
    secrets: kube.SecretView = cluster.kindimpl(kube.Kind.SecretList)(secret.cluster, "default")
    native: longshore.Cluster = kube.Cluster.of(cluster.native).native
    longshore.KubernetesClusterResolver(override_client=cluster)
    longshore.runs(cluster=cluster)
    try:
        secret.fetch()
    except kube.APIError as error:
        text: str = error.response.text
"""

#: The beginning of the program with the lines of ``MISTYPED_KUBE``.
START_KUBE = """
from __future__ import annotations
from longshore import kube
cluster = kube.Cluster()
rs = cluster.replicasets.fetch("a", namespace="b")
pod = next(iter(cluster.pods))
"""

#: Lines with mistakes, and what mypy reports.
MISTYPED_KUBE = {
    'print(rs.observed_replica + "x")': '"ReplicaSetItem" has no attribute "observed_replica"',
    'print(rs.observed_replicas + "x")': "Unsupported operand types",
    "pod.phaze": '"PodItem" has no attribute "phaze"',
    "pod.scale(3)": '"PodItem" has no attribute "scale"',
    "pod.containers.name": 'has no attribute "name"',
    "next(iter(pod.containers)).restarts": '"Container" has no attribute "restarts"',
    "next(iter(pod.containers)).state.exitcode": '"ContainerState" has no attribute "exitcode"',
    "pod.meta.lables": 'has no attribute "lables"',
    'pod.meta.labels.set("a", "b").hostip': '"PodItem" has no attribute "hostip"',
    'for evtype, node in cluster.nodes.watch(): node.adresses': '"NodeItem" has no attribute "adresses"',
    "cluster.services.watch().next(timeout=1).items": "has no attribute",
    'cluster.deployments.fetch("a", namespace="b").fetch().replicas': '"DeploymentItem" has no attribute "replicas"',
    'cluster.secrets.fetch("a", namespace="b").data["a"].encode()': '"bytes" has no attribute "encode"',
    'cluster.pods.filter(label="a=b")': 'Unexpected keyword argument "label"',
    "cluster.daemonset": '"Cluster" has no attribute "daemonset"',
    'rs.scale("3")': "incompatible type",
}

#: The beginning of the program with the lines of ``MISTYPED``.
START = """
from __future__ import annotations
import longshore
from longshore.types import Deployment, Pod, PodSpec
pods = longshore.Cluster().view("pods")
"""

#: Lines with mistakes, and what mypy reports.
MISTYPED = {
    # Fields that do not exist, or are missing.
    'pods.fetch("a").raw["spce"]': 'TypedDict "Pod" has no key "spce"',
    'pods.create({"metadata": {"nmae": "a"}})': 'Extra key "nmae" for TypedDict "ObjectMeta"',
    "spec: PodSpec = {}": 'Missing key "containers" for TypedDict "PodSpec"',
    # Values of another type.
    'pods.create({"metadata": {"labels": {"a": 1}}})': 'expected "str": "str"',
    'seconds: str = pods.fetch("a").raw["spec"]["activeDeadlineSeconds"]': 'expression has type "int"',
    # Another kind.
    'deployments: longshore.View[Deployment] = longshore.Cluster().view("pods")': "Incompatible types",
    'pods.create({"kind": "Deployment"})': """TypedDict item "kind" has type "Literal['Pod']\"""",
    'pod: longshore.Item[Pod] = longshore.Cluster().view("cm").fetch("a")': "Incompatible types",
}


def tearDownModule() -> None:
    shutil.rmtree(CACHE)


def check_types(*arguments: str, config: str = "") -> tuple[int, str]:
    """Runs mypy, and returns its exit status and its output."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", CACHE]
    command += [f"--config-file={config}", *arguments]
    found = {**os.environ, "MYPYPATH": str(Path(longshore.__file__).parents[1])}
    checked = subprocess.run(command, cwd=HERE, capture_output=True, text=True, env=found)
    return checked.returncode, checked.stdout + checked.stderr


@unittest.skipUnless(HAS_MYPY, "mypy is not installed")
class Typing(unittest.TestCase):
    def accepts(self, *arguments: str) -> None:
        status, output = check_types(*arguments)
        self.assertEqual(status, 0, output)

    def test_the_package(self) -> None:
        uses = "".join(f"longshore.{name}\n" for name in longshore.__all__)
        code = f"import longshore\nfrom longshore import *\n{uses}"
        code += "count: int = len(Cluster().view('pods'))\nKubernetesClusterResolver().watch().next(timeout=1)\n"
        for version in VERSIONS:
            self.accepts("--python-version", version, "--package", "longshore")
        self.accepts("--follow-imports=silent", "-c", code)
        wrong = "import longshore\nlongshore.walk()\n"
        status, output = check_types("--follow-imports=silent", "-c", wrong)
        self.assertEqual(status, 1, output)

    def test_correct_programs_are_accepted(self) -> None:
        for version in VERSIONS:
            self.accepts("--python-version", version, "-c", TYPED)

    def test_mistakes_are_reported(self) -> None:
        self.reports(START, MISTYPED)

    def reports(self, start: str, mistakes: dict[str, str]) -> None:
        status, output = check_types("-c", start + "\n".join(mistakes))
        self.assertEqual(status, 1, output)
        reports = {int(line.split(":")[1]): line for line in output.splitlines() if ": error: " in line}
        first = start.count("\n") + 1
        self.assertEqual(sorted(reports), list(range(first, first + len(mistakes))), output)
        for line, expected in enumerate(mistakes.values(), first):
            self.assertIn(expected, reports[line])

    @unittest.skipUnless(HAS_LIBRARIES, "kopf, pyrsistent or pytest is not installed")
    def test_kube(self) -> None:
        for version in VERSIONS:
            self.accepts("--python-version", version, "-c", TYPED_KUBE)
        self.reports(START_KUBE, MISTYPED_KUBE)

    @unittest.skipUnless(HAS_LIBRARIES, "kopf, pyrsistent or pytest is not installed")
    def test_the_tests_and_the_examples(self) -> None:
        """The examples have the mistakes that their comments `# error: …` name, and no others."""
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            mistakes: dict[str, str] = {}
            for name, text in examples.modules().items():
                path = Path(folder, name)
                path.write_text(text, encoding="utf-8")
                paths.append(path)
                for number, line in enumerate(text.splitlines(), 1):
                    if found := re.search("# error: (.*)", line):
                        mistakes[f"{path}:{number}"] = found[1]
            self.assertTrue(mistakes)
            paths += [*HERE.glob("*.py"), *TOOLS.rglob("*.py")]
            names = [str(path) for path in paths]
            _, output = check_types("--python-version", "3.10", *names, config="mypy.ini")
        reports = [line for line in output.splitlines() if ": note: " not in line]
        for report in reports:
            place, _, message = report.partition(": error: ")
            self.assertIn(place, mistakes, output)
            self.assertIn(mistakes.pop(place), message)
        self.assertEqual(mistakes, {})


if __name__ == "__main__":
    unittest.main()
