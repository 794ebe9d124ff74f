"""Hostile servers: each answer is a documented exception or a value. None makes the client hang, crash,
fill the memory, or send its token elsewhere."""

import concurrent.futures
import json
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import longshore

from test_client import config_map

TOKEN = "hunter2-token"

#: The bytes that a server sends as the answer to a request.
Answer = Callable[[bytes], Iterable[bytes]]


class Server:
    """Sends an answer to each request, until the client leaves."""

    def __init__(self, answer: Answer) -> None:
        outer, self.heads = self, list[bytes]()

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                try:
                    outer.serve(self.request, answer)
                except OSError:
                    pass

        class Listener(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 512

        self.listener = Listener(("127.0.0.1", 0), Handler)
        self.port = self.listener.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()

    def serve(self, connection: socket.socket, answer: Answer) -> None:
        received = b""
        while b"\r\n\r\n" not in received:
            part = connection.recv(65536)
            if not part:
                return
            received += part
        self.heads.append(received)
        for part in answer(received):
            connection.sendall(part)

    def stop(self) -> None:
        self.listener.shutdown()
        self.listener.server_close()


def http(body: bytes, status: str = "200 OK", content_type: str = "application/json", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def endless(begin: bytes, part: bytes) -> Answer:
    """An answer that repeats its last part without end."""

    def answer(_: bytes) -> Iterator[bytes]:
        yield begin
        parts = part * (65536 // len(part) + 1)
        while True:
            yield parts

    return answer


def open_ended(begin: str, part: bytes, status: str = "200 OK") -> Answer:
    """A body without an end."""
    return endless(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n\r\n{begin}".encode(), part)


def whole(answer: bytes) -> Answer:
    return lambda _: [answer]


def numbered_pages(_: bytes) -> Iterator[bytes]:
    """Pages of a list that has no last one."""
    yield http(json.dumps({"metadata": {"continue": str(time.monotonic_ns())}, "items": []}).encode())


OBJECT: dict[str, Any] = {"metadata": {"name": "a", "namespace": "default", "resourceVersion": "1"}}

#: Bodies that are not what a client expects.
BODIES: dict[str, bytes] = {
    "nothing": b"",
    "spaces": b"  \n ",
    "a part": b'{"items": [',
    "no value": b"nul",
    "no text": b"\xff\xfe\x00",
    "no text in a text": b'{"metadata": {"name": "\xff\xc0"}, "items": []}',
    "a byte order mark": b'\xef\xbb\xbf{"items": []}',
    "half a surrogate": rb'{"metadata": {"name": "\ud800"}, "items": [{"metadata": {"name": "\udfff"}}]}',
    "a number": b"7",
    "a text": b'"text"',
    "a list": b"[]",
    "null": b"null",
    "items that are a number": b'{"items": 7}',
    "items that are null": b'{"items": null}',
    "items of null": b'{"items": [null, 7, "a", []]}',
    "names that are numbers": b'{"metadata": {"name": 7}, "items": [{"metadata": {"name": 7, "labels": 7}}]}',
    "metadata that is a list": b'{"metadata": [], "items": [{"metadata": []}]}',
    "duplicate keys": b'{"metadata": {}, "metadata": {}, "items": [], "items": [{}], "kind": 1, "kind": 2}',
    "a huge number": b'{"metadata": {"generation": 1e999, "name": "a"}, "items": [{"spec": ' + b"9" * 5000 + b"}]}",
    "a deep list": b'{"items": ' + b"[" * 100_000,
    "a deep object": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a deep field": b'{"metadata": {"name": "a"}, "spec": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "a NUL": b'{"metadata": {"name": "a\\u0000b"}, "items": [{"metadata": {"name": "\\u0000"}}]}',
    "a long name": b'{"metadata": {"name": "' + b"x" * 500_000 + b'"}, "items": []}',
    "a page that leads to itself": b'{"metadata": {"continue": "c"}, "items": []}',
    "a cursor that is a number": b'{"metadata": {"continue": 7}, "items": []}',
    "rest after the end": b'{"items": []} {"items": []}',
}

#: Statuses of errors, with bodies that are not a Status.
ERRORS: dict[str, bytes] = {
    "an error without a body": http(b"", "500 Internal Server Error"),
    "an error that is binary": http(bytes(range(256)), "400 Bad Request", "image/png"),
    "an error whose code is wrong": http(b'{"kind": "Status", "code": 99999999, "status": "Failure"}', "409 Conflict"),
    "an error whose details are wrong": http(b'{"kind": "Status", "details": 7, "reason": [], "message": {}}', "403 Forbidden"),
    "an error that is a success": http(b'{"kind": "Status", "status": "Success"}', "404 Not Found"),
    "an error that asks to wait for ever": http(b"{}", "429 Too Many Requests", "application/json", "Retry-After: 99999999999999"),
    "an error of an unknown status": http(b"{}", "999 What"),
    "a refusal of the token": http(b"{}", "401 Unauthorized", "application/json", 'WWW-Authenticate: Basic realm="x"'),
}

#: Answers that are not HTTP, or whose heads are wrong.
PROTOCOL: dict[str, Answer] = {
    "no answer": whole(b""),
    "another protocol": whole(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "an endless status line": endless(b"", b"H"),
    "endless headers": endless(b"HTTP/1.1 200 OK\r\n", b"X-Header: value\r\n"),
    "an endless header": endless(b"HTTP/1.1 200 OK\r\nX-Header: ", b"x"),
    "an upgrade": whole(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\n"),
    "a body that is too short": whole(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"),
    "a length that is no number": whole(b"HTTP/1.1 200 OK\r\nContent-Length: -7\r\n\r\n{}"),
    "a huge length": whole(b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n{}"),
    "two lengths": whole(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x"),
    "a huge chunk": whole(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}"),
    "a wrong chunk": whole(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n"),
    "compressed bytes": whole(http(b"\x1f\x8b\x08\x00rest", "200 OK", "application/json", "Content-Encoding: gzip")),
    "a web page": whole(http(b"<!doctype html><title>Log in</title>", "200 OK", "text/html")),
    "a picture": whole(http(bytes(range(256)) * 10, "200 OK", "image/png")),
    "pages without an end": numbered_pages,
}


def watch_once(cluster: longshore.Cluster) -> object:
    with cluster.view("cm", "default").watch(since="1") as watch:
        return watch.next(timeout=1)


def follow(cluster: longshore.Cluster) -> object:
    with cluster.proxy().watch(["api", "v1", "configmaps"], []) as watch:
        return watch.next(timeout=1)


POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}}

CALLS: dict[str, Callable[[longshore.Cluster], object]] = {
    "list": lambda cluster: list(cluster.view("cm", "default")),
    "fetch": lambda cluster: repr(cluster.view("cm", "default").fetch("a").raw),
    "create": lambda cluster: cluster.create(config_map("a")),
    "delete": lambda cluster: cluster.view("cm", "default").delete("a"),
    "request": lambda cluster: cluster.proxy().request("GET", ["api", "v1", "configmaps"], []),
    "watch": watch_once,
    "watch by path": follow,
    "logs": lambda cluster: cluster.item(POD).logs().next(timeout=1),
    "exec": lambda cluster: cluster.item(POD).exec(["true"]),
    "runs": lambda cluster: longshore.runs(cluster=cluster),
    "find_run": lambda cluster: longshore.find_run("a", cluster=cluster),
    "tasks": lambda cluster: longshore.KubernetesClusterResolver(override_client=cluster).cluster_spec(),
}


class Hostile(unittest.TestCase):
    def server(self, answer: Answer) -> Server:
        server = Server(answer)
        self.addCleanup(server.stop)
        return server

    def test_any_answer_is_an_exception_or_a_value(self) -> None:
        answers: dict[str, Answer] = {
            **PROTOCOL,
            **{name: whole(answer) for name, answer in ERRORS.items()},
            **{name: whole(http(body)) for name, body in BODIES.items()},
            **{f"{name}, in lines": whole(http(body + b"\n" + body + b"\n")) for name, body in BODIES.items()},
        }
        lines = {call for call in CALLS if "watch" in call or call == "logs"}

        def attempt(name: str, url: str, call: str) -> str | None:
            cluster = longshore.Cluster(url)
            try:
                CALLS[call](cluster)
            except longshore.KubeError as error:
                # Errors quote the beginning of an answer at most.
                return None if len(str(error)) < 20_000 else f"{call}, {name}: {len(str(error))} characters"
            except BaseException as error:
                return f"{call}, {name}: {type(error).__name__}: {str(error)[:200]}"
            finally:
                cluster.close()
            return None

        servers = {name: self.server(answer) for name, answer in answers.items()}
        # Many at once: several are attempted again, after pauses.
        pool = concurrent.futures.ThreadPoolExecutor(100)
        attempts = {
            pool.submit(attempt, name, server.url, call): f"{call}, {name}"
            for name, server in servers.items()
            for call in (lines if "in lines" in name else CALLS)
        }
        done, hanging = concurrent.futures.wait(attempts, 300)
        self.assertEqual([attempts[one] for one in hanging], [])
        problems = [problem for one in done if (problem := one.result())]
        self.assertEqual(problems, [])
        self.assertGreater(len(done), 500)

    def test_the_token_is_sent_to_no_other_server(self) -> None:
        other = self.server(whole(http(b'{"items": []}')))
        kubeconfig = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        self.addCleanup(kubeconfig.close)
        for status in ("301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"):
            for target in (other.url + "/steal", f"//127.0.0.1:{other.port}/steal", f"http://user@127.0.0.1:{other.port}/"):
                server = self.server(whole(http(b"", status, "text/plain", f"Location: {target}", f"Refresh: 0; url={target}")))
                config = {
                    "clusters": [{"name": "a", "cluster": {"server": server.url}}],
                    "users": [{"name": "a", "user": {"token": TOKEN}}],
                    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                    "current-context": "a",
                }
                Path(kubeconfig.name).write_text(json.dumps(config))
                cluster = longshore.Cluster(kubeconfig=kubeconfig.name)
                for name, call in CALLS.items():
                    with self.subTest(f"{name}, {status} {target}"), self.assertRaises(longshore.KubeError) as raised:
                        call(cluster)
                    self.assertNotIn(TOKEN, str(raised.exception))
                cluster.close()
                self.assertTrue(any(TOKEN.encode() in head for head in server.heads))
        self.assertEqual(other.heads, [])

    def test_a_watch_that_never_ends_and_repeats_itself(self) -> None:
        event = json.dumps({"type": "MODIFIED", "object": OBJECT}).encode() + b"\n"
        with longshore.Cluster(self.server(open_ended("", event)).url) as cluster:
            with cluster.view("cm", "default").watch(since="1") as watch:
                seen = {watch.next(timeout=30).item.name for _ in range(20_000)}  # type: ignore[union-attr]
            self.assertEqual(seen, {"a"})
            with cluster.view("cm", "default").watch(since="1") as watch:
                # Nothing reads it: the connection is not read either.
                time.sleep(0.5)
                self.assertEqual(watch.next(timeout=30).evtype, "MODIFIED")

    def test_a_watch_of_other_events(self) -> None:
        for event in (
            b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}}\n',
            b'{"type": "NEWS", "object": {"metadata": {"resourceVersion": "2"}}}\n',
            b"\n\n\n",
        ):
            with self.subTest(event), longshore.Cluster(self.server(open_ended("", event)).url) as cluster:
                with cluster.view("cm", "default").watch(since="1") as watch, self.assertRaises(longshore.WaitTimeoutError):
                    watch.next(timeout=0.5)

    def test_answers_that_arrive_slowly(self) -> None:
        body = http(b'{"items": []}')

        def slowly(_: bytes) -> Iterator[bytes]:
            for index in range(len(body)):
                yield body[index : index + 1]
                time.sleep(0.002)

        with longshore.Cluster(self.server(slowly).url) as cluster:
            self.assertEqual(list(cluster.view("cm", "default")), [])


#: Answers that fill a memory without limits, and what is called.
ENDLESS: dict[str, tuple[Answer, str]] = {
    "a text": (open_ended('{"items": "', b"x"), "list"),
    "items": (open_ended('{"items": [{"metadata": {"name": "a"}}', b',{"metadata": {"name": "a"}}'), "list"),
    "an object": (open_ended('{"metadata": {"name": "a"}, "spec": [0', b",{}"), "fetch"),
    "numbers": (open_ended('{"metadata": {"name": "a"}, "spec": [0', b",0"), "request"),
    "a line": (open_ended('{"type": "', b"x"), "watch"),
    "a line by path": (open_ended('{"type": "', b"x"), "watch by path"),
    "an error": (open_ended("", b"x", "500 No"), "list"),
}

MEMORY = """
import resource, sys
import longshore
import test_hostile_server as hostile

answer, call = hostile.ENDLESS[sys.argv[1]]
server = hostile.Server(answer)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    hostile.CALLS[call](longshore.Cluster(server.url))
except longshore.KubeError as error:
    assert len(str(error)) < 20_000
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown // 1024)
"""

INTERRUPTED = """
import signal
import sys
import longshore
import test_hostile_server as hostile

# The parent process may ignore SIGINT, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
cluster = longshore.Cluster(sys.argv[1])
print("calls", flush=True)
try:
    hostile.CALLS[sys.argv[2]](cluster)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class Processes(unittest.TestCase):
    def test_endless_answers_do_not_fill_the_memory(self) -> None:
        for name in ENDLESS:
            with self.subTest(name):
                command = [sys.executable, "-c", MEMORY, name]
                done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                # Four times the largest response.
                self.assertLess(int(done.stdout), 1024, f"{name}: {done.stdout} MiB")

    def test_calls_of_a_silent_server_are_interrupted(self) -> None:
        def silence(_: bytes) -> Iterator[bytes]:
            time.sleep(600)
            yield b""

        def trickle(_: bytes) -> Iterator[bytes]:
            yield b"HTTP/1.1 200 OK\r\n"
            while True:
                time.sleep(0.05)
                yield b"X-A: b\r\n"[:1]

        def hints(_: bytes) -> Iterator[bytes]:
            while True:
                time.sleep(0.05)
                yield b"HTTP/1.1 103 Early Hints\r\n\r\n"

        for answer in (silence, trickle, hints):
            server = Server(answer)
            calls = ["list", "create", "request", "logs", "runs", "tasks"] if answer is silence else ["list"]
            for call in calls:
                with self.subTest(f"{call}, {answer.__name__}"):
                    command = [sys.executable, "-c", INTERRUPTED, server.url, call]
                    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    try:
                        assert child.stdout is not None
                        self.assertEqual(child.stdout.readline(), "calls\n")
                        before = len(server.heads)
                        while len(server.heads) == before:
                            time.sleep(0.01)
                        child.send_signal(signal.SIGINT)
                        out, err = child.communicate(timeout=60)
                        self.assertEqual(out, "interrupted\n", err)
                    finally:
                        child.kill()
                        child.wait()
            server.stop()


if __name__ == "__main__":
    unittest.main()
