"""Programs that would launch themselves: tasks import the module of a function, or run a script, and with it
the lines that launch the run."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from ._code import Code
from .errors import LaunchError

#: Variables that each task has.
_TASK = ("LONGSHORE_RUN", "LONGSHORE_ROLE", "LONGSHORE_INDEX")

_GUARD = 'put the lines that launch it below `if __name__ == "__main__":`'


def in_a_task() -> bool:
    """Returns true in a process of a task."""
    return all(name in os.environ for name in _TASK)


def refuse_while_importing() -> None:
    """Refuses a launch while a task, or a process of multiprocessing, imports the module with the launch.

    :raises longshore.LaunchError: The message says how to guard the launch.
    """
    for frame in [*_top_levels(sys._getframe()), *_top_levels_of_other_threads()]:
        module = frame.f_globals.get("__name__")
        if module == "__mp_main__":
            raise LaunchError(f"a process of multiprocessing imports {_place(frame)}, which launches a run: {_GUARD}")
        if module != "__main__" and in_a_task():
            raise LaunchError(
                f"the task {os.environ['LONGSHORE_ROLE']}/{os.environ['LONGSHORE_INDEX']} of the run "
                f"{os.environ['LONGSHORE_RUN']} imports {_place(frame)}, which launches a run: {_GUARD}"
            )


def refuse_launch_of_itself(
    code: Code, command: str | Sequence[str] | None, env: Mapping[str, Any] | None, sweep: Any
) -> None:
    """Refuses a launch whose tasks would launch the same run again.

    :raises longshore.LaunchError: The message says how to guard the launch.
    """
    refuse_while_importing()
    if code.module is not None and command is None:
        for frame in _top_levels(sys._getframe()):
            if _same(frame.f_code.co_filename, code.module) and _is_unconditional(frame):
                raise LaunchError(f"the tasks import {_place(frame)}, and would launch the run again: {_GUARD}")
    if in_a_task() and _is_this_program(code.path, command or code.command) and not _differs(env, sweep):
        raise LaunchError(
            f"this program runs in a task of the run {os.environ['LONGSHORE_RUN']}, and would launch itself again, "
            "without an end: launch another script, a function, or the script with other arguments"
        )


def _top_levels(innermost: FrameType) -> Iterator[FrameType]:
    """The frames of modules whose top level a thread executes, the innermost first."""
    frame: FrameType | None = innermost
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            yield frame
        frame = frame.f_back


def _top_levels_of_other_threads() -> Iterator[FrameType]:
    """The same of other threads, but for installed modules: a module may launch runs by threads, and any
    thread may import a library."""
    installed = tuple(os.path.join(folder, "") for folder in sysconfig.get_paths().values())
    for thread, innermost in sys._current_frames().items():
        if thread != threading.get_ident():
            for frame in _top_levels(innermost):
                file = frame.f_code.co_filename
                if not file.startswith((*installed, "<")):
                    yield frame


def _place(frame: FrameType) -> str:
    return f"{os.path.basename(frame.f_code.co_filename)} (line {frame.f_lineno})"


def _same(first: str | Path, second: str | Path) -> bool:
    try:
        return os.path.samefile(first, second)
    except OSError:
        return False


def _is_unconditional(frame: FrameType) -> bool:
    """Returns true if importing the module always reaches the current line of the frame."""
    try:
        tree = ast.parse(Path(frame.f_code.co_filename).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return False
    body: Sequence[ast.AST] = tree.body
    while body:
        earlier = [one for one in body if isinstance(one, ast.stmt) and (one.end_lineno or 0) < frame.f_lineno]
        # What follows `if __name__ != "__main__": sys.exit()` is conditional, too.
        if any(_may_leave(part) for one in earlier if isinstance(one, ast.If) for part in ast.walk(one)):
            return False
        within = [
            one
            for one in body
            if isinstance(one, ast.stmt) and one.lineno <= frame.f_lineno <= (one.end_lineno or one.lineno)
        ]
        if not within:
            return True
        if not isinstance(within[0], (ast.With, ast.AsyncWith, ast.For, ast.AsyncFor)):
            return not isinstance(within[0], (ast.If, ast.Try, ast.While, ast.Match))
        body = within[0].body
    return True


def _may_leave(part: ast.AST) -> bool:
    """Returns true for a statement that raises, or a call that ends the program."""
    if isinstance(part, ast.Call):
        name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", None)
        return name in ("_exit", "abort", "exit", "quit")
    return isinstance(part, ast.Raise)


def _is_this_program(folder: Path, command: str | Sequence[str]) -> bool:
    """Returns true if the command starts the script of this process with the same arguments."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is None:
        return False
    words = _words(command) if isinstance(command, str) else list(command)
    for position, word in enumerate(words):
        if _same(folder / word, script):
            return words[position + 1 :] == sys.argv[1:]
    return False


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []


def _differs(env: Mapping[str, Any] | None, sweep: Any) -> bool:
    """Returns true if the tasks of a launch have variables that this task does not have."""
    if any(os.environ.get(name) != str(value) for name, value in (env or {}).items()):
        return True
    names = sweep if isinstance(sweep, Mapping) else {name for row in sweep or () for name in row}
    variables = [f"LONGSHORE_PARAM_{re.sub('[^A-Za-z0-9]', '_', str(name)).upper()}" for name in names]
    return any(name not in os.environ for name in variables)
