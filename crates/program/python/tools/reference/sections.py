"""The sections of classes, functions and errors."""

from __future__ import annotations

import ast

from .contents import RETURNED, Contents
from .markdown import code_block, list_item, member_list, text_of, wrapped
from .members import members
from .signatures import Writer
from .sources import FUNCTIONS, Module

#: Special methods, and what they support.
SUPPORTED = {
    "__enter__": "`with`",
    "__aenter__": "`async with`",
    "__iter__": "`for`",
    "__aiter__": "`async for`",
    "__len__": "`len()`",
    "__getitem__": "indexing",
}

ERRORS = """\
All are in the package `longshore`, and in `longshore.errors`. A method that sends a request
raises `UnreachableError` if the cluster does not respond, `ClosedError` if the connection was
closed, and `APIError` or another subclass of it for errors that the server returns. `wait`
raises `WaitTimeoutError`, a `TimeoutError`, when its `timeout` expires. Invalid arguments raise
`InvalidError` or another `ValueError`, or `TypeError`, before a request is sent.
"""


def section(contents: Contents, module: Module, name: str) -> list[str]:
    """The section of a class or function."""
    node = module.definitions[name]
    writer = Writer(module)
    if not isinstance(node, ast.ClassDef):
        lines = [f"### {name}()", "", *code_block(name, writer.overloads(module.files[0].overloads.get(name, [node])))]
        return lines + text_of(module.doc(name))
    lines = [f"### {name}", ""]
    constructors = [one for one in node.body if isinstance(one, FUNCTIONS) and one.name == "__init__"]
    if constructors and name not in RETURNED:
        lines += code_block(name, [one._replace(returns="") for one in writer.overloads(constructors, name)])
    lines += text_of(module.doc(name))
    facts = [contents.returned_by(name)] if not constructors or name in RETURNED else []
    bases = [ast.unparse(base) for base in node.bases]
    kinds = {"NamedTuple": "A named tuple.", "_Event": "A named tuple.", "enum.Enum": "An enum."}
    facts += [kinds[base] for base in bases if base in kinds]
    supported = [text for one, text in SUPPORTED.items() if module.files[0].find([name, one])]
    if supported:
        facts.append(f"Supports {' and '.join(filter(None, [', '.join(supported[:-1]), supported[-1]]))}.")
    found = members(module, name)
    given = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)} if constructors else set()
    plain = [member for member in found if member.is_property and not member.doc]
    attributes = [member for member in plain if member.name in given]
    if len(attributes) > 2 and name not in RETURNED:
        facts.append("The arguments are attributes of the object.")
        found = [member for member in found if member not in attributes]
    facts = list(filter(None, facts))
    if facts:
        lines += [*wrapped(" ".join(facts)), ""]
    return lines + member_list(found)


def error_section(contents: Contents) -> list[str]:
    module = contents.modules["errors"]
    lines = [*ERRORS.splitlines(), ""]
    for name in contents.errors:
        node = module.definitions[name]
        assert isinstance(node, ast.ClassDef)
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        lines += list_item(f"`{name}({bases})`", module.doc(name))
        found = [member for member in members(module, name) if member.is_property]
        if found:
            lines += wrapped(", ".join(member.code for member in found), "  - ", "    ")
    return [*lines, ""]
