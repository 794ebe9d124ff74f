"""What the scripts have in common: a namespace of their own, a deadline."""

import contextlib
import faulthandler
import sys
import time

# A script that hangs says where, and ends.
faulthandler.dump_traceback_later(240, exit=True)


def expire():
    """Asks the test that runs the script to let the watch history expire."""
    print("expire", flush=True)
    assert sys.stdin.readline() == "done\n"


def until(condition, seconds=20):
    """Waits for a condition and gives what it gave."""
    end = time.monotonic() + seconds
    while True:
        if value := condition():
            return value
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@contextlib.contextmanager
def refused(error, status):
    """Expects the block to be refused with a status code."""
    try:
        yield
    except error as problem:
        code = getattr(problem, "status", None)
        if not isinstance(code, int):
            response = getattr(problem, "response", None)
            code = getattr(problem, "code", None) or getattr(response, "status_code", None) or code.code
        assert code == status, f"{code} instead of {status}: {problem}"
    else:
        raise AssertionError(f"not refused with {status}")


@contextlib.contextmanager
def refused_all(error, status):
    """As `refused`, of several requests at once."""
    try:
        yield
    except error as problem:
        codes = {one.status for one in problem.api_exceptions}
        assert codes == {status}, problem
    else:
        raise AssertionError(f"not refused with {status}")
