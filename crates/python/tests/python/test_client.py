"""The client: objects, views, watches, errors."""

import threading
import time
import unittest

import longshore

from pods import WithCluster


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


class Client(WithCluster):
    def test_a_life(self):
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
        self.assertIsNone(changed.delete())
        self.assertIsNone(changed.delete())
        with self.assertRaises(LookupError) as raised:
            maps.fetch("a")
        self.assertIsInstance(raised.exception, longshore.APIError)
        self.assertEqual((raised.exception.status_code, raised.exception.reason), (404, "NotFound"))
        self.assertEqual(raised.exception.details["name"], "a")

    def test_manifests(self):
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

    def test_many(self):
        for index in range(1_100):
            self.cluster.create(config_map(f"m{index:04}"))
        names = [item.name for item in self.cluster.view("cm", "default")]
        self.assertEqual(names, [f"m{index:04}" for index in range(1_100)])

    def test_watches(self):
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

    def test_threads_do_not_wait_for_each_other(self):
        maps = self.cluster.view("configmaps", "default")
        seen = []

        def follow():
            with maps.watch() as watch:
                started.set()
                seen.append(next(iter(watch)).item.name)

        started = threading.Event()
        follower = threading.Thread(target=follow)
        follower.start()
        started.wait(10)
        # It holds nothing that this needs.
        begin = time.monotonic()
        self.assertEqual(list(maps.filter(labels="x=y")), [])
        self.cluster.create(config_map("a"))
        follower.join(30)
        self.assertEqual(seen, ["a"])
        self.assertLess(time.monotonic() - begin, 30)

    def test_errors(self):
        cluster = self.cluster
        cluster.create(config_map("a"))
        for ask, error, text in [
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
            (lambda: cluster.view("cm", "default").patch("a", {}, kind="other"), ValueError, "strategic, merge or json"),
            (lambda: longshore.Cluster("http://a", context="b"), TypeError, "one of them"),
            (lambda: longshore.Cluster(kubeconfig="/nonexistent"), longshore.ConfigError, "/nonexistent"),
            (lambda: list(longshore.Cluster("http://localhost:1").view("pods")), ConnectionError, "localhost:1"),
        ]:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                ask()
        cluster.close()
        self.assertTrue(cluster.closed)
        with self.assertRaises(longshore.ClosedError):
            cluster.create(config_map("z"))


class Embedded(unittest.TestCase):
    def test_others_reach_it(self):
        with longshore.EmbeddedCluster(pods=False) as embedded:
            with longshore.Cluster(kubeconfig=embedded.kubeconfig) as cluster:
                self.assertEqual(cluster.url.rstrip("/"), embedded.url.rstrip("/"))
                self.assertIn("default", [item.name for item in cluster.view("namespaces")])
        self.assertFalse(embedded.kubeconfig.exists())
        embedded.stop()

    def test_a_folder_of_another(self):
        with longshore.EmbeddedCluster(pods=False) as one:
            folder = one.kubeconfig.parent
            with self.assertRaisesRegex(longshore.EmbeddedError, "another process uses the folder"):
                longshore.EmbeddedCluster(pods=False, data_dir=folder)


if __name__ == "__main__":
    unittest.main()
