"""The definitions and docstrings of the package's modules."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from longshore import _native

ROOT = Path(__file__).resolve().parents[5]
PACKAGE = ROOT / "crates" / "program" / "python" / "python" / "longshore"

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """A module of the package: its definitions, and the text about them."""

    def __init__(self, name: str) -> None:
        self.name = name
        paths = [PACKAGE / f"{name}{suffix}" for suffix in (".pyi", ".py")]
        self.files = [File(path) for path in paths if path.exists()]
        #: Those of the stub, if the module has one.
        self.definitions = {**imported_bases(self.files[0]), **self.files[0].definitions}
        self.aliases = {
            name: node.value
            for node in self.files[0].tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            for name in [node.targets[0].id]
            if name.startswith("_") and not isinstance(node.value, ast.Call)
        }

    def doc(self, *path: str) -> str:
        """The docstring of a class, method, property or field; empty if there is none."""
        for file in self.files:
            node = file.find(path)
            found = (ast.get_docstring(node) if node else None) or file.comment(path)
            if found:
                return found
        return native_doc(*path) if self.name == "_native" else ""


def imported_bases(file: File) -> dict[str, Any]:
    """The private classes that a stub imports from a stub of the package, as bases of its own."""
    found: dict[str, Any] = {}
    for node in file.tree.body:
        path = PACKAGE / f"{node.module}.pyi" if isinstance(node, ast.ImportFrom) and node.level == 1 else None
        names = [one.name for one in getattr(node, "names", []) if one.name.startswith("_")]
        if path is not None and names and path.exists():
            definitions = File(path).definitions
            found.update({name: definitions[name] for name in names if name in definitions})
    return found


class File:
    """A Python file."""

    def __init__(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        self.lines = text.splitlines()
        self.tree = ast.parse(text)
        defined = [node for node in self.tree.body if isinstance(node, (ast.ClassDef, *FUNCTIONS))]
        #: The last definition of a function with overloads.
        self.definitions = {node.name: node for node in defined}
        self.overloads: dict[str, list[Function]] = {}
        for node in defined:
            if isinstance(node, FUNCTIONS) and "overload" in decorators(node):
                self.overloads.setdefault(node.name, []).append(node)

    def find(self, path: Iterable[str]) -> Any:
        """The definition of a name, or of a name in a class."""
        body: list[ast.stmt] = self.tree.body
        node = None
        for name in path:
            found = [one for one in body if getattr(one, "name", None) == name]
            if not found:
                return None
            # Only one of the overloads has a docstring.
            node = next((one for one in found if has_doc(one)), found[0])
            body = getattr(node, "body", [])
        return node

    def comment(self, path: tuple[str, ...]) -> str:
        """The comment ``#: text`` above a field of a class or above ``self.field = ...``."""
        if len(path) != 2:
            return ""
        owner = self.definitions.get(path[0])
        for statement in ast.walk(owner) if isinstance(owner, ast.ClassDef) else []:
            if isinstance(statement, ast.stmt) and field_name(statement) == path[1]:
                line = statement.lineno - 2
                found: list[str] = []
                while self.lines[line].strip().startswith("#: "):
                    found.insert(0, self.lines[line].strip()[3:])
                    line -= 1
                if found:
                    return " ".join(found)
        return ""


def has_doc(node: ast.stmt) -> bool:
    documented = (ast.ClassDef, *FUNCTIONS)
    return isinstance(node, documented) and ast.get_docstring(node) is not None


def native_doc(*path: str) -> str:
    """The docstring in the extension module."""
    found: Any = _native
    for name in path:
        found = getattr(found, name, None)
    return inspect.cleandoc(getattr(found, "__doc__", None) or "") if found is not None else ""


def field_name(statement: ast.stmt) -> str | None:
    """The name of a field that a statement sets or declares."""
    if isinstance(statement, ast.AnnAssign):
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    else:
        return None
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return target.attr
    return target.id if isinstance(target, ast.Name) else None


def decorators(node: Function) -> list[str]:
    return [ast.unparse(one).split("(")[0] for one in node.decorator_list]
