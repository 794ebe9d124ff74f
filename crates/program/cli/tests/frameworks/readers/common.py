"""Common part of the read_*.py scripts: JSON in, one line of JSON out.

The variables of "env" are put into the environment; a name whose value is null is removed.
Of the frameworks' own variables, only the given ones are kept, so that the caller's do not leak in.
If "expect" is given, every key in it is compared with what was read:
{"ok": true|false, "differs": {...}} is added, and the exit status is 1 if something differs.
An error of the reader is {"error": "..."} with exit status 2, unless "expect" is {"error": "part of it"}.
"""
import contextlib
import json
import os
import sys
import tempfile

OURS = ("TF_CONFIG", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RAY_ADDRESS")
PREFIXES = ("PET_", "JAX_COORDINATOR", "JAX_NUM_", "JAX_PROCESS", "JAX_LOCAL_", "SLURM_", "OMPI_", "TORCHELASTIC_", "KUBERNETES_SERVICE_", "JOB_COMPLETION_", "HOROVOD_")


def main(read):
    request = json.loads(sys.stdin.read() or "{}")
    for name in list(os.environ):
        if name in OURS or name.startswith(PREFIXES):
            del os.environ[name]
    for name, value in request.get("env", {}).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = str(value)
    real, sys.stdout = sys.stdout, sys.stderr  # output of a library must not mix with the JSON line
    try:
        found = read(request)
    except SystemExit as stop:
        found = {"error": f"SystemExit: {stop.code}"}
    except BaseException as problem:  # also pybind errors that are not an Exception
        found = {"error": f"{type(problem).__name__}: {problem}"}
    finally:
        sys.stdout = real
    found = json.loads(json.dumps(found, default=str))
    status = 2 if "error" in found else 0
    expect = request.get("expect")
    if expect is not None:
        differs = {}
        for key, wanted in expect.items():
            got = found.get(key)
            same = wanted in (got or "") if key == "error" else got == wanted
            if not same:
                differs[key] = {"expected": wanted, "read": got}
        if "error" in found and "error" not in expect:
            differs["error"] = {"expected": None, "read": found["error"]}
        found["ok"], found["differs"] = not differs, differs
        status = 1 if differs else 0
    print(json.dumps(found, sort_keys=True), flush=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # do not wait for threads of a store or a runtime


@contextlib.contextmanager
def hostfile(request):
    """The request's "hostfile" (its text) as a file."""
    with tempfile.NamedTemporaryFile("w", suffix=".hostfile", delete=False) as file:
        file.write(request["hostfile"])
    try:
        yield file.name
    finally:
        os.unlink(file.name)
