"""Operations of objects and pods, blocking and with asyncio."""

import asyncio
import pickle
import tempfile
import threading
import time
import unittest
from collections.abc import Callable
import urllib.request
from pathlib import Path
from typing import Any

import longshore
from longshore import aio
from longshore.types import ConfigMap, Container, EnvVar, Event, ObjectMeta, OwnerReference, Pod, PodSpec

from pods import present
from test_client import config_map


def sleeper(name: str, command: str, env: list[EnvVar] | None = None) -> Pod:
    container: Container = {"name": "main", "image": "any", "command": ["sh", "-c", command], "env": env or []}
    metadata: ObjectMeta = {"name": name, "namespace": "default", "labels": {"app": name}}
    spec: PodSpec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Operations(unittest.TestCase):
    """With an API server alone."""

    embedded: longshore.EmbeddedCluster
    cluster: longshore.Cluster
    maps: longshore.View[ConfigMap]

    @classmethod
    def setUpClass(cls) -> None:
        cls.embedded = longshore.EmbeddedCluster(pods=False)
        cls.addClassCleanup(cls.embedded.stop)
        cls.cluster = cls.embedded.cluster

    def setUp(self) -> None:
        self.maps = self.cluster.view("configmaps", "default")
        self.maps.delete_all()

    def test_views(self) -> None:
        self.assertIsNone(self.maps.find("a"))
        made = self.maps.create(config_map("a"))
        self.assertEqual(self.maps.find("a"), made)
        self.assertEqual(self.maps.list(), [made])
        self.assertEqual((self.maps.count(), self.maps.resource, self.maps.api_version), (1, "configmaps", "v1"))
        replaced = self.maps.replace("a", {**config_map("a"), "data": {"b": "c"}})
        self.assertEqual(replaced.field("data"), {"b": "c"})
        applied = self.maps.apply({**config_map("a"), "data": {"d": "e"}}, manager="me")
        self.assertEqual(applied.field("data"), {"b": "c", "d": "e"})
        self.maps.dry_run().patch("a", {"data": {"never": "stored"}})
        self.assertIsNone(self.maps.fetch("a").field("data", "never"))

    def test_a_watch_starts_after_a_version(self) -> None:
        first, second = self.maps.create(config_map("a")), self.maps.create(config_map("b"))
        with self.maps.watch(since=first.version) as watch:
            self.assertEqual(watch.next(timeout=10).item, second)
        with self.maps.watch(since="0") as watch:
            self.assertEqual({present(watch.next(timeout=10).item).name for _ in range(2)}, {"a", "b"})
        with self.assertRaises(longshore.APIError):
            self.maps.watch(since="not a version")

    def test_deletion_has_options(self) -> None:
        made = self.maps.create(config_map("a"))
        with self.assertRaises(longshore.ConflictError):
            made.delete(uid="11111111-2222-3333-4444-555555555555")
        with self.assertRaisesRegex(ValueError, "background, foreground or orphan"):
            made.delete(propagation="later")  # type: ignore[arg-type]
        self.maps.delete("a", propagation="background", grace_seconds=0, version=made.version)
        self.assertIsNone(self.maps.find("a"))

    def test_waits(self) -> None:
        made = self.maps.create(config_map("a"))
        threading.Timer(0.1, lambda: made.patch({"data": {"done": "yes"}})).start()
        found = made.wait(lambda item: item.field("data", "done") == "yes", timeout=10)
        self.assertEqual(found.field("data", "done"), "yes")
        with self.assertRaisesRegex(longshore.WaitTimeoutError, "a"):
            made.wait("Available", timeout=0.1)
        with self.assertRaises(ZeroDivisionError):
            made.wait(lambda item: 1 / 0)
        with self.assertRaisesRegex(TypeError, "not int"):
            made.wait(3)  # type: ignore[call-overload]
        threading.Timer(0.1, made.delete).start()
        self.assertIsNone(self.maps.wait("a", "deleted", timeout=10))

    def test_a_cache_follows_the_objects(self) -> None:
        self.maps.create({**config_map("a"), "metadata": {"name": "a", "labels": {"x": "y"}}})
        cache = self.maps.cache()
        self.assertEqual([item.name for item in cache], ["a"])
        with cache.changes() as changes:
            self.assertEqual(present(changes.next(timeout=10))[0], "UPSERT")
            made = self.maps.create(config_map("b"))
            self.assertEqual(changes.next(timeout=10), ("UPSERT", made))
            self.assertEqual((len(cache), cache.get("b", "default")), (2, made))
            made.delete()
            kind, item = present(changes.next(timeout=10))
            self.assertEqual((kind, item.name), ("GONE", "b"))
            with self.assertRaises(TimeoutError):
                changes.next(timeout=0.01)
        self.assertEqual([item.name for item in cache.list(labels="x=y")], ["a"])
        self.assertEqual(cache.list(namespace="kube-system"), [])
        self.assertIsNone(cache.get("b", "default"))
        # The namespace is that of the view, unless one is given.
        self.assertEqual(present(cache.get("a")).name, "a")
        self.assertIsNone(cache.get("a", "kube-system"))
        everywhere = self.cluster.view("configmaps").cache()
        self.assertIsNone(everywhere.get("a"))
        self.assertEqual(present(everywhere.get("a", "default")).name, "a")
        self.assertEqual(present(self.cluster.view("namespaces").cache().get("default")).name, "default")

    def test_relations(self) -> None:
        owner = self.maps.create(config_map("owner"))
        reference: OwnerReference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid}
        child = self.maps.create({"metadata": {"name": "child", "ownerReferences": [reference]}})
        self.assertEqual(child.owners(), [owner])
        self.assertEqual(owner.children(self.maps), [child])
        event: Event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "ConfigMap", "name": "owner", "namespace": "default",
                 "uid": owner.uid}, "reason": "Tested", "type": "Normal"}
        self.cluster.view("events", "default").create(event)
        self.assertEqual([one.field("reason") for one in owner.events()], ["Tested"])

    def test_scale(self) -> None:
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "any"}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        data = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
        made = self.cluster.create(data)
        self.assertEqual(made.scale(3), 3)
        for wrong in (-1, 2**31, 2**80):
            with self.assertRaisesRegex(longshore.InvalidError, f"0 to 2147483647, not {wrong}"):
                made.scale(wrong)
        self.assertEqual(made.fetch().field("spec", "replicas"), 3)

    def test_objects_of_a_connection_are_not_pickled(self) -> None:
        made = self.maps.create(config_map("a"))
        for value in [self.cluster, self.maps, made]:
            with self.assertRaisesRegex(TypeError, "cannot be pickled"):
                pickle.dumps(value)
        self.assertEqual(pickle.loads(pickle.dumps(made.raw)), made.raw)

    def test_only_pods_have_logs(self) -> None:
        with self.assertRaisesRegex(longshore.KubeError, "Pod"):
            self.maps.create(config_map("a")).logs()


class Asyncio(unittest.IsolatedAsyncioTestCase):
    """The same operations with asyncio."""

    embedded: longshore.EmbeddedCluster

    @classmethod
    def setUpClass(cls) -> None:
        cls.embedded = longshore.EmbeddedCluster(pods=False)
        cls.addClassCleanup(cls.embedded.stop)

    async def asyncSetUp(self) -> None:
        self.cluster = aio.Cluster(kubeconfig=self.embedded.kubeconfig)
        self.addCleanup(self.cluster.close)
        self.maps = await self.cluster.view("configmaps", "default")
        await self.maps.delete_all()

    async def test_objects(self) -> None:
        self.assertIsInstance(self.cluster, aio.Cluster)
        made = await self.cluster.create(config_map("a"))
        self.assertEqual(await self.maps.fetch("a"), made)
        changed = await made.patch({"data": {"x": "y"}})
        self.assertEqual((await made.fetch()).field("data", "x"), "y")
        self.assertEqual(await self.maps.count(), 1)
        self.assertEqual([item.name async for item in self.maps], ["a"])
        self.assertEqual([item.name async for item in self.maps.filter(labels="a=b")], [])
        self.assertEqual(await self.maps.list(), [changed])
        manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
        self.assertEqual([item.name for item in await self.cluster.apply(manifest)], ["b"])
        self.assertIsNone(await changed.delete())  # type: ignore[func-returns-value]
        with self.assertRaises(LookupError):
            await self.maps.fetch("a")

    async def test_many_requests_at_once(self) -> None:
        made = await asyncio.gather(*[self.maps.create(config_map(f"m{index}")) for index in range(100)])
        self.assertEqual(len({item.uid for item in made}), 100)
        self.assertEqual(threading.active_count(), 1)
        self.assertEqual(len([item async for item in self.maps]), 100)

    async def test_watches(self) -> None:
        with await self.maps.watch() as watch:
            with self.assertRaises(TimeoutError):
                await watch.next(timeout=0.01)
            made = await self.maps.create(config_map("a"))
            event = await watch.next(timeout=10)
            self.assertEqual((event.evtype, event.item), ("ADDED", made))
            seen = asyncio.ensure_future(anext(aiter(watch)))
            await asyncio.sleep(0.05)
            self.assertFalse(seen.done())
            await made.delete()
            self.assertEqual((await seen).evtype, "DELETED")
            rest = asyncio.ensure_future(self.collect(watch))
            await asyncio.sleep(0.05)
            watch.close()
            self.assertEqual(await asyncio.wait_for(rest, 10), [])

    async def collect(self, stream: Any) -> list[Any]:
        return [one async for one in stream]

    async def test_a_cancelled_wait_ends(self) -> None:
        made = await self.maps.create(config_map("a"))
        begin = time.monotonic()
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(made.wait("Available"), 0.1)
        waiting = asyncio.ensure_future(made.wait(lambda item: item.field("data", "x") == "y", timeout=10))
        await asyncio.sleep(0.05)
        await made.patch({"data": {"x": "y"}})
        self.assertEqual((await waiting).field("data", "x"), "y")
        self.assertLess(time.monotonic() - begin, 10)

    async def test_the_wrong_kind_of_iteration_is_named(self) -> None:
        maps: Any = self.maps
        cases: list[tuple[Callable[[], object], str]] = [
            (lambda: list(maps), "async for"), (lambda: len(maps), "count"), (lambda: maps[0], "list")
        ]
        for wrong, text in cases:
            with self.assertRaisesRegex(TypeError, text):
                wrong()
        with self.assertRaisesRegex(TypeError, "use for"):
            self.embedded.cluster.view("pods").__aiter__()  # type: ignore[attr-defined]

    async def test_a_cache(self) -> None:
        cache = await self.maps.cache()
        changes = cache.changes()
        made = await self.maps.create(config_map("a"))
        self.assertEqual(await changes.next(timeout=10), ("UPSERT", made))
        self.assertEqual(len(cache), 1)

    async def test_requests_by_path(self) -> None:
        answer = await self.cluster.proxy().request("GET", ["api/v1", "namespaces", "default"], [])
        self.assertEqual(answer["metadata"]["name"], "default")


class Pods(unittest.TestCase):
    """With pods."""

    embedded: longshore.EmbeddedCluster
    cluster: longshore.Cluster
    pods: longshore.View[Pod]
    pod: longshore.Item[Pod]

    @classmethod
    def setUpClass(cls) -> None:
        cls.embedded = longshore.EmbeddedCluster()
        cls.addClassCleanup(cls.embedded.stop)
        cls.cluster = cls.embedded.cluster
        cls.pods = cls.cluster.view("pods", "default")
        cls.pod = cls.pods.create(sleeper("main", "echo ready; exec sleep 60")).wait("ready", timeout=60)

    def test_logs(self) -> None:
        pod = self.pods.create(sleeper("talker", "echo one; echo two; echo three"))
        pod.wait("finished", timeout=60)
        self.assertEqual(list(pod.logs()), ["one", "two", "three"])
        self.assertEqual(list(pod.logs(follow=True, tail_lines=1)), ["three"])
        self.assertEqual(list(pod.logs(all_containers=True, tail_lines=1)), [("main", "three")])
        with self.assertRaises(longshore.APIError):
            pod.logs(container="missing")
        with self.pod.logs(follow=True) as lines:
            self.assertEqual(next(lines), "ready")
            with self.assertRaises(TimeoutError):
                lines.next(timeout=0.05)

    def test_exec(self) -> None:
        output = self.pod.exec(["sh", "-c", "cat; echo problem >&2; exit 3"], input=b"some input\n")
        self.assertEqual(output, longshore.Output(3, b"some input\n", b"problem\n"))
        self.assertEqual(output.text, "some input\n")
        session = self.pod.open_exec(["cat"])
        session.write(b"hello")
        self.assertEqual(session.read(), b"hello")
        session.close_input()
        self.assertEqual((session.read(), session.wait()), (b"", 0))
        # The exit code is kept.
        self.assertEqual(session.wait(), 0)

    def test_files_are_copied(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "a.txt"), Path(folder, "b.txt")
            source.write_text("content")
            self.pod.copy_in(source, f"{folder}/inside.txt")
            self.pod.copy_out(f"{folder}/inside.txt", target)
            self.assertEqual(target.read_text(), "content")

    def test_a_port_is_forwarded(self) -> None:
        server = "exec python3 -m http.server --bind $POD_IP 18431"
        address: EnvVar = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        pod = self.pods.create(sleeper("web", server, [address]))
        pod.wait(lambda pod: pod.field("status", "phase") == "Running", timeout=60)
        with pod.port_forward(18431) as forward:
            url = f"http://127.0.0.1:{forward.local_port}/"
            deadline = time.monotonic() + 30
            while True:
                try:
                    with urllib.request.urlopen(url, timeout=10) as answer:
                        self.assertEqual(answer.status, 200)
                    break
                except OSError:
                    self.assertLess(time.monotonic(), deadline, forward.problems[-1:])
                    time.sleep(0.05)

    def test_a_pod_is_evicted(self) -> None:
        pod = self.pods.create(sleeper("short", "exec sleep 60"))
        pod.wait("ready", timeout=60)
        pod.evict(grace_seconds=0)
        pod.wait("deleted", timeout=60)

    def test_asyncio_reads_logs_and_runs_commands(self) -> None:
        async def use() -> tuple[str, str]:
            async with aio.Cluster(kubeconfig=self.embedded.kubeconfig) as cluster:
                pods = await cluster.view("pods", "default")
                pod = await pods.fetch("main")
                output = await pod.exec(["echo", "hello"])
                lines = await pod.logs(follow=True)
                return output.text, await anext(aiter(lines))

        self.assertEqual(asyncio.run(use()), ("hello\n", "ready"))


if __name__ == "__main__":
    unittest.main()
