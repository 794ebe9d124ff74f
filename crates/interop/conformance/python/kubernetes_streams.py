"""The official client with running pods: exec and port-forward by websocket."""

import hashlib

import harness
from kubernetes import client, config
from kubernetes.client.rest import ApiException
from kubernetes.stream import portforward, stream

config.load_kube_config()
core = client.CoreV1Api()
SPACE, NAME = "default", "box"
SERVE = 'echo hello > index.html; exec python3 -m http.server --bind "$POD_IP" 8000'
core.create_namespaced_pod(
    SPACE,
    {
        "metadata": {"name": NAME},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [
                {
                    "name": "main",
                    "image": "any",
                    "workingDir": "/data",
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    "command": ["sh", "-c", SERVE],
                },
                {"name": "other", "image": "pause"},
            ],
        },
    },
)


def ready():
    pod = core.read_namespaced_pod(NAME, SPACE)
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions or [])


harness.until(ready)


def execute(*command, **options):
    options = {"container": "main", "stdout": True, "stderr": True, "stdin": False, "tty": False, **options}
    return stream(core.connect_get_namespaced_pod_exec, NAME, SPACE, command=list(command), **options)


assert execute("echo", "hi there") == "hi there\n"
# POST works like GET.
again = stream(core.connect_post_namespaced_pod_exec, NAME, SPACE, command=["hostname"], container="main", stdout=True)
assert again == "box\n", again

# Exit codes, and separate standard output and standard error.
for script, code in [("echo out; echo err >&2; exit 3", 3), ("echo out; echo err >&2", 0), ("kill -9 $$", 137)]:
    session = execute("sh", "-c", script, _preload_content=False)
    session.run_forever(timeout=20)
    assert session.returncode == code, (script, session.returncode)
    if code != 137:
        assert (session.read_stdout(), session.read_stderr()) == ("out\n", "err\n")
    session.close()

# Interactive standard input.
session = execute("sh", "-c", 'while read -r word; do echo "got $word"; done', stdin=True, _preload_content=False)
for word in ("one", "two"):
    session.write_stdin(word + "\n")
    assert session.readline_stdout(timeout=20) == f"got {word}"
assert session.is_open()
session.close()

# A megabyte, in one message.
text = "0123456789abcdef" * 65536
session = execute("head", "-c", str(len(text)), stdin=True, _preload_content=False)
session.write_stdin(text)
back = ""
while len(back) < len(text) and session.is_open():
    session.update(timeout=20)
    back += session.read_stdout() if session.peek_stdout() else ""
assert hashlib.sha256(back.encode()).digest() == hashlib.sha256(text.encode()).digest(), len(back)
session.run_forever(timeout=20)
assert session.returncode == 0

# A command continues without its client.
script = "echo begin; until test -e /tmp/go-on-$$; do sleep 0.05; done; echo $$ > /tmp/went-on-$$"
session = execute("sh", "-c", f"echo $$; {script}", _preload_content=False)
number = session.readline_stdout(timeout=20)
session.close()
execute("touch", f"/tmp/go-on-{number}")
# The client parses a number as JSON and omits its newline.
harness.until(lambda: execute("sh", "-c", f"cat /tmp/went-on-{number} || echo not yet").strip() == number)
execute("rm", "-f", f"/tmp/went-on-{number}", f"/tmp/go-on-{number}")

# Sent data arrives although the client disconnects immediately.
session = execute("sh", "-c", f"cat > /tmp/sent-{number}", stdin=True, _preload_content=False)
session.write_stdin("hello\n" * 1000)
session.close()
harness.until(lambda: execute("sh", "-c", f"cat /tmp/sent-{number} || echo not yet") == "hello\n" * 1000)
execute("rm", "-f", f"/tmp/sent-{number}")

# A terminal has a single output stream.
session = execute("sh", "-c", "test -t 0 && echo terminal; echo too >&2", stdin=True, tty=True, _preload_content=False)
session.run_forever(timeout=20)
assert session.read_stdout() == "terminal\r\ntoo\r\n"
assert session.returncode == 0

# Errors are returned before the upgrade to a websocket.
for options, part in [({"container": "none"}, "container none is not valid for pod box"), ({"container": None}, "choose one of: [main other]")]:
    try:
        execute("true", **options)
    except ApiException as problem:
        assert part in str(problem), problem
    else:
        raise AssertionError(part)


def fetch(forward, port):
    connection = forward.socket(port)
    connection.setblocking(True)
    connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
    answer = b""
    while some := connection.recv(4096):
        answer += some
    return answer


def serves():
    forward = portforward(core.connect_get_namespaced_pod_portforward, NAME, SPACE, ports="8000")
    return forward.error(8000) is None and fetch(forward, 8000).endswith(b"\r\n\r\nhello\n")


harness.until(serves)
# Several ports at once, one of them without a server.
forward = portforward(core.connect_get_namespaced_pod_portforward, NAME, SPACE, ports="8000,8001")
assert fetch(forward, 8000).endswith(b"hello\n")
harness.until(lambda: forward.error(8001))
assert "connection refused" in forward.error(8001), forward.error(8001)
core.delete_namespaced_pod(NAME, SPACE)
