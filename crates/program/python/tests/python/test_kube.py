"""`longshore.kube`: what the tests of the library kube 0.10 do not test."""

from __future__ import annotations

import copy
import datetime
import importlib.util
import ipaddress
import pickle
import subprocess
import sys
import threading
import time
import unittest
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import longshore
from longshore import aio

HAS_PYRSISTENT = importlib.util.find_spec("pyrsistent") is not None
if TYPE_CHECKING or HAS_PYRSISTENT:
    from longshore import kube

from pods import pod, present


class Missing(unittest.TestCase):
    def test_without_pyrsistent_the_error_says_how_to_install_it(self) -> None:
        code = (
            "import sys; sys.modules['pyrsistent'] = None\n"
            "try: import longshore.kube\n"
            "except ImportError as error: print(error)\n"
        )
        outcome = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, text=True)
        self.assertEqual(
            outcome.stdout, "longshore.kube needs the library pyrsistent: pip install 'pyrsistent>=0.20'\n"
        )


@unittest.skipUnless(HAS_PYRSISTENT, "pyrsistent is not installed")
class Kube(unittest.TestCase):
    """One API server for the tests of a class; each test has its own namespace."""

    embedded: longshore.EmbeddedCluster
    cluster: kube.Cluster

    @classmethod
    def setUpClass(cls) -> None:
        cls.embedded = longshore.EmbeddedCluster(pods=False)
        cls.addClassCleanup(cls.embedded.stop)
        cls.cluster = kube.Cluster.from_kubeconfig(cls.embedded.kubeconfig)
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self) -> None:
        space = self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "test-"}})
        self.namespace = space.meta.name

    def secret(self, name: str = "a", **fields: Any) -> Any:
        data = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **fields}
        return self.cluster.create(data, self.namespace)

    def secrets(self) -> kube.SecretView:
        return kube.SecretView(self.cluster, self.namespace)

    def with_status(self, data: dict[str, Any], status: dict[str, Any]) -> Any:
        """Creates an object and sets its status, as a controller does."""
        made = self.cluster.create(data, self.namespace)
        link = made.meta.link
        raw = self.cluster.proxy.patch(f"{link}/status", patch={"status": status}, kind="merge")
        return type(made)(self.cluster, raw)

    def workload(self, kind: str, status: dict[str, Any]) -> Any:
        selector = {"app": "a"}
        containers = [{"name": "main", "image": "any"}]
        spec = {
            "selector": selector if kind == "ReplicationController" else {"matchLabels": selector},
            "template": {"metadata": {"labels": selector}, "spec": {"containers": containers}},
        }
        version = "v1" if kind == "ReplicationController" else "apps/v1"
        return self.with_status({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}, status)


class Clusters(Kube):
    def test_all_names_are_exported(self) -> None:
        for name in kube.__all__:
            self.assertTrue(hasattr(kube, name), name)
        self.assertEqual(len(kube.__all__), 38)

    def test_a_closed_cluster_rejects_requests(self) -> None:
        with kube.Cluster.from_kubeconfig(self.embedded.kubeconfig) as cluster:
            self.assertTrue(list(cluster.namespaces))
        requests: list[Callable[[], object]] = [
            lambda: list(cluster.pods), lambda: cluster.proxy.get("api/v1"), lambda: cluster.nodes.watch()
        ]
        for request in requests:
            with self.assertRaises(longshore.ClosedError):
                request()

    def test_an_unreachable_cluster_is_an_api_error(self) -> None:
        cluster = kube.Cluster("http://localhost:1")
        self.assertEqual(cluster.api_base_url, "http://localhost:1/")
        with self.assertRaisesRegex(kube.APIError, "localhost:1") as raised:
            list(cluster.pods)
        self.assertIsNone(raised.exception.status_code)

    def test_create_rejects_bad_objects(self) -> None:
        cases: list[tuple[dict[str, Any], str | None, type[Exception], str]] = [
            ({}, None, kube.KubeError, "has no kind"),
            ({"kind": "PodList"}, "a", kube.KubeError, "unknown kind 'PodList'"),
            ({"kind": "Pod"}, None, kube.NamespaceError, "pods are in a namespace"),
            ({"kind": "Node"}, "a", kube.NamespaceError, "nodes have no namespace"),
            ({"kind": "Pod", "metadata": {"namespace": "b"}}, "a", kube.NamespaceError, "'b'"),
            ({"kind": "Secret", "metadata": {"name": "A!"}}, self.namespace, kube.APIError, "metadata.name"),
        ]
        for data, namespace, error, text in cases:
            with self.subTest(text), self.assertRaisesRegex(error, text):
                self.cluster.create(data, namespace)

    def test_there_are_views_and_items_of_all_kinds(self) -> None:
        for kind in kube.Kind:
            implementation = self.cluster.kindimpl(kind)
            self.assertIs(implementation.kind, kind)
            self.assertEqual(implementation.__name__.removesuffix("View").removesuffix("Item"), kind.value.removesuffix("List"))
            if kind.value.endswith("List"):
                view = getattr(self.cluster, implementation.resource)
                self.assertIsInstance(view, kube.ViewABC)
                self.assertEqual(list(implementation(self.cluster).filter(labels="no=such")), [])
                self.assertIn(view.api_path, implementation.api_paths)


class Bridge(Kube):
    """A program can use both APIs by one connection."""

    def test_from_and_to_a_cluster(self) -> None:
        self.secret("a")
        with longshore.Cluster(kubeconfig=self.embedded.kubeconfig) as native:
            cluster = kube.Cluster.of(native)
            self.assertIs(cluster.native, native)
            self.assertEqual(cluster.secrets.fetch("a", namespace=self.namespace).meta.name, "a")
        # One connection.
        with self.assertRaises(longshore.ClosedError):
            list(cluster.secrets)
        for other in [self.embedded, self.embedded.cluster, self.cluster, aio.Cluster(kubeconfig=self.embedded.kubeconfig)]:
            found = kube.Cluster.of(other)  # type: ignore[arg-type]
            self.assertEqual(kube.SecretView(found, self.namespace).fetch("a").meta.name, "a")
        self.assertEqual(self.cluster.native.view("secrets", self.namespace).fetch("a").name, "a")
        for wrong in [None, "east", 3, kube]:
            with self.assertRaisesRegex(TypeError, "a longshore.Cluster is needed"):
                kube.Cluster.of(wrong)  # type: ignore[arg-type]

    def test_the_resolver_accepts_both(self) -> None:
        made = self.cluster.create(pod("a", labels={"job": "x"}, namespace=self.namespace))
        self.cluster.proxy.patch(made.meta.link + "/status", patch={"status": pod("a")["status"]}, kind="merge")
        for client in [self.cluster, self.cluster.native]:
            resolver = longshore.KubernetesClusterResolver({"worker": ["job=x"]}, override_client=client, namespace=self.namespace)
            self.assertEqual(resolver.cluster_spec().as_dict(), {"worker": ["10.1.2.3:8470"]})
            self.assertEqual(resolver.wait({"worker": 1}, timeout=10).as_dict(), {"worker": ["10.1.2.3:8470"]})


class Proxy(Kube):
    def test_the_methods(self) -> None:
        proxy = self.cluster.proxy
        path = ["api/v1", "namespaces", self.namespace, "configmaps"]
        data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}}
        made = proxy.post(*path, json=data)
        with self.assertRaises(TypeError):
            made["data"]["a"] = "2"
        changed = proxy.put(*path, "a", json={**data, "data": {"a": "2"}})
        self.assertEqual(changed["data"], {"a": "2"})
        merged = proxy.patch(*path, "a", patch={"data": {"b": "3"}}, kind="merge")
        self.assertEqual(dict(merged["data"]), {"a": "2", "b": "3"})
        removed = proxy.patch(*path, "a", patch=[{"op": "remove", "path": "/data/a"}], kind="json")
        self.assertEqual(dict(removed["data"]), {"b": "3"})
        listed = proxy.get(*path, labelSelector="x=y", limit=1)
        self.assertEqual(len(listed["items"]), 0)
        self.assertEqual(proxy.delete(*path, "a", json={"gracePeriodSeconds": 0})["status"], "Success")
        self.assertEqual(proxy.urljoin("api/v1", "pods"), f"{proxy.base_url}api/v1/pods")

    def test_errors_have_the_fields_of_the_status(self) -> None:
        with self.assertRaises(kube.APIError) as raised:
            self.cluster.proxy.get("api/v1", "namespaces", "missing")
        error = raised.exception
        self.assertEqual((error.status_code, error.reason, error.response.status_code), (404, "NotFound", 404))
        self.assertEqual(error.response.json()["message"], error.server_message)
        self.assertIn('namespaces "missing" not found', str(error))
        self.assertIn("404", str(error))
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.details), (str(error), error.details))

    def test_a_watch_matches_fields_and_has_timeouts(self) -> None:
        path = ["api/v1", "namespaces", self.namespace, "secrets"]
        version = self.cluster.proxy.get(*path)["metadata"]["resourceVersion"]
        with self.cluster.proxy.watch(*path, version=version, fields={"metadata.name": "b"}) as watch:
            for timeout in [0, 0.05]:
                with self.assertRaises(TimeoutError):
                    watch.next(timeout=timeout)
            self.secret("a")
            self.secret("b")
            event = watch.next(timeout=10)
            self.assertEqual((event["type"], event["object"]["metadata"]["name"]), ("ADDED", "b"))
            threading.Timer(0.1, watch.close).start()
            self.assertEqual(list(watch), [])


class Views(Kube):
    def test_selectors(self) -> None:
        self.secret("a", metadata={"name": "a", "labels": {"app": "x"}})
        self.secret("b")
        cases: list[dict[str, Any]] = [
            {"labels": {"app": "x"}}, {"labels": "app in (x,y)"}, {"fields": {"metadata.name": "a"}}
        ]
        for selects in cases:
            self.assertEqual([item.meta.name for item in self.secrets().filter(**selects)], ["a"])
        for empty in ["", {}, " "]:
            for which in ["labels", "fields"]:
                with self.assertRaisesRegex(ValueError, "empty"):
                    nothing: dict[str, Any] = {which: empty}
                    self.secrets().filter(**nothing)

    def test_a_value_of_a_selector_does_not_become_a_selector(self) -> None:
        self.secret("a", metadata={"name": "a", "labels": {"app": "x", "tier": "y"}})
        for labels in [{"app": "x,tier=y"}, {"app": "x tier"}, {"app=x,tier": "y"}, {"!app": ""}]:
            with self.assertRaisesRegex(ValueError, "is no"):
                self.secrets().filter(labels=labels)
        self.assertEqual(list(self.secrets().filter(fields={"metadata.name": "a,metadata.namespace=" + self.namespace})), [])
        self.assertEqual(len(list(self.secrets().filter(fields={"metadata.name": "a"}))), 1)

    def test_fetch(self) -> None:
        made = self.secret("a")
        self.assertEqual(self.secrets().fetch("a"), made)
        self.assertEqual(self.cluster.secrets.fetch("a", namespace=self.namespace), made)
        cases: list[tuple[Callable[[], object], type[Exception]]] = [
            (lambda: self.secrets().fetch("missing"), LookupError),
            (lambda: self.secrets().fetch(""), kube.KubeError),
            (lambda: self.cluster.secrets.fetch("a"), kube.NamespaceError),
            (lambda: self.cluster.nodes.fetch("a", namespace="b"), kube.NamespaceError),
            (lambda: kube.NodeView(self.cluster, "b"), kube.NamespaceError),
        ]
        for call, error in cases:
            with self.assertRaises(error):
                call()

    def test_all_pages_are_read(self) -> None:
        path = ["api/v1", "namespaces", self.namespace, "secrets"]
        for index in range(600):
            self.cluster.proxy.post(*path, json={"metadata": {"name": f"s{index:03}"}})
        self.assertEqual(len({item.meta.uid for item in self.secrets()}), 600)

    def test_a_watch(self) -> None:
        with self.secrets().watch() as watch:
            with self.assertRaises(TimeoutError):
                watch.next(timeout=0)
            made = self.secret("a")
            made.meta.labels.set("a", "b")
            made.delete()
            events = [watch.next(timeout=10) for _ in range(3)]
            for (evtype, item), expected in zip(events, [kube.WatchEvent.ADDED, kube.WatchEvent.MODIFIED, kube.WatchEvent.DELETED]):
                self.assertIs(evtype, expected)
                self.assertEqual(item.meta.uid, made.meta.uid)
            waiting = threading.Timer(0.1, watch.close)
            waiting.start()
            # Ends when another thread closes it.
            self.assertEqual(list(watch), [])
        with self.assertRaises(StopIteration):
            watch.next(timeout=1)

    def test_after_a_gap_a_watch_has_all_objects(self) -> None:
        kept, gone = self.secret("kept"), self.secret("gone")

        class Event:
            def __init__(self, evtype: str, item: Any = None, items: Any = None) -> None:
                self.evtype, self.item, self.items = evtype, item, items

        natives = {item.name: item for item in self.cluster.proxy.native.view("secrets", self.namespace)}
        events = [Event("ADDED", natives["kept"]), Event("ADDED", natives["gone"]), Event("RESYNC", None, [natives["kept"]])]

        class Watch:
            def next(self, _timeout: float | None) -> Event:
                return events.pop(0)

        from longshore.kube._watch import NativeWatcher

        native: Any = Watch()
        watch = kube.ResourceWatcher(self.cluster, NativeWatcher(native), kube.SecretItem)
        seen = [(event.evtype.name, event.item.meta.name) for event in (watch.next() for _ in range(4))]
        self.assertEqual(seen, [("ADDED", "kept"), ("ADDED", "gone"), ("DELETED", "gone"), ("MODIFIED", "kept")])
        self.assertTrue(kept.meta.uid and gone.meta.uid)


class Items(Kube):
    def test_an_item_is_one_version(self) -> None:
        made = self.secret("a")
        changed = made.meta.labels.set("a/b", "c")
        self.assertEqual(dict(changed.meta.labels), {"a/b": "c"})
        self.assertEqual(dict(made.meta.labels), {})
        self.assertNotEqual(made, changed)
        self.assertEqual(made.fetch(), changed)
        self.assertEqual(len({made, changed, made.fetch()}), 2)
        self.assertEqual(dict(changed.meta.labels.delete("a/b").meta.labels), {})
        with self.assertRaises(TypeError):
            made.raw["a"] = "b"
        with self.assertRaises(TypeError):
            made.raw["metadata"]["name"] = "b"
        self.assertIsNone(made.delete())
        self.assertIsNone(made.delete())
        with self.assertRaises(LookupError):
            made.fetch()
        for key, value in [("not valid!", "c"), ("a", "b c")]:
            with self.assertRaisesRegex(kube.APIError, "^invalid label") as caught:
                changed.meta.labels.set(key, value)
            self.assertIsNone(caught.exception.response)

    def test_a_patch(self) -> None:
        made = self.secret("a", stringData={"a": "1"})
        merged = made.patch({"data": {"b": "Mg=="}}, kind="merge")
        self.assertEqual((merged.data, made.data), ({"a": b"1", "b": b"2"}, {"a": b"1"}))
        self.assertEqual(made.fetch(), merged)
        self.assertEqual(merged.patch([{"op": "remove", "path": "/data/a"}], kind="json").data, {"b": b"2"})
        deployment = self.workload("Deployment", {})
        containers = [{"name": "other", "image": "any"}]
        patched = deployment.patch({"spec": {"template": {"spec": {"containers": containers}}}})
        self.assertEqual([one["name"] for one in patched.spec()["template"]["spec"]["containers"]], ["other", "main"])
        with self.assertRaises(longshore.ConflictError):
            made.patch({"metadata": {"resourceVersion": made.meta.version}, "type": "b"}, kind="merge")
        with self.assertRaises(kube.APIError):
            made.patch({"data": {"b": "not base64"}}, kind="merge")
        with self.assertRaises(longshore.InvalidError):
            made.patch({}, kind="other")

    def test_a_replacement(self) -> None:
        made = self.secret("a", stringData={"a": "1"})
        replaced = made.replace({"data": {"b": "Mg=="}})
        self.assertEqual((replaced.data, replaced.meta.uid), ({"b": b"2"}, made.meta.uid))
        changed = replaced.raw.set("data", {"c": "Mw=="})
        self.assertEqual(replaced.replace(changed).data, {"c": b"3"})
        # The item is an older version now, and so is the data.
        for stale in [changed, {"data": {}}]:
            with self.assertRaises(longshore.ConflictError) as raised:
                replaced.replace(stale)
            self.assertIsInstance(raised.exception, kube.APIError)
            self.assertEqual(raised.exception.status_code, 409)
        newest = made.fetch()
        self.assertEqual(made.replace({"metadata": {"resourceVersion": newest.meta.version}}).data, {})
        made.delete()
        self.secret("a")
        for data in [{}, {"metadata": {"resourceVersion": ""}}]:
            # Another object with the same name.
            with self.assertRaises(longshore.ConflictError):
                made.replace(data)
        for other in [{"kind": "Pod"}, {"metadata": {"name": "b"}}, {"metadata": {"namespace": "b"}}, {"metadata": {"uid": "b"}}]:
            with self.assertRaisesRegex(kube.KubeError, "the data has the"):
                made.replace(other)

    def test_replicas(self) -> None:
        for kind in ["Deployment", "ReplicaSet", "ReplicationController"]:
            with self.subTest(kind):
                item = self.workload(kind, {})
                scaled = item.scale(5)
                self.assertEqual((scaled.spec()["replicas"], scaled), (5, item.fetch()))
                self.assertEqual(item.scale(0).spec()["replicas"], 0)
                for wrong in [-1, 2**31, 1.5, "3", True, None]:
                    with self.assertRaises(longshore.InvalidError):
                        item.scale(wrong)
                with self.assertRaises(LookupError):
                    type(item)(self.cluster, {"metadata": {"name": "missing", "namespace": self.namespace}}).scale(1)
        for other in [kube.PodItem, kube.SecretItem, kube.DaemonSetItem, kube.NodeItem]:
            self.assertFalse(hasattr(other, "scale"), other)

    def test_metadata(self) -> None:
        made = self.secret("a", metadata={"name": "a", "annotations": {"x": "y"}, "finalizers": ["a/b"]})
        meta = made.meta
        self.assertEqual((meta.name, meta.namespace, dict(meta.annotations)), ("a", self.namespace, {"x": "y"}))
        self.assertEqual((meta.finalizers, meta.owners, meta.generation), (["a/b"], [], None))
        self.assertEqual(meta.link, f"/api/v1/namespaces/{self.namespace}/secrets/a")
        self.assertEqual(next(iter(self.secrets())).meta.link, meta.link)
        self.assertEqual(self.workload("Deployment", {}).meta.link, f"/apis/apps/v1/namespaces/{self.namespace}/deployments/a")
        self.assertIsNone(meta.deleted)
        made.delete()
        self.assertIsInstance(made.fetch().meta.deleted, datetime.datetime)

    def test_times_know_their_zone_and_compare_with_times_without_one(self) -> None:
        created = self.secret("a").meta.created
        self.assertEqual(created.utcoffset(), datetime.timedelta(0))
        now = datetime.datetime.now(datetime.timezone.utc)
        bare = now.replace(tzinfo=None) + datetime.timedelta(seconds=2)
        self.assertTrue(created <= now and created < bare and bare > created and created != bare)
        self.assertLess(bare - created, datetime.timedelta(minutes=1))
        self.assertLess(created - bare, datetime.timedelta(0))
        self.assertEqual(copy.deepcopy(created), created)

    def test_a_watch_starts_after_the_version_of_the_item(self) -> None:
        made = self.secret("a")
        self.secret("b")
        changed = made.meta.labels.set("a", "1")
        for item in [made, next(item for item in self.secrets() if item.meta.name == "a")]:
            with item.watch() as watch:
                if item is made:
                    self.assertEqual(watch.next(timeout=10).item, changed)
                self.secrets().fetch("a").meta.labels.set("a", str(time.monotonic()))
                self.assertEqual(watch.next(timeout=10).item.meta.name, "a")

    def test_secrets(self) -> None:
        made = self.secret("a", data={"key": "c2VjcmV0"}, type="kubernetes.io/basic-auth-2")
        self.assertEqual((made.data, made.spec(), made.type.value), ({"key": b"secret"}, {}, "kubernetes.io/basic-auth-2"))
        self.assertEqual((self.secret("b").data, self.secret("c").type), ({}, kube.SecretType.Opaque))
        self.assertNotIn("c2VjcmV0", repr(made))

    def test_workloads(self) -> None:
        replicas = {"replicas": 3, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 4}
        made = self.workload("Deployment", {**replicas, "unavailableReplicas": 2, "updatedReplicas": 3})
        names = ["observed_replicas", "available_replicas", "observed_generation", "unavailable_replicas", "updated_replicas"]
        self.assertEqual([getattr(made, name) for name in names], [3, 1, 4, 2, 3])
        names = ["observed_replicas", "available_replicas", "observed_generation", "fully_labeled_replicas", "ready_replicas"]
        for kind in ["ReplicaSet", "ReplicationController"]:
            made = self.workload(kind, {**replicas, "fullyLabeledReplicas": 2})
            self.assertEqual([getattr(made, name) for name in names], [3, 1, 4, 2, 1])
        numbers = {"currentNumberScheduled": 1, "desiredNumberScheduled": 2, "numberMisscheduled": 3, "numberReady": 4}
        made = self.workload("DaemonSet", numbers)
        names = ["current_number_scheduled", "desired_number_scheduled", "number_misscheduled", "number_ready"]
        self.assertEqual([getattr(made, name) for name in names], [1, 2, 3, 4])

    def test_counts_that_the_api_omits_are_zero(self) -> None:
        """For each count of each kind: without a status, with an empty one, and with the other counts."""
        for kind in ["ReplicaSet", "ReplicationController", "Deployment", "DaemonSet"]:
            item = self.cluster.kindimpl(kube.Kind(kind))
            names = [
                name for base in item.__mro__ for name, value in vars(base).items()
                if isinstance(value, property) and present(value.fget).__annotations__.get("return") in (int, "int")
            ]
            self.assertGreaterEqual(len(names), 4)
            meta = {"name": "a", "namespace": "b"}
            statuses: list[dict[str, Any]] = [{}, {"status": {}}, {"status": None}, {"status": {"conditions": []}}]
            for status in statuses:
                for name in names:
                    with self.subTest(f"{kind}.{name}"):
                        self.assertEqual(getattr(item(self.cluster, {"metadata": meta, **status}), name), 0)
            for value in ["2", 1.5, True, [1]]:
                broken = {"replicas": value, "currentNumberScheduled": value}
                name = "current_number_scheduled" if kind == "DaemonSet" else "observed_replicas"
                with self.assertRaises(kube.StatusError):
                    getattr(item(self.cluster, {"metadata": meta, "status": broken}), name)

    def test_an_absent_status_field_is_named(self) -> None:
        pods = kube.PodItem(self.cluster, pod("a"))
        self.assertEqual((pods.phase, str(pods.ip), str(pods.host_ip)), (kube.PodPhase.Running, "10.1.2.3", "192.168.0.1"))
        bare = kube.PodItem(self.cluster, {"metadata": {"name": "a", "namespace": "b"}})
        for name in ["phase", "ip", "host_ip", "message", "reason", "start_time"]:
            with self.assertRaisesRegex(kube.StatusError, name):
                getattr(bare, name)
        self.assertEqual(list(bare.containers), [])
        unknown = kube.PodItem(self.cluster, {"metadata": {"name": "a"}, "status": {"phase": "Later"}}).phase
        self.assertEqual((unknown.value, unknown == kube.PodPhase("Later"), unknown.name), ("Later", True, "Later"))
        self.assertNotEqual(unknown, kube.PodPhase.Failed)

    def test_nodes(self) -> None:
        status = {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "n"},
                          {"type": "Newer", "address": "x"}, {"type": "ExternalIP", "address": "::1"}],
            "capacity": {"cpu": "1500m", "memory": "2Gi", "pods": "110"},
            "allocatable": {"cpu": "1"},
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        node = kube.NodeItem(self.cluster, {"metadata": {"name": "n"}, "status": status})
        addresses = list(node.addresses)
        self.assertEqual([(one.type.value, one.addr) for one in addresses], [
            ("InternalIP", ipaddress.ip_address("10.0.0.1")), ("Hostname", "n"), ("Newer", "x"),
            ("ExternalIP", ipaddress.ip_address("::1")),
        ])
        self.assertEqual(node.capacity, {"cpu": 1.5, "memory": 2 * 1024**3, "pods": 110})
        self.assertIsInstance(node.capacity["memory"], int)
        self.assertEqual((node.allocatable["cpu"], node.conditions[0]["type"]), (1, "Ready"))
        self.assertEqual(list(kube.NodeItem(self.cluster, {"metadata": {"name": "n"}}).addresses), [])
        with self.assertRaises(kube.StatusError):
            kube.NodeItem(self.cluster, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "2 apples"}}}).capacity

    def test_container_states(self) -> None:
        state = kube.ContainerState({"terminated": {"exitCode": 3, "signal": 9, "startedAt": "2024-05-01T10:00:00Z",
                                                    "finishedAt": "2024-05-01T10:00:01.5Z", "containerID": "x://1"}})
        self.assertEqual((state.state, state.exit_code, state.signal, state.container_id), ("terminated", 3, 9, "x://1"))
        self.assertEqual((state.finished_at - state.started_at).total_seconds(), 1.5)
        waiting = kube.ContainerState({})
        self.assertTrue(waiting.waiting)
        with self.assertRaisesRegex(kube.StatusError, "exit_code"):
            waiting.exit_code
        with self.assertRaisesRegex(ValueError, "unknown state"):
            kube.ContainerState({"paused": {}})

    def test_namespaces(self) -> None:
        space = self.cluster.namespaces.fetch(self.namespace)
        self.assertIs(space.phase, kube.NamespacePhase.Active)
        space.delete()
        space.delete()


if __name__ == "__main__":
    unittest.main()
