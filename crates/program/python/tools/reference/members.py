"""The members of the classes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .signatures import Writer
from .sources import FUNCTIONS, Function, Module, decorators, field_name, native_doc

#: Methods that only a framework calls.
IGNORED = {"setUp"}


class Member(NamedTuple):
    """A method, property or field of a class."""

    name: str
    #: One for each overload.
    signatures: list[str]
    doc: str
    is_property: bool
    is_async: bool = False
    returns: str = ""

    @property
    def code(self) -> str:
        return ", ".join(f"`{one}`" for one in self.signatures)


def members(module: Module, name: str) -> list[Member]:
    """The public members of a class: properties and fields first."""
    owner = module.definitions[name]
    if not isinstance(owner, ast.ClassDef):
        return []
    writer = Writer(module)
    found: dict[str, Member] = {}
    statements = [statement for base in owner.bases for statement in private_body(base, module)]
    statements += owner.body
    functions: dict[str, list[Function]] = {}
    for statement in statements:
        if isinstance(statement, FUNCTIONS):
            functions.setdefault(statement.name, []).append(statement)
    for statement in [*statements, *set_fields(module, functions)]:
        field = field_name(statement)
        if field and not field.startswith("_") and field not in found:
            text = field_text(writer, owner, statement)
            owners = [name, *[ast.unparse(base) for base in owner.bases]]
            doc = next(filter(None, [module.doc(one, field) for one in owners]), "")
            found[field] = Member(field, [text], doc, True)
    for one, nodes in functions.items():
        if one.startswith("_") or one in IGNORED:
            continue
        doc = module.doc(name, one)
        last = nodes[-1]
        if "property" in decorators(nodes[0]) or "cached_property" in decorators(nodes[0]):
            returns = writer.annotation(nodes[0].returns, name)
            text = f"{one}: {returns}" if returns else one
            found[one] = Member(one, [text], doc, True, returns=returns)
            if len(nodes) > 1:
                found[one] = found[one]._replace(doc=f"{doc} Can be set.".strip())
            continue
        signatures = writer.overloads(nodes, name)
        returns = " | ".join(one.returns for one in signatures)
        is_async = isinstance(last, ast.AsyncFunctionDef)
        path = f"{name}.{one}" if "classmethod" in decorators(last) else one
        found[one] = Member(one, [f"{path}{text}" for text in signatures], doc, False, is_async, returns)
    if name == "Cluster" and module.name in ("_native", "aio"):
        # The overloads for the built-in kinds are in another stub.
        view = Member("view", ["view(kind: str, namespace: str | None = None) -> View"],
                      native_doc("Cluster", "view"), False, module.name == "aio", "View")
        found = {"view": view, **found}
    return sorted(found.values(), key=lambda member: not member.is_property)


def private_body(base: ast.expr, module: Module) -> list[ast.stmt]:
    """The body of a private base class of the same module."""
    name = ast.unparse(base)
    return module.definitions[name].body if name.startswith("_") and name in module.definitions else []


def set_fields(module: Module, functions: dict[str, list[Function]]) -> Iterator[ast.stmt]:
    """The statements of ``__init__`` that set a field with a type or with a comment."""
    if len(module.files) > 1:
        return
    for function in functions.get("__init__", []):
        given = {one.arg: one.annotation for one in [*function.args.args, *function.args.kwonlyargs]}
        for statement in ast.walk(function):
            if isinstance(statement, ast.AnnAssign):
                yield statement
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
                above = module.files[0].lines[statement.lineno - 2].strip()
                value = statement.value
                annotation = given.get(value.id) if isinstance(value, ast.Name) else None
                if above.startswith("#: "):
                    typed = ast.AnnAssign(statement.targets[0], annotation or ast.Name("Any"), None, 0)
                    yield ast.copy_location(typed, statement)


def first_group(found: re.Match[str]) -> str:
    return found[1]


def field_text(writer: Writer, owner: ast.ClassDef, statement: Any) -> str:
    name = field_name(statement)
    if isinstance(statement, ast.AnnAssign):
        annotation = writer.annotation(statement.annotation, owner.name)
        return f"{name}: {re.sub('^ClassVar.(.*).$', first_group, annotation)}"
    value = ast.unparse(statement.value).replace("'", '"')
    return f"{name} = {value}"
