"""Signatures with the annotations of the stubs, simplified for readers."""

from __future__ import annotations

import ast
import copy
import re
from typing import NamedTuple

from .sources import Function, Module, decorators

class Simplified(ast.NodeTransformer):
    """Annotations without type variables, private aliases and module names."""

    GENERIC = {"View", "Item", "Watch", "Cache", "_WatchEvent", "WatchEvent"}

    def __init__(self, aliases: dict[str, ast.expr], owner: str | None, objects: str) -> None:
        self.aliases = aliases
        self.owner = owner
        #: What stands for the type of an object.
        self.objects = objects

    def simplify(self, node: ast.expr) -> ast.expr:
        simplified: ast.expr = self.visit(node)
        return simplified

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in ("_Object", "_Object_co", "_Other"):
            return expression(self.objects)
        if node.id == "Self" and self.owner:
            return ast.Name(self.owner)
        if node.id in self.aliases:
            return self.simplify(copy.deepcopy(self.aliases[node.id]))
        return ast.Name({"_T": "T", "_WatchEvent": "WatchEvent"}.get(node.id, node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if node.attr == "AnyCluster":
            return expression("Cluster | EmbeddedCluster | str | os.PathLike[str] | None")
        module = ast.unparse(node.value)
        return ast.Name(node.attr) if module == "builtins" or module.startswith("_") else node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return self.simplify(expression(node.value)) if isinstance(node.value, str) else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        outer = ast.unparse(node.value)
        if outer == "Literal":
            values = ast.unparse(node.slice)
            return ast.Name("bool") if values in ("True", "False") else node
        if outer == "Optional":
            return self.simplify(expression(f"({ast.unparse(node.slice)}) | None"))
        if outer in self.GENERIC:
            parameter = ast.unparse(node.slice)
            if parameter.startswith("_") or parameter == "dict[str, Any]":
                return self.simplify(ast.Name(outer))
        self.generic_visit(node)
        return node


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class Signature(NamedTuple):
    parameters: tuple[str, ...]
    returns: str

    def __str__(self) -> str:
        return f"({', '.join(self.parameters)}){self.arrow}"

    @property
    def types(self) -> list[str]:
        """The parameters without their defaults."""
        return [one.split(" = ")[0] for one in self.parameters]

    @property
    def arrow(self) -> str:
        return f" -> {self.returns}" if self.returns else ""


class Writer:
    """Writes the signatures of one module."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def annotation(
        self, node: ast.expr | None, owner: str | None = None, objects: str = "dict[str, Any]"
    ) -> str:
        if node is None:
            return ""
        simplified = Simplified(self.module.aliases, owner, objects).simplify(copy.deepcopy(node))
        return ast.unparse(simplified).replace("'", '"')

    def signature(self, node: Function, owner: str | None = None) -> Signature:
        given = node.args
        positional = [*given.posonlyargs, *given.args]
        required = len(positional) - len(given.defaults)
        defaults: list[ast.expr | None] = [*[None] * required, *given.defaults]
        parts = []
        for index, (one, default) in enumerate(zip(positional, defaults)):
            if not (index == 0 and owner and one.arg in ("self", "cls")):
                parts.append(self.parameter(one, default, owner))
            if index + 1 == len(given.posonlyargs):
                parts.append("/")
        if given.vararg:
            parts.append("*" + self.parameter(given.vararg, None, owner))
        elif given.kwonlyargs:
            parts.append("*")
        for one, default in zip(given.kwonlyargs, given.kw_defaults):
            parts.append(self.parameter(one, default, owner))
        if given.kwarg:
            parts.append("**" + self.parameter(given.kwarg, None, owner))
        returns = self.annotation(node.returns, owner)
        if "contextmanager" in decorators(node):
            returns = re.sub(r"^Iterator\[", "AbstractContextManager[", returns)
        return Signature(tuple(parts), returns)

    def parameter(self, node: ast.arg, default: ast.expr | None, owner: str | None) -> str:
        annotation = self.annotation(node.annotation, owner, "Mapping[str, Any]")
        text = f"{node.arg}: {annotation}" if annotation else node.arg
        if default is None:
            return text
        value = ast.unparse(default).replace("'", '"')
        return f"{text} = {value}" if annotation else f"{text}={value}"

    def overloads(self, nodes: list[Function], owner: str | None = None) -> list[Signature]:
        """The signatures, without those that differ only by a type of objects or by `True` and `False`."""
        found: list[Signature] = []
        for node in nodes:
            new = self.signature(node, owner)
            same = next((known for known in found if known.types == new.types), None)
            if same is None:
                found.append(new)
            elif same.returns != new.returns:
                # The first overload has the default.
                found[found.index(same)] = same._replace(returns=f"{same.returns} | {new.returns}")
        return found
