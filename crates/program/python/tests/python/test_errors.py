"""Each documented exception is raised by the documented call, and derives from ``KubeError``."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import re
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import longshore
from longshore import aio, errors, testing
from longshore.types import ConfigMap

from launched import Launched

HAS_PYRSISTENT = importlib.util.find_spec("pyrsistent") is not None
if TYPE_CHECKING or HAS_PYRSISTENT:
    from longshore import kube

PACKAGE = Path(longshore.__file__).parent

#: The files with the docstrings of public names, and the prefix of the names.
FILES = {
    "_native.pyi": "",
    "_runs.py": "",
    "_aio_runs.py": "aio.",
    "cluster_resolver.py": "",
    "testing.py": "testing.",
    "zenml.py": "",
    **{f"kube/{path.name}": "kube." for path in sorted((PACKAGE / "kube").glob("_*.py"))},
}

#: Built-in exceptions that mistakes of a program raise; all others derive from ``KubeError``.
BUILT_IN = {"AssertionError", "FileNotFoundError", "LookupError", "StopIteration", "TypeError", "ValueError"}

#: Code that is not public.
INTERNAL = re.compile(r"kube\.(BaseItem\._same|fetch_resource|find_api_path|parse_rfc3339|selector|BaseView\.path)|Run\.follow|_json")


def documented() -> set[tuple[str, str]]:
    """The names of calls, each with the name of an exception."""
    found = set()
    for file, prefix in FILES.items():
        tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
        for name, doc in docstrings(tree, prefix):
            names = re.findall(r":raises ([\w.]+):", doc) + re.findall(r"[Rr]aises?\s+`+(\w+)`", doc)
            if not INTERNAL.fullmatch(name):
                found |= {(name, error.rpartition(".")[2]) for error in names}
    return found


def docstrings(node: ast.AST, prefix: str) -> Iterator[tuple[str, str]]:
    for inner in getattr(node, "body", []):
        if isinstance(inner, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + inner.name, ast.get_docstring(inner) or ""
            yield from docstrings(inner, f"{prefix}{inner.name}.")


class Errors(Launched):
    """The cases call the cluster of the class."""

    running: longshore.Run
    maps: longshore.View[ConfigMap]
    item: longshore.Item[ConfigMap]
    replaced: longshore.Item[ConfigMap]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.running = longshore.run(PACKAGE.parent, ["sleep", "600"], code=False, cluster=cls.cluster)
        cls.maps = cls.cluster.view("configmaps", "default")
        cls.item = cls.maps.create({"metadata": {"name": "a"}})
        cls.replaced = cls.maps.create({"metadata": {"name": "b"}})
        cls.replaced.patch({"data": {"a": "1"}})

    def run_(self, **options: Any) -> longshore.Run:
        return longshore.run(self.folder(), ["true"], cluster=self.cluster, **options)

    def closed(self) -> None:
        cluster = longshore.Cluster(kubeconfig=self.embedded.kubeconfig)
        cluster.close()
        cluster.view("pods").list()

    def ended(self) -> longshore.Run:
        run = longshore.run(self.folder(), ["sh", "-c", "exit 3"], cluster=self.cluster)
        run.wait()
        return run

    def conflict(self) -> None:
        self.maps.apply({"metadata": {"name": "a"}, "data": {"k": "1"}}, manager="one")
        self.maps.apply({"metadata": {"name": "a"}, "data": {"k": "2"}}, manager="two")

    def manual(self) -> None:
        with longshore.EmbeddedCluster(pods=False, clock="manual") as embedded:
            embedded.cluster.view("jobs", "default").create({
                "metadata": {"name": "a"},
                "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}},
            })
            embedded.settle(timeout=0)

    def pod(self) -> longshore.Item:
        """The pod of the running run."""
        for event in self.running.events(logs=False):
            if event["event"] == "progress" and event["roles"][0]["running"]:
                break
        [pod] = self.cluster.view("pods", "default").filter(labels={"longshore.dev/run": self.running.name})
        return pod.wait("ready", timeout=60)

    def quiet(self) -> None:
        """Reads events until none arrives."""
        events = self.running.events()
        while events.next(timeout=0.5) is not None:
            pass

    def ambiguous(self) -> None:
        for _ in range(2):
            self.run_(name="twice").wait()
        longshore.find_run("twice", cluster=self.cluster)

    def wait_async(self, **options: Any) -> None:
        async def waiting() -> None:
            run = await aio.find_run(self.running.name, cluster=self.cluster)
            await run.wait(timeout=0)

        async def failing() -> None:
            run = await aio.find_run(self.ended().name, cluster=self.cluster)
            await run.wait(check=True)

        asyncio.run(failing() if options else waiting())

    def cases(self) -> dict[tuple[str, str], Callable[[], object]]:
        maps, item, replaced = self.maps, self.item, self.replaced
        never: Callable[[longshore.Item], bool] = lambda _: False
        resolver = longshore.KubernetesClusterResolver({"worker": ["no=such"]}, override_client=self.cluster)
        pipeline_run = longshore.PipelineRun(self.running._native, {})
        return {
            ("Cluster.close", "ClosedError"): self.closed,
            ("View.fetch", "NotFoundError"): lambda: maps.fetch("no-such"),
            ("View.create", "AlreadyExistsError"): lambda: maps.create({"metadata": {"name": "a"}}),
            ("View.replace", "ConflictError"): lambda: maps.replace("b", replaced.raw),
            ("View.apply", "ConflictError"): self.conflict,
            ("View.delete", "ConflictError"): lambda: maps.delete("b", version=replaced.version),
            ("View.wait", "WaitTimeoutError"): lambda: maps.wait("a", never, timeout=0),
            ("Item.replace", "ConflictError"): lambda: replaced.replace({"data": {}}),
            ("Item.delete", "ConflictError"): lambda: replaced.delete(version=replaced.version),
            ("Item.wait", "WaitTimeoutError"): lambda: item.wait(never, timeout=0),
            ("Watch.next", "WaitTimeoutError"): lambda: maps.watch().next(timeout=0),
            ("Stream.next", "WaitTimeoutError"): self.quiet,
            ("Item.exec", "WaitTimeoutError"): lambda: self.pod().exec(["sleep", "60"], timeout=0.2),
            ("Session.read", "WaitTimeoutError"): lambda: self.pod().open_exec(["sleep", "60"]).read(timeout=0.2),
            ("Session.read_error", "WaitTimeoutError"): lambda: self.pod().open_exec(["sleep", "60"]).read_error(timeout=0.2),
            ("Session.wait", "WaitTimeoutError"): lambda: self.pod().open_exec(["sleep", "60"]).wait(timeout=0.2),
            ("EmbeddedCluster.settle", "WaitTimeoutError"): self.manual,
            ("run", "LaunchError"): lambda: self.run_(data={"a": "/no/such/folder"}),
            ("run", "InvalidError"): lambda: self.run_(timeout="soon"),
            ("run", "TypeError"): lambda: self.run_(gpu=1),
            ("run", "FileNotFoundError"): lambda: longshore.run("/no/such/folder", cluster=self.cluster),
            ("find_run", "NotFoundError"): lambda: longshore.find_run("no-such", cluster=self.cluster),
            ("find_run", "InvalidError"): self.ambiguous,
            ("runs", "InvalidError"): lambda: longshore.runs("done", cluster=self.cluster),
            ("Run.logs", "WaitTimeoutError"): lambda: list(self.running.logs(timeout=0.1)),
            ("Run.wait", "WaitTimeoutError"): lambda: self.running.wait(timeout=0.1),
            ("Run.wait", "LaunchError"): lambda: self.ended().wait(check=True),
            ("Run.tag", "InvalidError"): lambda: self.running.tag("not valid"),
            ("Run.set_note", "InvalidError"): lambda: self.running.set_note("x" * 5000),
            ("Run.outputs", "KubeError"): lambda: self.ended().outputs(),
            ("Run.outputs", "InvalidError"): lambda: self.running.outputs(task="no-such/0"),
            ("Run.sweep", "KubeError"): lambda: self.running.sweep(),
            ("Run.retry", "KubeError"): lambda: self.running.retry(),
            ("aio.Run.wait", "WaitTimeoutError"): self.wait_async,
            ("aio.Run.wait", "LaunchError"): lambda: self.wait_async(check=True),
            ("PipelineRun.wait", "WaitTimeoutError"): lambda: pipeline_run.wait(timeout=0.1),
            ("KubernetesClusterResolver.wait", "MissingTasksError"): lambda: resolver.wait({"worker": 1}, timeout=0),
            ("testing.TestCluster.faults", "NoFaultsError"):
                lambda: testing.TestCluster(self.cluster, "", "default", None).faults,
            ("testing.check_replay", "AssertionError"): lambda: testing.check_replay(NotRecorded()),  # type: ignore[arg-type]
        }

    def kube_cases(self) -> dict[tuple[str, str], Callable[[], object]]:
        cluster = kube.Cluster.from_kubeconfig(self.embedded.kubeconfig)
        self.addCleanup(cluster.close)
        secrets = kube.SecretView(cluster, "default")
        data: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "a-"}}
        made = cluster.create(data, "default")
        gone = cluster.create(data, "default")
        gone.delete()
        unknown: Any = "Pod"
        stale = cluster.create(data, "default")
        stale.meta.labels.set("a", "c")
        replicas = kube.ReplicaSetItem(cluster, {"metadata": {"name": "no-such", "namespace": "default"}})
        closed = kube.Cluster("http://localhost:1")
        unreachable = kube.SecretItem(closed, made.raw)
        watch = kube.SecretView(cluster, "kube-public").watch()
        ended = secrets.watch()
        ended.close()
        path = ["api/v1", "namespaces", "default", "secrets"]
        json_ended = cluster.proxy.watch(*path)
        json_ended.close()
        address = {"metadata": {"name": "n"}, "status": {"addresses": [{"type": "InternalIP", "address": "x"}]}}
        return {
            ("kube.ViewABC", "NamespaceError"): lambda: kube.NodeView(cluster, "default"),
            ("kube.ViewABC.fetch", "LookupError"): lambda: secrets.fetch("no-such"),
            ("kube.ViewABC.fetch", "NamespaceError"): lambda: cluster.secrets.fetch("a"),
            ("kube.ViewABC.fetch", "APIError"): lambda: closed.secrets.fetch("a", namespace="default"),
            ("kube.ViewABC.filter", "ValueError"): lambda: secrets.filter(labels=""),
            ("kube.ItemABC.fetch", "LookupError"): gone.fetch,
            ("kube.ItemABC.fetch", "APIError"): unreachable.fetch,
            ("kube.ItemABC.delete", "APIError"): unreachable.delete,
            ("kube.ItemABC.patch", "ConflictError"):
                lambda: stale.patch({"metadata": {"resourceVersion": stale.meta.version, "labels": {"a": "b"}}}),
            ("kube.ItemABC.patch", "APIError"): lambda: made.patch({"data": 3}, kind="merge"),
            ("kube.ItemABC.replace", "ConflictError"): lambda: stale.replace({}),
            ("kube.ItemABC.replace", "KubeError"): lambda: made.replace({"kind": "Pod"}),
            ("kube.ItemABC.replace", "APIError"): lambda: made.replace({"data": 3}),
            ("kube.Scalable.scale", "InvalidError"): lambda: replicas.scale(-1),
            ("kube.Scalable.scale", "APIError"): lambda: replicas.scale(1),
            ("kube.Cluster.of", "TypeError"): lambda: kube.Cluster.of(3),  # type: ignore[arg-type]
            ("kube.Cluster.kindimpl", "ValueError"): lambda: cluster.kindimpl(unknown),
            ("kube.Cluster.create", "KubeError"): lambda: cluster.create({}),
            ("kube.Cluster.create", "NamespaceError"): lambda: cluster.create(data),
            ("kube.Cluster.create", "APIError"): lambda: cluster.create({**data, "metadata": {"name": "A!"}}, "default"),
            ("kube.ResourceLabels.set", "APIError"): lambda: made.meta.labels.set("not valid", "a"),
            ("kube.ResourceLabels.delete", "APIError"): lambda: gone.meta.labels.delete("a"),
            ("kube.NodeItem.addresses", "StatusError"): lambda: list(kube.NodeItem(cluster, address).addresses),
            ("kube.ContainerState", "ValueError"): lambda: kube.ContainerState({"paused": {}}),
            ("kube.APIServerProxy.get", "APIError"): lambda: cluster.proxy.get("api/v1", "namespaces", "no-such"),
            ("kube.JSONWatcher.next", "TimeoutError"): lambda: next_of_empty(cluster),
            ("kube.JSONWatcher.next", "StopIteration"): json_ended.next,
            ("kube.ResourceWatcher.next", "TimeoutError"): lambda: watch.next(timeout=0),
            ("kube.ResourceWatcher.next", "StopIteration"): ended.next,
        }

    def test_each_documented_exception_is_raised(self) -> None:
        cases = self.cases()
        if HAS_PYRSISTENT:
            cases |= self.kube_cases()
        expected = {case for case in documented() if HAS_PYRSISTENT or not case[0].startswith("kube.")}
        self.assertEqual(sorted(expected - set(cases)), [], "without a case")
        self.assertEqual(sorted(set(cases) - expected), [], "without documentation")
        for (name, error), call in cases.items():
            kind = getattr(errors, error, None) or getattr(testing, error, None) or getattr(__import__("builtins"), error)
            with self.subTest(f"{name}: {error}"):
                with self.assertRaises(kind) as raised:
                    call()
                self.assertTrue(str(raised.exception) or error == "StopIteration")
                if error not in BUILT_IN:
                    self.assertIsInstance(raised.exception, longshore.KubeError)

    def test_a_process_can_be_waited_for_again(self) -> None:
        session = self.pod().open_exec(["sh", "-c", "read line; sleep 1; exit 3"])
        for _ in range(2):
            with self.assertRaises(TimeoutError):
                session.wait(timeout=0.1)
        self.assertEqual((session.wait(timeout=60), session.wait()), (3, 3))

    def test_errors_of_clusters_and_of_arguments_derive_from_kube_error(self) -> None:
        stopped = longshore.EmbeddedCluster(pods=False)
        stopped.stop()
        calls: list[Callable[[], object]] = [
            lambda: longshore.Cluster(kubeconfig="/no/such/file"),
            lambda: longshore.Cluster(context="no-such"),
            lambda: longshore.Cluster("not a url"),
            lambda: self.cluster.view("no-such-kind"),
            lambda: self.maps.fetch("no/such"),
            lambda: self.maps.filter(labels="a b c"),
            lambda: self.maps.watch().next(timeout=-1),
            lambda: self.maps.patch("a", {}, kind="other"),  # type: ignore[arg-type]
            lambda: self.cluster.create({"kind": "ConfigMap", "a": float("nan")}),
            lambda: self.running.wait(timeout=-1),
            lambda: self.running.wait(timeout=float("nan")),
            lambda: longshore.EmbeddedCluster(clock="noon"),
            lambda: self.embedded.advance(1),
            lambda: stopped.snapshot(),
            lambda: self.embedded.faults.add({"match": {"verbs": ["dance"]}}),
            lambda: longshore.KubernetesClusterResolver(order="random"),  # type: ignore[arg-type]
            lambda: longshore.Run("no-such", cluster=self.cluster),
        ]
        for number, call in enumerate(calls):
            with self.subTest(number), self.assertRaises(longshore.KubeError):
                call()


class NotRecorded:
    """A replay with a request that was not recorded."""

    not_recorded = [{"request": "GET /", "reason": "not recorded"}]


def next_of_empty(cluster: kube.Cluster) -> object:
    path = ["api/v1", "namespaces", "kube-public", "secrets"]
    version = cluster.proxy.get(*path)["metadata"]["resourceVersion"]
    return cluster.proxy.watch(*path, version=version).next(timeout=0)


if __name__ == "__main__":
    unittest.main()
