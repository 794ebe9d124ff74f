"""Checks of the arguments of runs: texts where a sequence is expected, and unknown names."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _native
from .errors import InvalidError

#: Keys of ``longshore.toml`` for which :func:`longshore.run` has an argument, or which it explains.
_NOT_OPTIONS = {"cluster", "command", "contexts", "env", "forward", "kubeconfig", "notify", "roles", "sweep"}

#: Names that other programs use, and ours.
_ALIASES = {
    "arguments": "args",
    "cmd": "command",
    "context": "cluster",
    "count": "workers",
    "cron_schedule": "cron",
    "docker_image": "image",
    "entrypoint": "command",
    "environ": "env",
    "environment": "env",
    "environment_variables": "env",
    "env_vars": "env",
    "gpu_count": "gpus",
    "max_retries": "retries",
    "mem": "memory",
    "nodes": "workers",
    "num_gpus": "gpus",
    "num_nodes": "workers",
    "num_workers": "workers",
    "replicas": "workers",
    "retry": "retries",
    "schedule": "cron",
    "tasks": "workers",
}


#: Longer values are not repeated in errors.
_LONGEST = 80


def sequence_of_texts(name: str, value: Any) -> list[str]:
    """The texts of an argument that is a sequence of texts or paths; any iterable will do.

    :raises TypeError: For one text, which Python would take for a sequence of letters, for bytes, for a
        mapping, and for elements of other types.
    """
    found = list(sequence(name, value))
    for position, element in enumerate(found):
        if not isinstance(element, (str, os.PathLike)):
            raise TypeError(f"{name}[{position}] must be a text, not {type(element).__name__}: {element!r}")
    texts = [os.fspath(element) for element in found]
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{position}] must be a text, not the path {text!r} in bytes")
    return texts


def sequence(name: str, value: Any) -> Iterable[Any]:
    """An argument that is a sequence of any values.

    :raises TypeError: For a text, for bytes, for a mapping, and for what is not iterable.
    """
    is_single = isinstance(value, (str, bytes, bytearray, memoryview, Mapping))
    if is_single or not isinstance(value, Iterable):
        shown = repr(value)
        instead = f"[{shown}]" if isinstance(value, str) and len(shown) < _LONGEST else "a list"
        raise TypeError(f"{name} must be a list, not {type(value).__name__}: give {instead}")
    return value


def mapping(name: str, value: Any) -> dict[str, Any]:
    """An argument that is a mapping with texts as keys.

    :raises TypeError: For another value.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping, as in {{'NAME': value}}, not {type(value).__name__}")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"the keys of {name} must be texts, not {type(key).__name__}: {key!r}")
    return dict(value)


def command_of(command: Any) -> str | list[str] | None:
    """The command of a run: a line for a shell, or a program with its arguments.

    :raises TypeError: For another value.
    :raises longshore.InvalidError: For an empty command.
    """
    if command is None:
        return None
    words = command if isinstance(command, str) else sequence_of_texts("command", command)
    if not words or isinstance(words, str) and not words.strip():
        raise InvalidError(
            "the command is empty: give a program with its arguments, as in ['python3', 'train.py'], or a line "
            "for a shell; None stands for the command of longshore.toml, or the script"
        )
    return words


def check_options(options: Mapping[str, Any], call: Callable[..., Any]) -> None:
    """Checks the further keyword arguments of a call that launches a run.

    :param call: The function with the named arguments.
    :raises TypeError: For an unknown name, with the closest one, and all names.
    """
    keys = _native.settings_keys()
    for name in options:
        if name not in keys:
            raise TypeError(_unknown(name, _names(call, keys)))


def _names(call: Callable[..., Any], keys: Iterable[str]) -> list[str]:
    """The names of the keyword arguments."""
    parameters = inspect.signature(call).parameters.values()
    positional, variable = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_KEYWORD
    named = {one.name for one in parameters if one.kind not in (positional, variable)}
    return sorted(named | (set(keys) - _NOT_OPTIONS))


def _unknown(name: str, names: list[str]) -> str:
    near = nearest(name, names)
    hint = "" if near is None else f": did you mean `{near}`?"
    if name in ("code_dir", "directory", "folder", "path", "script", "function"):
        hint = ": the folder, script or function is the first argument, without a name"
    separator = "." if not hint else ""
    return f"run() has no argument `{name}`{hint}{separator} Its arguments: {', '.join(names)}"


def nearest(name: str, names: list[str]) -> str | None:
    """The argument that a user probably means."""
    word = name.lower().replace("-", "_")
    candidates = [_ALIASES.get(word), word, f"{word}s", word.removesuffix("s"), _native.nearest(word, names)]
    return next((candidate for candidate in candidates if candidate in names), None)
