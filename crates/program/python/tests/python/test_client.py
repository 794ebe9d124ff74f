"""The client: objects, views, watches, errors."""

import tempfile
import threading
import time
import unittest
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import longshore
from longshore.types import ConfigMap

from pods import WithCluster, present


def config_map(name: str, **data: Any) -> ConfigMap:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


class Client(WithCluster):
    def test_an_object_is_created_read_changed_and_deleted(self) -> None:
        made = self.cluster.create(config_map("a", colour="red"))
        self.assertEqual((made.name, made.namespace, made.kind), ("a", "default", "ConfigMap"))
        maps = self.cluster.view("configmaps", "default")
        self.assertEqual(maps.fetch("a"), made)
        changed = made.patch({"data": {"colour": "blue"}, "metadata": {"labels": {"a": "b"}}})
        self.assertNotEqual(changed, made)
        self.assertEqual(changed.field("data", "colour"), "blue")
        self.assertIsNone(changed.field("data", "nothing"))
        self.assertEqual(changed.labels, {"a": "b"})
        self.assertEqual(made.fetch(), changed)
        self.assertEqual(changed.raw["metadata"]["uid"], made.uid)
        self.assertEqual([item.name for item in maps.filter(labels="a=b")], ["a"])
        self.assertEqual([item.name for item in maps.filter(labels={"a": "c"})], [])
        self.assertEqual([item.name for item in maps.filter(fields={"metadata.name": "a"})], ["a"])
        self.assertIsNone(changed.delete())  # type: ignore[func-returns-value]
        self.assertIsNone(changed.delete())  # type: ignore[func-returns-value]
        with self.assertRaises(longshore.APIError) as raised:
            maps.fetch("a")
        self.assertIsInstance(raised.exception, LookupError)
        self.assertEqual((raised.exception.status_code, raised.exception.reason), (404, "NotFound"))
        self.assertEqual(present(raised.exception.details)["name"], "a")

    def test_manifests(self) -> None:
        text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\ndata: {a: '%s'}\n"
        made = self.cluster.create("---\n".join(text % (name, 1) for name in "ab"))
        self.assertEqual([item.name for item in made], ["a", "b"])
        applied = self.cluster.apply(text % ("c", 1))
        self.assertEqual([item.name for item in applied], ["c"])
        self.cluster.apply(config_map("c", a="1"), manager="owner")
        with self.assertRaises(longshore.ConflictError):
            self.cluster.apply(config_map("c", a="2"), manager="other")
        taken = self.cluster.apply(config_map("c", a="2"), manager="other", force=True)
        self.assertEqual(taken.field("data", "a"), "2")

    def test_iteration_reads_all_pages(self) -> None:
        for index in range(1_100):
            self.cluster.create(config_map(f"m{index:04}"))
        names = [item.name for item in self.cluster.view("cm", "default")]
        self.assertEqual(names, [f"m{index:04}" for index in range(1_100)])

    def test_positions_and_slices(self) -> None:
        for index in range(510):
            self.cluster.create(config_map(f"m{index:03}"))
        maps = self.cluster.view("configmaps", "default")
        names = [item.name for item in maps]
        for part in [slice(3), slice(1, 4), slice(-2, None), slice(None, -500, 3), slice(2, 9, 2), slice(None, None, -1), slice(2**70), slice(-2**70, 2)]:
            self.assertEqual([item.name for item in maps[part]], names[part], part)
        self.assertEqual([maps[0].name, maps[-1].name, maps[505].name], ["m000", "m509", "m505"])
        for beyond in (510, -511, 2**70):
            with self.assertRaises(IndexError):
                maps[beyond]
        with self.assertRaisesRegex(TypeError, "not str: fetch"):
            maps["m000"]  # type: ignore[call-overload]

    def test_the_length_of_a_view_is_the_number_of_objects(self) -> None:
        maps = self.cluster.view("configmaps", "default")
        self.assertEqual(len(maps), 0)
        for index in range(510):
            labels = {"all": "yes", "odd": str(index % 2)}
            self.cluster.create({**config_map(f"m{index}"), "metadata": {"name": f"m{index}", "labels": labels}})
        everywhere = len(self.cluster.view("configmaps"))
        others = len(self.cluster.view("configmaps", "kube-system"))
        self.assertEqual((len(maps), everywhere - others), (510, 510))
        self.assertEqual((len(maps.filter(labels="odd=1")), len(maps.filter(labels="all"))), (255, 510))
        self.assertEqual(len(maps.filter(labels="odd=2")), 0)
        # A view is always true. Evaluating it sends no request.
        self.assertTrue(maps.filter(labels="odd=2"))
        self.cluster.close()
        self.assertTrue(maps)
        with self.assertRaises(longshore.ClosedError):
            len(maps)

    def test_an_object_without_a_namespace_is_created_in_the_default_namespace(self) -> None:
        text = self.embedded.kubeconfig.read_text()
        self.assertIn("namespace: default", text)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "config")
            path.write_text(text.replace("namespace: default", "namespace: kube-public"))
            path.chmod(0o600)
            cluster = longshore.Cluster(kubeconfig=path)
        with cluster:
            bare: ConfigMap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
            manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n---\n" \
                "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
            self.assertEqual(cluster.create(bare).namespace, "kube-public")
            self.assertEqual(cluster.apply(bare).namespace, "kube-public")
            self.assertEqual([item.namespace for item in cluster.create(manifest)], ["kube-public", None])
            self.assertEqual([item.namespace for item in cluster.apply(manifest)], ["kube-public", None])
            # A namespace argument takes precedence.
            self.assertEqual(cluster.create(bare, "shop").namespace, "shop")
            self.assertEqual(cluster.create(config_map("a")).namespace, "default")
            self.assertEqual([item.namespace for item in cluster.apply(manifest, "shop")], ["shop", None])
        bare["metadata"]["name"] = "c"
        self.assertEqual(self.cluster.create(bare).namespace, "default")

    def test_watches(self) -> None:
        maps = self.cluster.view("configmaps", "default")
        with maps.watch() as watch:
            with self.assertRaises(TimeoutError):
                watch.next(timeout=0.05)
            made = self.cluster.create(config_map("a"))
            made.patch({"data": {"x": "y"}})
            made.delete()
            kinds = [watch.next(timeout=10).evtype for _ in range(3)]
        self.assertEqual(kinds, [longshore.WatchEvent.ADDED, "MODIFIED", "DELETED"])
        with self.assertRaises(longshore.ClosedError):
            watch.next(timeout=1)

    def test_a_watch_that_is_read_late_has_all_changes_in_their_order(self) -> None:
        maps = self.cluster.view("configmaps", "default")
        made = self.cluster.create(config_map("a"))
        with maps.watch() as watch:
            versions = []
            # More than are read ahead.
            for number in range(1500):
                made = made.patch({"data": {"x": str(number)}})
                versions.append(made.version)
            seen = [present(watch.next(timeout=10).item).version for _ in range(700)]
            # Some have arrived and are not taken.
            seen += [present(event.item).version for _, event in zip(range(800), watch)]
        self.assertEqual(seen, versions)
        self.assertEqual(list(watch), [])

    def test_a_watch_of_large_objects_that_is_read_late_has_all_changes(self) -> None:
        # Together larger than what is read ahead.
        names = [f"large-{number:02}" for number in range(24)]
        with self.cluster.view("configmaps", "default").watch() as watch:
            for name in names:
                self.cluster.create({**config_map(name), "data": {"text": "x" * 500_000}})
            seen = [present(watch.next(timeout=10).item).name for _ in names]
        self.assertEqual(seen, names)

    def test_a_waiting_watch_does_not_block_other_threads(self) -> None:
        maps = self.cluster.view("configmaps", "default")
        seen: list[str] = []

        def follow() -> None:
            with maps.watch() as watch:
                started.set()
                seen.append(present(next(iter(watch)).item).name)

        started = threading.Event()
        follower = threading.Thread(target=follow)
        follower.start()
        started.wait(10)
        # The waiting thread holds no lock that these requests need.
        begin = time.monotonic()
        self.assertEqual(list(maps.filter(labels="x=y")), [])
        self.cluster.create(config_map("a"))
        follower.join(30)
        self.assertEqual(seen, ["a"])
        self.assertLess(time.monotonic() - begin, 30)

    def test_errors(self) -> None:
        cluster = self.cluster
        cluster.create(config_map("a"))
        other: Any = "other"
        cases: list[tuple[Callable[[], object], type[Exception], str]] = [
            (lambda: cluster.create(config_map("a")), longshore.AlreadyExistsError, "already exists"),
            (lambda: cluster.create({"apiVersion": "v1", "kind": "Nothing"}), longshore.KubeError, "Nothing"),
            (lambda: cluster.create({"kind": "ConfigMap"}), longshore.KubeError, "apiVersion"),
            (lambda: cluster.create({"a": object()}), TypeError, "only what JSON has"),
            (lambda: cluster.create(config_map("b"), "kube-system"), longshore.NamespaceError, "kube-system"),
            (lambda: cluster.view("nothings"), longshore.KubeError, "no kind"),
            (lambda: cluster.view("pods").fetch("a"), longshore.NamespaceError, "namespace"),
            (lambda: cluster.view("nodes", "default"), longshore.NamespaceError, "node"),
            (lambda: cluster.view("pods").filter(labels=""), ValueError, "empty selector"),
            (lambda: cluster.view("pods").filter(labels={}), ValueError, "empty selector"),
            (lambda: cluster.view("cm", "default").patch("a", {}, kind=other), ValueError, "strategic, merge, json or apply"),
            (lambda: longshore.Cluster("http://a", context="b"), TypeError, "one of them"),
            (lambda: longshore.Cluster(kubeconfig="/nonexistent"), longshore.ConfigError, "/nonexistent"),
            (lambda: list(longshore.Cluster("http://localhost:1").view("pods")), ConnectionError, "localhost:1"),
        ]
        for call, error, text in cases:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                call()
        cluster.close()
        self.assertTrue(cluster.closed)
        with self.assertRaises(longshore.ClosedError):
            cluster.create(config_map("z"))


class Embedded(unittest.TestCase):
    def test_other_clients_connect_with_the_kubeconfig(self) -> None:
        with longshore.EmbeddedCluster(pods=False) as embedded:
            with longshore.Cluster(kubeconfig=embedded.kubeconfig) as cluster:
                self.assertEqual(cluster.url.rstrip("/"), embedded.url.rstrip("/"))
                self.assertIn("default", [item.name for item in cluster.view("namespaces")])
        self.assertFalse(embedded.kubeconfig.exists())
        embedded.stop()

    def test_repr_shows_the_url_and_no_secret(self) -> None:
        with longshore.EmbeddedCluster(pods=False) as embedded:
            self.assertEqual(repr(embedded), f"<EmbeddedCluster at {embedded.url}>")
            self.assertRegex(embedded.url, r"\Ahttps://127\.0\.0\.1:\d+\Z")
        self.assertEqual(repr(embedded), f"<EmbeddedCluster at {embedded.url}, stopped>")

    def test_a_manual_clock(self) -> None:
        start = datetime(2026, 1, 1, 4, tzinfo=timezone(timedelta(hours=1)))
        with longshore.EmbeddedCluster(pods=False, clock=start) as embedded:
            self.assertEqual(embedded.now, start)
            self.assertEqual(embedded.advance(90.5), start + timedelta(seconds=90.5))
            maps = embedded.cluster.view("configmaps", "default")
            item = maps.create({"metadata": {"name": "a"}})
            self.assertEqual(item.field("metadata", "creationTimestamp"), "2026-01-01T03:01:30Z")
            with self.assertRaisesRegex(ValueError, "seconds must be .* 0 or above, but is -1"):
                embedded.advance(-1)
            with self.assertRaisesRegex(ValueError, "timeout must be .* 0 or above, but is NaN"):
                embedded.settle(float("nan"))
        with longshore.EmbeddedCluster(pods=False, clock="manual") as embedded:
            self.assertEqual(embedded.now, embedded.advance(0))
        with longshore.EmbeddedCluster(pods=False) as embedded:
            with self.assertRaisesRegex(ValueError, "with a manual clock"):
                embedded.advance(1)
        with longshore.EmbeddedCluster(pods=False) as embedded:
            with self.assertRaisesRegex(ValueError, "with a manual clock"):
                embedded.settle()
        with self.assertRaisesRegex(ValueError, "tomorrow"):
            longshore.EmbeddedCluster(pods=False, clock="tomorrow")

    def test_controllers_settle_after_an_advance(self) -> None:
        pod = {"restartPolicy": "Never", "containers": [
            {"name": "main", "image": "any", "command": ["true"]}]}
        with longshore.EmbeddedCluster(clock="2026-01-01T02:59:00Z") as embedded:
            cluster = embedded.cluster
            cluster.create({
                "apiVersion": "batch/v1", "kind": "CronJob",
                "metadata": {"name": "a", "namespace": "default"},
                "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {
                    "template": {"spec": pod}}}},
            })
            embedded.settle()
            self.assertEqual(len(list(cluster.view("jobs", "default"))), 0)
            for count in range(1, 4):
                embedded.advance(60)
                embedded.settle(timeout=60)
                self.assertEqual(len(list(cluster.view("pods", "default"))), count)
            for timeout in [-1, float("nan")]:
                with self.assertRaises(ValueError):
                    embedded.settle(timeout)

    def test_a_data_dir_in_use_is_rejected(self) -> None:
        with longshore.EmbeddedCluster(pods=False) as one:
            folder = one.kubeconfig.parent
            with self.assertRaisesRegex(longshore.EmbeddedError, "another process uses the folder"):
                longshore.EmbeddedCluster(pods=False, data_dir=folder)


if __name__ == "__main__":
    unittest.main()
