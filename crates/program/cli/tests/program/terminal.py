"""Runs a program in a terminal, performs the steps of a test, and reports the output.

Reads JSON from standard input: {"argv": [...], "steps": [["see", TEXT] | ["type", TEXT] |
["resize", ROWS, COLUMNS] | ["signal", NAME], ...]}. Writes JSON: exit code, screen, and
whether the terminal's settings at the end are those of the beginning.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

LIMIT = 120
task = json.load(sys.stdin)
near, far = pty.openpty()


def resize(rows, columns):
    fcntl.ioctl(near, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


resize(30, 100)
before = termios.tcgetattr(far)
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(far, termios.TIOCSCTTY, 0)
    for descriptor in (0, 1, 2):
        os.dup2(far, descriptor)
    os.execvp(task["argv"][0], task["argv"])

screen, seen, status = b"", 0, None


def read(timeout):
    """What the program wrote, or nothing."""
    global screen
    if select.select([near], [], [], timeout)[0]:
        screen += os.read(near, 65536)
        return True
    return False


def ended():
    global status
    if status is None:
        done, found = os.waitpid(pid, os.WNOHANG)
        if done:
            status = os.waitstatus_to_exitcode(found)
    return status is not None


def until(what, holds):
    begin = time.monotonic()
    while not holds():
        if time.monotonic() - begin > LIMIT:
            os.kill(pid, signal.SIGKILL)
            sys.exit(f"never: {what}\n{screen.decode(errors='replace')}")
        read(0.02)


for kind, *values in task["steps"]:
    if kind == "see":
        text = values[0].encode()
        until(f"see {values[0]!r}", lambda: text in screen[seen:] or ended() and not read(0))
        found = screen.find(text, seen)
        if found < 0:
            sys.exit(f"ended before {values[0]!r} ({status}):\n{screen.decode(errors='replace')}")
        seen = found + len(text)
    elif kind == "type":
        os.write(near, values[0].encode())
    elif kind == "resize":
        resize(*values)
    elif kind == "signal":
        os.kill(pid, getattr(signal, values[0]))
until("the end", ended)
while read(0.05):
    pass
json.dump(
    {
        "code": status,
        "screen": screen.decode(errors="replace"),
        "restored": termios.tcgetattr(far) == before,
    },
    sys.stdout,
)
