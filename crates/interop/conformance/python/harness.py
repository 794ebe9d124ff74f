"""Common parts of the scripts: a deadline and assertions."""

import contextlib
import faulthandler
import sys
import time

# A script that hangs prints its stack and exits.
faulthandler.dump_traceback_later(240, exit=True)


def expire():
    """Lets the test that runs the script compact the watch history."""
    print("expire", flush=True)
    assert sys.stdin.readline() == "done\n"


def until(condition, seconds=20):
    """Waits for a condition and returns its value."""
    end = time.monotonic() + seconds
    while True:
        if value := condition():
            return value
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)


@contextlib.contextmanager
def refused(error, status):
    """Asserts that the block fails with this status code."""
    try:
        yield
    except error as problem:
        code = getattr(problem, "status", None)
        if not isinstance(code, int):
            response = getattr(problem, "response", None)
            code = getattr(problem, "code", None) or getattr(response, "status_code", None) or code.code
        assert code == status, f"{code} instead of {status}: {problem}"
    else:
        raise AssertionError(f"no error {status}")


@contextlib.contextmanager
def refused_all(error, status):
    """Like `refused`, for several requests."""
    try:
        yield
    except error as problem:
        codes = {one.status for one in problem.api_exceptions}
        assert codes == {status}, problem
    else:
        raise AssertionError(f"no error {status}")
