"""What a run packs, and the command that starts it."""

from __future__ import annotations

import inspect
import json
import os
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ._arguments import mapping, sequence

#: The interpreter in the tasks.
PYTHON = "python3"

#: The variable with the arguments of a function.
CALL = "LONGSHORE_CALL"

#: The maximum length of the arguments, in bytes: Linux limits a variable to 128 KiB.
MAX_CALL = 100_000

#: Calls the function whose module and name are the argument. It needs no package in the image.
_START = f"""
import importlib, json, os, sys
module, _, name = sys.argv[1].partition(":")
target = importlib.import_module(module)
for part in name.split("."):
    target = getattr(target, part)
call = json.loads(os.environ["{CALL}"])
getattr(target, "function", target)(*call["args"], **call["kwargs"])
"""


class Code:
    """A folder, or the source of a function for a new folder."""

    def __init__(
        self,
        path: Path,
        command: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        source: str | None = None,
        module: Path | None = None,
    ) -> None:
        self.path = path
        self.command = list(command)
        self.env = dict(env or {})
        #: The file of the module that the tasks import.
        self.module = module
        self._source = source

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """The folder to pack."""
        if self._source is None:
            yield self.path
            return
        with tempfile.TemporaryDirectory() as parent:
            folder = Path(parent, self.path)
            folder.mkdir()
            folder.joinpath(f"{self.path.name}.py").write_text(self._source)
            yield folder


def locate(
    code: str | os.PathLike[str] | Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> Code:
    """Where the code is, and how to start it.

    :raises TypeError: For a function that cannot be found by its name, or arguments that JSON cannot
        represent.
    :raises FileNotFoundError: If the folder or script does not exist.
    """
    if callable(code) and not isinstance(code, (str, os.PathLike)):
        positional = list(sequence("args", args))
        return _function(getattr(code, "function", code), positional, mapping("kwargs", kwargs or {}))
    if args or kwargs:
        raise TypeError("args and kwargs are those of a function, but the code is a folder or a script")
    path = Path(code)
    if path.is_dir():
        return Code(path)
    if not path.exists():
        raise FileNotFoundError(f"no folder or script {os.fspath(path)!r}")
    if path.suffix != ".py":
        raise TypeError(f"{os.fspath(path)!r} is no Python script: give its folder, and the command to run in it")
    return Code(path.absolute().parent, [PYTHON, path.name])


def _function(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Code:
    name = getattr(function, "__qualname__", repr(function))
    if "<" in name or not inspect.isfunction(function):
        raise TypeError(
            f"{name} has no name in its module, and the tasks import it by its name: "
            "define it with `def` at the top level of a module"
        )
    try:
        call = json.dumps({"args": list(args), "kwargs": dict(kwargs)}, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise TypeError(f"the arguments of {name} go to the tasks as JSON: {error}") from error
    if len(call) > MAX_CALL:
        raise TypeError(
            f"the arguments of {name} have {len(call)} bytes as JSON, more than {MAX_CALL}: put them into a file of the folder"
        )
    module = inspect.getmodule(function)
    file = getattr(module, "__file__", None)
    env = {CALL: call}
    if file is None:
        return _notebook(function, name, env)
    path = Path(file).absolute()
    reference = _import_name(path, getattr(module, "__name__", "__main__"))
    folder = path.parents[reference.count(".")]
    if path.name == "__init__.py":
        folder = folder.parent
    return Code(folder, [PYTHON, "-c", _START, f"{reference}:{name}"], env, module=path)


def _import_name(path: Path, module: str) -> str:
    """The name by which the tasks import the module: a script is the module of its file."""
    return path.stem if module == "__main__" else module


def _notebook(function: Callable[..., Any], name: str, env: Mapping[str, str]) -> Code:
    """A function of a notebook or of the interactive interpreter: its source alone."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        raise TypeError(f"the source of {name} cannot be read: put it into a file") from error
    # Decorators belong to the notebook.
    lines = source.splitlines(keepends=True)
    start = next(index for index, line in enumerate(lines) if line.startswith(("def ", "async def ")))
    module = Path(f"{function.__name__}_notebook")
    command = [PYTHON, "-c", _START, f"{module}:{name}"]
    return Code(module, command, env, "".join(lines[start:]))
