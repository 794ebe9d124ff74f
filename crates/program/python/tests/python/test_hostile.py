"""Hostile values and uses: each raises a clear exception and never crashes, hangs or loses data."""

import collections.abc
import gc
import signal
import subprocess
import sys
import threading
import unittest
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import longshore

from pods import WithCluster, present
from test_client import config_map


class HostileError(Exception):
    """Raised by the hostile values."""


class RaisingDict(dict[str, Any]):
    def items(self) -> NoReturn:
        raise HostileError("items")

    def __getitem__(self, key: str) -> NoReturn:
        raise HostileError("getitem")


class RaisingMapping(collections.abc.Mapping[str, Any]):
    def __getitem__(self, key: str) -> NoReturn:
        raise HostileError("getitem")

    def __iter__(self) -> Iterator[str]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


class WrongLength(collections.abc.Sequence[str]):
    """A sequence of three items that reports another length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __getitem__(self, index: Any) -> Any:
        if index > 2:
            raise IndexError
        return "a:1"

    def __len__(self) -> int:
        return self.length


class Unprintable:
    def __str__(self) -> NoReturn:
        raise HostileError("str")

    __repr__ = __str__


def nested(make: Callable[[Any], Any], depth: int) -> Any:
    value = make(None)
    for _ in range(depth):
        value = make(value)
    return value


class Values(WithCluster):
    def assert_rejected(self, error: type[Exception], text: str, *calls: Callable[[], object]) -> None:
        for call in calls:
            with self.subTest(text), self.assertRaisesRegex(error, text) as raised:
                call()
            self.assertNotIn("Panic", type(raised.exception).__name__)
            self.assertLess(len(str(raised.exception)), 20_000)

    def test_nested_and_cyclic_values(self) -> None:
        itself: list[Any] = []
        itself.append(itself)
        mapping: dict[str, Any] = {}
        mapping["a"] = mapping
        create, spec = self.cluster.create, longshore.ClusterSpec
        for value in (itself, mapping, nested(lambda v: [v], 200_000), nested(lambda v: {"a": v}, 200_000)):
            self.assert_rejected(
                ValueError,
                "nested more than|contains itself",
                lambda: create({"apiVersion": "v1", "kind": "ConfigMap", "a": value}),
                lambda: self.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "a": value}),
                lambda: self.cluster.view("cm", "default").patch("a", {"data": value}),
            )
            self.assert_rejected(TypeError, "must be", lambda: spec({"a": [value]}), lambda: spec([value]))

    def test_a_shared_value_is_not_a_cycle(self) -> None:
        shared = {"x": "y"}
        made = self.cluster.create(config_map("a"))
        made = made.patch({"metadata": {"labels": shared, "annotations": shared}})
        self.assertEqual(made.labels, shared)

    def test_numbers_that_json_cannot_represent(self) -> None:
        for number in (float("nan"), float("inf"), -float("inf")):
            self.assert_rejected(ValueError, "only finite", lambda: self.cluster.create(config_map("a", x=number)))
        for number in (2**64, -(2**63) - 1, 10**5000):
            self.assert_rejected(ValueError, "64 bits", lambda: self.cluster.create(config_map("a", x=number)))
        self.assertEqual(list(self.cluster.view("cm", "default")), [])

    def test_numbers_at_the_limits(self) -> None:
        spec = {"containers": [{"name": "main", "image": "a"}], "activeDeadlineSeconds": 2**31 - 1}
        made = self.cluster.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}, "spec": spec}
        )
        self.assertEqual(made.field("spec", "activeDeadlineSeconds"), 2**31 - 1)
        self.assertIs(type(made.field("spec", "activeDeadlineSeconds")), int)

    def test_invalid_strings(self) -> None:
        maps = self.cluster.view("cm", "default")
        lone = "a\ud800"
        self.assert_rejected(
            ValueError,
            "surrogates",
            lambda: self.cluster.create(config_map(lone)),
            lambda: self.cluster.create({lone: 1}),
            lambda: self.cluster.create(lone),
            lambda: self.cluster.view(lone),
            lambda: maps.fetch(lone),
            lambda: maps.filter(labels=lone),
            lambda: maps.filter(labels={lone: "a"}),
            lambda: longshore.ClusterSpec({"a": [lone]}),
            lambda: longshore.ClusterSpec({lone: ["a"]}),
        )
        self.assert_rejected(
            longshore.KubeError,
            "",
            lambda: self.cluster.create(config_map("a\0b")),
            lambda: self.cluster.view("cm\0"),
            lambda: maps.fetch("a\0b"),
            lambda: maps.filter(labels="a=\0"),
            lambda: longshore.Cluster("http://a\0b"),
            lambda: longshore.Cluster(kubeconfig="/a\0b"),
            lambda: longshore.EmbeddedCluster(data_dir="/a\0b"),
        )
        # JSON allows a NUL character in a value.
        self.assertEqual(self.cluster.create(config_map("z", x="a\0b")).field("data", "x"), "a\0b")

    def test_exceptions_of_a_value_propagate(self) -> None:
        maps = self.cluster.view("cm", "default")
        self.assert_rejected(
            HostileError,
            "items|getitem",
            lambda: self.cluster.create({"a": RaisingMapping()}),
            lambda: self.cluster.create(RaisingMapping()),
            lambda: longshore.ClusterSpec(RaisingMapping()),
            lambda: maps.filter(labels=RaisingMapping()),
            lambda: self.cluster.create(RaisingDict(a=1)),
        )

        def generator() -> Iterator[str]:
            yield "a:1"
            raise HostileError("generator")

        self.assert_rejected(HostileError, "generator", lambda: longshore.ClusterSpec({"a": generator()}))

        class Interrupts(RaisingMapping):
            def __getitem__(self, key: str) -> NoReturn:
                raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.cluster.create(Interrupts())

    def test_values_of_other_types(self) -> None:
        class WithCall:
            def __call__(self) -> int:
                return 1

        for value in (Unprintable(), (x for x in "ab"), {1}, b"a", bytearray(b"a"), WithCall(), 1j):
            self.assert_rejected(TypeError, "only what JSON has", lambda: self.cluster.create({"a": value}))
        self.assert_rejected(
            TypeError,
            "key must be a text, not Unprintable",
            lambda: self.cluster.create({Unprintable(): 1}),  # type: ignore[dict-item]
        )
        self.assert_rejected(TypeError, "not Unprintable", lambda: longshore.ClusterSpec({Unprintable(): ["a"]}))
        selectors: list[Any] = [1, Unprintable(), {"a": 1}, {1: "a"}, b"a", None, [("a", "b")]]
        for selector in selectors:
            if selector is not None:
                self.assert_rejected(TypeError, "a selector is", lambda: self.cluster.view("cm").filter(labels=selector))

    def test_sequences_that_report_a_wrong_length(self) -> None:
        for length in (0, 1, 2**40, 2**62):
            made = longshore.ClusterSpec({"a": WrongLength(length)})
            self.assertEqual(made.num_tasks("a"), 3)
            with self.assertRaises((longshore.KubeError, TypeError, ValueError, OverflowError, MemoryError)):
                longshore._native.assemble(WrongLength(length), resolver_options())  # type: ignore[arg-type]
            with self.assertRaises((longshore.KubeError, TypeError, ValueError, OverflowError, MemoryError)):
                longshore._native.assemble([("worker", WrongLength(length))], resolver_options())
        # The client sends a list, which the server rejects for a ConfigMap.
        with self.assertRaisesRegex(longshore.APIError, "array"):
            self.cluster.create(config_map("a", x=WrongLength(-1)))

    def test_strings_of_100_megabytes(self) -> None:
        text = "x" * (100 << 20)
        maps = self.cluster.view("cm", "default")
        self.assert_rejected(
            longshore.KubeError,
            "",
            lambda: self.cluster.create(config_map("a", x=text)),
            lambda: self.cluster.view(text),
            lambda: maps.fetch(text),
            lambda: maps.filter(labels=text),
            lambda: longshore.Cluster("http://" + text),
            lambda: self.cluster.create(text),
        )

    def test_selectors_that_select_everything(self) -> None:
        maps = self.cluster.view("cm", "default")
        selectors: list[str | dict[str, str]] = ["", " ", {}, "\t\n"]
        for selector in selectors:
            self.assert_rejected(
                ValueError,
                "empty selector|invalid selector",
                lambda: maps.filter(labels=selector),
                lambda: maps.filter(fields=selector),
            )

    def test_timeouts(self) -> None:
        with self.cluster.view("cm", "default").watch() as watch:
            for limit in (float("nan"), -1, float("inf"), 1e300):
                self.assert_rejected(
                    ValueError, "timeout must be a number", lambda: watch.next(timeout=limit)
                )
            self.assert_rejected(TypeError, "", lambda: watch.next(timeout="1"))  # type: ignore[arg-type]
            self.cluster.create(config_map("a"))
            self.assertEqual(present(watch.next(timeout=1e18).item).name, "a")


def resolver_options() -> dict[str, Any]:
    return {
        "port": "8470",
        "address": "pod_ip",
        "family": "primary",
        "order": "natural",
        "not_running": "fail",
        "ready": False,
        "once": False,
        "tensorflow": False,
    }


class Uses(WithCluster):
    def test_many_threads(self) -> None:
        failed: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for index in range(20):
                    self.cluster.create(config_map(f"m{number}-{index}"))
                    list(self.cluster.view("cm", "default").filter(labels="a=b"))
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        self.assertEqual(failed, [])
        self.assertEqual(len(list(self.cluster.view("cm", "default"))), 320)

    def test_use_after_the_cluster_has_stopped(self) -> None:
        maps = self.cluster.view("cm", "default")
        watch, items = maps.watch(), iter(maps)
        self.embedded.stop()
        for use in (
            lambda: list(maps),
            lambda: next(items),
            lambda: watch.next(timeout=1),
            lambda: maps.watch(),
            lambda: maps.fetch("a"),
            lambda: self.cluster.create(config_map("a")),
            lambda: longshore.KubernetesClusterResolver(override_client=self.cluster).tasks(),
        ):
            with self.assertRaises(longshore.ClosedError):
                use()
        watch.close()
        watch.close()
        self.embedded.stop()

    def test_a_watch_is_closed_by_another_thread(self) -> None:
        watch = self.cluster.view("cm", "default").watch()
        seen: list[list[str]] = []
        started = threading.Event()

        def follow() -> None:
            started.set()
            seen.append([event.evtype for event in watch])

        follower = threading.Thread(target=follow)
        follower.start()
        started.wait(30)
        self.cluster.create(config_map("a"))
        closer = threading.Thread(target=watch.close)
        closer.start()
        closer.join(30)
        self.assertFalse(closer.is_alive(), "close blocks until a change")
        follower.join(30)
        self.assertFalse(follower.is_alive(), "the loop continues after close")
        self.assertIn(seen, ([[]], [["ADDED"]]))
        with self.assertRaises(longshore.ClosedError):
            watch.next(timeout=1)
        self.assertEqual(list(watch), [])

    def test_a_cluster_is_stopped_while_others_wait(self) -> None:
        watch = self.cluster.view("cm", "default").watch()
        raised: list[BaseException] = []

        def follow() -> None:
            try:
                watch.next()
            except BaseException as error:
                raised.append(error)

        follower = threading.Thread(target=follow)
        follower.start()
        stoppers = [threading.Thread(target=self.embedded.stop) for _ in range(4)]
        for thread in stoppers:
            thread.start()
        for thread in [*stoppers, follower]:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        self.assertEqual([type(error) for error in raised], [longshore.ClosedError])

    def test_garbage_collection_during_watches(self) -> None:
        for index in range(100):
            watch = self.cluster.view("cm", "default").watch()
            self.cluster.create(config_map(f"m{index}"))
            if index % 2:
                self.assertEqual(present(watch.next(timeout=30).item).name, f"m{index}")
            cycle: list[Any] = [watch]
            cycle.append(cycle)
            del watch, cycle
            gc.collect()
        self.assertEqual(len(list(self.cluster.view("cm", "default"))), 100)

    def test_values_that_use_the_cluster_while_they_are_read(self) -> None:
        cluster, embedded = self.cluster, self.embedded

        class Reentrant(collections.abc.Mapping[str, Any]):
            def __init__(self, fields: Mapping[str, Any]) -> None:
                self.fields = fields

            def __getitem__(self, key: str) -> Any:
                list(cluster.view("cm", "default"))
                embedded.stop()
                return self.fields[key]

            def __iter__(self) -> Iterator[str]:
                return iter(self.fields)

            def __len__(self) -> int:
                return len(self.fields)

        with self.assertRaises(longshore.KubeError):
            cluster.create(Reentrant(config_map("a")))

    def test_a_signal_handler_that_raises(self) -> None:
        def handler(*_: object) -> None:
            raise HostileError("handler")

        before = signal.signal(signal.SIGALRM, handler)
        try:
            with self.cluster.view("cm", "default").watch() as watch:
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                with self.assertRaisesRegex(HostileError, "handler"):
                    watch.next(timeout=60)
                self.cluster.create(config_map("a"))
                self.assertEqual(present(watch.next(timeout=30).item).name, "a")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


FORK = """
import os, sys
import longshore

embedded = longshore.EmbeddedCluster(pods=False)
cluster = embedded.cluster
watch = cluster.view("cm", "default").watch()
child = os.fork()
if child == 0:
    code = 1
    try:
        for use in (
            lambda: list(cluster.view("namespaces")),
            lambda: watch.next(timeout=1),
            lambda: longshore.EmbeddedCluster(pods=False),
            lambda: longshore.Cluster(kubeconfig=embedded.kubeconfig),
            embedded.stop,
        ):
            try:
                use()
            except longshore.ClosedError as error:
                assert "fork" in str(error), error
            else:
                raise AssertionError("used after fork")
        # Collecting these values here must not stop the parent's cluster.
        del embedded, cluster, watch, use
        import gc
        gc.collect()
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)
deadline = __import__("time").monotonic() + 60
while True:
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        break
    if __import__("time").monotonic() > deadline:
        os.kill(child, 9)
        raise SystemExit("the child hangs")
    __import__("time").sleep(0.01)
assert status == 0, status
# The parent's cluster and its folder still exist.
assert len(list(cluster.view("namespaces"))) >= 1
assert embedded.kubeconfig.exists()
embedded.stop()
print("done")
"""

DAEMON_THREAD = """
import threading, time
import longshore

embedded = longshore.EmbeddedCluster(pods=False)
watch = embedded.cluster.view("cm", "default").watch()
started = threading.Event()

def follow():
    started.set()
    watch.next()

threading.Thread(target=follow, daemon=True).start()
started.wait(30)
time.sleep(0.2)
print("done", flush=True)
"""

# The exit takes longer than the thread that has set the result of the future.
AWAIT_AT_EXIT = """
import asyncio, time
import longshore
import longshore.aio

async def main(kubeconfig):
    loop = asyncio.get_running_loop()
    original = loop.call_soon_threadsafe

    def slow(*words, **options):
        handle = original(*words, **options)
        time.sleep(0.1)
        return handle

    async with longshore.aio.Cluster(kubeconfig=kubeconfig) as cluster:
        loop.call_soon_threadsafe = slow
        await (await cluster.view("cm", "default")).list()

keep = [[number] for number in range(2_000_000)]
embedded = longshore.EmbeddedCluster(pods=False)
asyncio.run(main(embedded.kubeconfig))
embedded.stop()
print("done", flush=True)
"""

# The exit calls this function after those of longshore.
AWAIT_IN_THE_EXIT = """
import asyncio, atexit
import longshore
import longshore.aio

async def count(kubeconfig):
    async with longshore.aio.Cluster(kubeconfig=kubeconfig) as cluster:
        return len(await (await cluster.view("namespaces")).list())

def last():
    assert asyncio.run(count(embedded.kubeconfig)) > 0
    print("done", flush=True)
    embedded.stop()

atexit.register(last)
embedded = longshore.EmbeddedCluster(pods=False)
assert asyncio.run(count(embedded.kubeconfig)) > 0
"""

# asyncio refuses this exception as the result of a future.
STOP_ITERATION = """
import asyncio
import longshore
import longshore.aio

def stop(item):
    raise StopIteration

async def main(kubeconfig):
    async with longshore.aio.Cluster(kubeconfig=kubeconfig) as cluster:
        try:
            await (await cluster.view("namespaces")).wait("default", stop, timeout=30)
        except (TypeError, RuntimeError) as error:  # RuntimeError since Python 3.12
            assert "StopIteration" in str(error), error
            print("done", flush=True)

with longshore.EmbeddedCluster(pods=False) as embedded:
    asyncio.run(asyncio.wait_for(main(embedded.kubeconfig), 60))
"""


class Processes(unittest.TestCase):
    def run_program(self, program: str) -> None:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)

    def test_use_in_a_forked_child(self) -> None:
        self.run_program(FORK)

    def test_exit_while_a_daemon_thread_waits(self) -> None:
        self.run_program(DAEMON_THREAD)

    def test_exit_after_an_awaited_result(self) -> None:
        self.run_program(AWAIT_AT_EXIT)

    def test_await_in_a_function_of_the_exit(self) -> None:
        self.run_program(AWAIT_IN_THE_EXIT)

    def test_stop_iteration_of_a_function(self) -> None:
        self.run_program(STOP_ITERATION)


if __name__ == "__main__":
    unittest.main()
