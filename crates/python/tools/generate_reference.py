"""Generates docs/python-reference.md, the reference of the Python package.

Signatures are those of the stubs, or of the modules without a stub. The text is that of the docstrings; for
the native classes, whose stubs describe few methods, that of the extension module. Run this program after a
change of either, with a Python that can import the package ``longshore``::

    python3 crates/python/tools/generate_reference.py           # writes the file
    python3 crates/python/tools/generate_reference.py --check   # exits with 1 if the file is out of date
"""

from __future__ import annotations

import argparse
import ast
import copy
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from longshore import _native

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "crates" / "python" / "python" / "longshore"
REFERENCE = ROOT / "docs" / "python-reference.md"

#: The length of lines. Signatures are not wrapped in lists.
WIDTH = 96

#: The names of the package by subject, in the order of the reference. Errors have a section of their own.
SUBJECTS = {
    "Client": [
        "Cluster", "View", "Item", "Watch", "WatchEvent", "WatchEventType", "Cache", "Stream", "Leadership",
        "Output", "Session", "PortForward", "Proxy",
    ],
    "Embedded cluster": ["EmbeddedCluster", "Faults"],
    "Runs": ["run", "task", "find_run", "Run", "Task", "Result", "LogLine"],
    "Cluster specs": [
        "KubernetesClusterResolver", "ExecutableLocation", "ClusterSpec", "Tasks", "Generations",
        "Generation",
    ],
    "ZenML pipelines": ["OrchestratorKubernetesBackend", "PipelineRun"],
}

#: Names that are no class and no function.
OTHERS = {"__version__", "errors"}

#: Classes of objects that the package returns, without a name in the package.
UNNAMED = {"Proxy"}

#: Methods that only a framework calls.
IGNORED = {"setUp"}

#: Classes whose objects functions return: their constructors are not for users. The value names functions
#: whose annotation does not say that they return the class.
RETURNED = {"Run": [], "PipelineRun": [], "Task": ["task"], "TestCluster": ["the fixtures of pytest"]}

#: Special methods, and what they support.
SUPPORTED = {
    "__enter__": "`with`",
    "__aenter__": "`async with`",
    "__iter__": "`for`",
    "__aiter__": "`async for`",
    "__len__": "`len()`",
    "__getitem__": "indexing",
}

INTRODUCTION = """\
# Reference of the Python package

This page lists the classes and functions of the package `longshore`.
[python.md](python.md) introduces them with examples, and [python-recipes.md](python-recipes.md)
has complete programs. `crates/python/tools/generate_reference.py` generates this page from the
type stubs and docstrings: change those, and run it.

Signatures omit the types of objects: `Item` stands for `Item[Pod]` or an item of another kind.
The type of an object of a known kind comes from [`longshore.types`](#longshoretypes); otherwise
it is `dict[str, Any]`. A `timeout` is a number of seconds; without one, the call waits for as
long as necessary. A method raises the errors that its description names, and those that
[Errors](#errors) names for all methods.
"""

ERRORS = """\
All are in the package `longshore`, and in `longshore.errors`. A method that sends a request
raises `UnreachableError` if the cluster does not respond, `ClosedError` if the connection was
closed, and `APIError` or another subclass of it for errors that the server returns. `wait`
raises `WaitTimeoutError`, a `TimeoutError`, when its `timeout` expires. Invalid arguments raise
`InvalidError` or another `ValueError`, or `TypeError`, before a request is sent.
"""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


# Sources


class Module:
    """A module of the package: its definitions, and the text about them."""

    def __init__(self, name: str) -> None:
        self.name = name
        paths = [PACKAGE / f"{name}{suffix}" for suffix in (".pyi", ".py")]
        self.files = [File(path) for path in paths if path.exists()]
        #: Those of the stub, if the module has one.
        self.definitions = self.files[0].definitions
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
            # Of overloads, the one with a docstring.
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


# Signatures


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


def decorators(node: Function) -> list[str]:
    return [ast.unparse(one).split("(")[0] for one in node.decorator_list]


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
            found[field] = Member(field, [text], module.doc(name, field), True)
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


# Text


def prose(text: str) -> str:
    """Markdown of a text in the markup of docstrings."""
    text = re.sub(r":(?:class|func|meth|mod):`~?([^`]+)`", r"`\1`", " ".join(text.split()))
    text = text.replace("``", "`")
    return re.sub(r"(?<!`)docs/([\w-]+\.md)", r"[\1](\1)", text)


class Description(NamedTuple):
    """A docstring in parts."""

    paragraphs: list[str]
    #: Parameters and their descriptions, and errors.
    parameters: list[str]
    examples: list[str]


def describe(doc: str) -> Description:
    found = Description([], [], [])
    for paragraph in re.split(r"\n\s*\n", doc.strip()):
        lines = paragraph.splitlines()
        if not paragraph:
            continue
        if paragraph.startswith(">>> "):
            found.examples.append(paragraph)
        elif paragraph.startswith(":"):
            for field in re.split(r"\n(?=:)", paragraph):
                found.parameters.append(describe_field(field))
        elif all(re.match(r"[a-z_]+: |    ", line) for line in lines):
            for field in re.split(r"\n(?=\S)", paragraph):
                name, text = field.split(": ", 1)
                found.parameters.append(f"`{name}`: {prose(text)}")
        else:
            found.paragraphs.append(prose(paragraph))
    return found


def describe_field(field: str) -> str:
    """Markdown of ``:param name: text``, ``:returns: text`` or ``:raises Error: text``."""
    role, text = field[1:].split(":", 1)
    kind, _, name = role.partition(" ")
    text = prose(text)
    if kind == "returns":
        return f"Returns {text[0].lower()}{text[1:]}"
    if kind == "raises":
        return f"Raises `{name.removeprefix('longshore.')}`: {text}"
    return f"`{name}`: {text}"


def wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    """The lines of a text. Code and links are not broken."""
    text = re.sub(r"`[^`]+`|\[[^\]]+\]\(", lambda found: found[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace("\0", " ") for line in lines]


def list_item(code: str, doc: str, indent: str = "") -> list[str]:
    """A list item: a signature and its description."""
    description = describe(doc)
    text = " ".join(description.paragraphs)
    line = f"{indent}- {code}{':' if text else ''}"
    if text and len(line) + 1 + len(text) <= WIDTH:
        lines = [f"{line} {text}"]
    else:
        lines = [line, *wrapped(text, f"{indent}  ", f"{indent}  ")]
    for parameter in description.parameters:
        lines += wrapped(parameter, f"{indent}  - ", f"{indent}    ")
    return lines


def text_of(doc: str, code: bool = True) -> list[str]:
    """Paragraphs: a docstring outside of a list."""
    description = describe(doc)
    lines: list[str] = []
    for paragraph in description.paragraphs:
        lines += [*wrapped(paragraph), ""]
    for parameter in description.parameters:
        lines += wrapped(parameter, "- ", "  ")
    if description.parameters:
        lines.append("")
    for example in description.examples if code else []:
        lines += ["```python", example, "```", ""]
    return lines


def code_block(name: str, signatures: list[Signature]) -> list[str]:
    lines = []
    for signature in signatures:
        line = f"{name}{signature}"
        if len(line) > WIDTH:
            parameters = [f"    {one}," for one in signature.parameters]
            line = "\n".join([f"{name}(", *parameters, f"){signature.arrow}"])
        lines.append(line)
    return ["```python", *lines, "```", ""]


def member_list(found: list[Member]) -> list[str]:
    """The members as a list. The fields and properties without a description share an item."""
    plain = [member.code for member in found if member.is_property and not member.doc]
    lines = wrapped(", ".join(plain), "- ", "  ") if plain else []
    for member in found:
        if member.doc or not member.is_property:
            lines += list_item(member.code, member.doc)
    return [*lines, ""] if lines else []


# Sections


class Contents:
    """The names of the package, and where they are defined."""

    def __init__(self) -> None:
        names = ["_native", "cluster_resolver", "errors", "events", "results", "runs", "zenml"]
        self.modules = {name: Module(name) for name in names}
        self.names = listed(File(PACKAGE / "__init__.py"))
        self.errors = [name for name in self.modules["errors"].definitions if name in self.names]
        given = {*self.errors, *OTHERS, *[name for names in SUBJECTS.values() for name in names]}
        if given != {*self.names, *UNNAMED}:
            difference = ", ".join(sorted(given ^ {*self.names, *UNNAMED}))
            raise SystemExit(f"SUBJECTS of {Path(__file__).name} and longshore.__all__ differ: {difference}")

    def module(self, name: str) -> Module:
        """The module that defines a public name."""
        found = [module for module in self.modules.values() if name in module.definitions]
        return next(module for module in found if self.is_own(module, name))

    def is_own(self, module: Module, name: str) -> bool:
        # The native run is wrapped.
        return module.name != "_native" or name not in self.modules["runs"].definitions

    def functions(self) -> Iterator[tuple[str, str]]:
        """The functions and methods, with what they return."""
        for name in [name for names in SUBJECTS.values() for name in names]:
            module = self.module(name)
            node = module.definitions[name]
            if isinstance(node, ast.ClassDef):
                for member in members(module, name):
                    yield f"{name}.{member.name}", member.returns
            else:
                yield name, Writer(module).annotation(node.returns)

    def returned_by(self, name: str) -> str:
        """A sentence that names the functions that return a class."""
        found = [function for function, returns in self.functions() if re.search(rf"\b{name}\b", returns)]
        found = [function for function in found if not function.startswith(f"{name}.")]
        found = [f"`{function}`" for function in found] + [
            one if " " in one else f"`{one}`" for one in RETURNED.get(name, [])
        ]
        if not found:
            return ""
        if len(found) > 4:
            return f"Returned by {', '.join(found[:3])} and other methods."
        return f"Returned by {' and '.join(filter(None, [', '.join(found[:-1]), found[-1]]))}."


def listed(file: File) -> list[str]:
    """The ``__all__`` of a file."""
    assigned = [node for node in file.tree.body if isinstance(node, ast.Assign)]
    (value,) = [node.value for node in assigned if ast.unparse(node.targets[0]) == "__all__"]
    return list(ast.literal_eval(value))


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


def asyncio_section(contents: Contents) -> list[str]:
    """How the classes of ``longshore.aio`` differ from those of ``longshore``."""
    stubs, runs = Module("aio"), Module("_aio_runs")
    lines = text_of(ast.get_docstring(stubs.files[1].tree) or "")
    lines += wrapped("The classes have the members of the classes above, except for these differences:")
    lines.append("")
    for name in listed(stubs.files[0]):
        module = stubs if name in stubs.definitions else runs
        if name not in module.definitions or name in contents.modules["events"].definitions:
            # The same class.
            continue
        node = module.definitions[name]
        if not isinstance(node, ast.ClassDef):
            signature = Writer(module).signature(node)
            cluster = next(one for one in signature.parameters if one.startswith("cluster"))
            doc = f"A coroutine. Its argument `{cluster}` is required."
            lines += list_item(f"`{name}(...) -> {signature.returns}`", doc)
            continue
        before = contents.module(name) if name in contents.names else contents.modules["_native"]
        lines += list_item(f"`{name}`", difference(name, before, module))
    return [*lines, ""]


def difference(name: str, before: Module, after: Module) -> str:
    old = {member.name: member for member in members(before, name)}
    new = {member.name: member for member in members(after, name)}
    sentences = []
    methods = [member for member in new.values() if not member.is_property]
    streamed = [f"`{member.name}`" for member in methods if "AsyncIterator" in member.returns]
    awaited = [f"`{member.name}`" for member in methods if member.is_async]
    awaited = [one for one in awaited if one not in streamed]
    if awaited:
        text = "all methods" if len(awaited) == len(methods) else ", ".join(awaited)
        sentences.append(f"`await` {text}.")
    if streamed:
        sentences.append(f"`async for` reads {' and '.join(streamed)}.")
    special = [set(names(module, name)) for module in (before, after)]
    for one, text in SUPPORTED.items():
        if one in special[1] - special[0]:
            sentences.append(f"Supports {text}.")
    lost = [text for one, text in SUPPORTED.items() if one in special[0] - special[1]]
    if lost:
        sentences.append(f"Does not support {', '.join(lost)}.")
    gone = [f"`{one}`" for one in old if one not in new]
    if gone:
        sentences.append(f"Does not have {', '.join(gone)}.")
    changed = [new[one] for one in new if one in old and parameters(new[one]) != parameters(old[one])]
    if changed:
        sentences.append(f"Signature: {', '.join(member.code for member in changed)}.")
    return " ".join(sentences) or "The same members."


def names(module: Module, name: str) -> list[str]:
    """The names that a class defines."""
    owner = module.definitions[name]
    return [one.name for one in owner.body if isinstance(one, FUNCTIONS)]


def parameters(member: Member) -> list[str]:
    return [] if member.is_property else [one.rsplit(" -> ", 1)[0] for one in member.signatures]


def testing_section(contents: Contents) -> list[str]:
    module, plugin = Module("testing"), Module("pytest_plugin")
    lines = text_of(ast.get_docstring(module.files[0].tree) or "", code=False)
    for name in sorted(listed(module.files[0]), key=lambda name: name != "TestCluster"):
        lines += section(contents, module, name)
    lines += ["### Fixtures of pytest", ""]
    lines += ["The wheel registers them. The value of each is a `longshore.testing.TestCluster`.", ""]
    for name, node in plugin.definitions.items():
        if isinstance(node, FUNCTIONS) and "pytest.fixture" in decorators(node):
            lines += list_item(f"`{name}`", plugin.doc(name))
    for call in ast.walk(plugin.files[0].tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(".addoption"):
            values = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
            option = f"{ast.literal_eval(call.args[0])} {values.get('metavar', '')}".strip()
            lines += ["", *wrapped(f"The option `{option}` of pytest: {values['help']}.")]
    return [*lines, ""]


def kube_section(contents: Contents) -> list[str]:
    file = File(PACKAGE / "kube" / "__init__.py")
    lines = text_of(ast.get_docstring(file.tree) or "", code=False)
    lines += ["[python-kube.md](python-kube.md) describes how it differs from the library. Its names:", ""]
    own = {
        alias.name: Module(f"kube/{node.module}")
        for node in file.tree.body
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module
        for alias in node.names
    }
    own = {name: defining(module, name) for name, module in own.items()}
    full = ["Cluster", "ViewABC", "ItemABC"]
    shared = [name for name in listed(file) if name in contents.errors]
    views = [name for name in listed(file) if name.endswith("View")]
    for name in [*full, *[name for name in listed(file) if name not in [*full, *shared, *views]]]:
        description = describe(own[name].doc(name))
        lines += list_item(f"`{name}`", description.paragraphs[0].split(". ")[0].rstrip(".") + ".")
        if name in full:
            for member in members(own[name], name):
                lines += list_item(member.code, first_sentence(member.doc), "  ")
    for group, text in [(views, "views of these kinds"), (shared, "the errors of `longshore`")]:
        lines += wrapped(f"{', '.join(f'`{name}`' for name in group)}: {text}.", "- ", "  ")
    return [*lines, ""]


def defining(module: Module, name: str) -> Module:
    """The module that defines a name which another one imports."""
    if name in module.definitions:
        return module
    for node in module.files[0].tree.body:
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return defining(Module(f"kube/{node.module}"), name)
    raise SystemExit(f"{name} of longshore.kube is not defined in its modules")


def first_sentence(doc: str) -> str:
    paragraphs = describe(doc).paragraphs
    return re.split(r"(?<=\.) (?=[A-Z])", paragraphs[0])[0] if paragraphs else ""


def types_section() -> list[str]:
    file = File(PACKAGE / "types.py")
    lines = text_of(ast.get_docstring(file.tree) or "", code=False)
    text = """This page does not list them. `crates/python/tools/generate_types.py` generates them from the
    OpenAPI documents of the embedded cluster: their fields are those of the API reference of Kubernetes.
    [python.md](python.md#types) has examples."""
    return [*lines, *wrapped(" ".join(text.split())), ""]


def anchors(lines: list[str]) -> dict[str, str]:
    """The headings, and the links to them."""
    found: dict[str, str] = {}
    used: dict[str, int] = {}
    code = False
    for line in lines:
        if line.startswith("```"):
            code = not code
        heading = None if code else re.match(r"#+ (.*)", line)
        if heading:
            slug = re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")
            number = used.get(slug, 0)
            used[slug] = number + 1
            # Of two with the same name, links lead to the first.
            found.setdefault(heading[1], f"{slug}-{number}" if number else slug)
    return found


def generate() -> str:
    """The reference."""
    contents = Contents()
    body: list[str] = []
    for subject, subject_names in SUBJECTS.items():
        body += [f"## {subject}", ""]
        for name in subject_names:
            body += section(contents, contents.module(name), name)
    body += ["## Errors", "", *error_section(contents)]
    body += ["## longshore.aio", "", *asyncio_section(contents)]
    body += ["## longshore.testing", "", *testing_section(contents)]
    body += ["## longshore.kube", "", *kube_section(contents)]
    body += ["## longshore.types", "", *types_section()]
    head = INTRODUCTION.splitlines()
    links = anchors([*head, *body])
    overview = [""]
    for subject, subject_names in SUBJECTS.items():
        titles = [name if name in links else f"{name}()" for name in subject_names]
        text = ", ".join(f"[{title}](#{links[title]})" for title in titles)
        overview += wrapped(f"[{subject}](#{links[subject]}): {text}", "- ", "  ")
    others = ["Errors", "longshore.aio", "longshore.testing", "longshore.kube", "longshore.types"]
    overview += [*wrapped(", ".join(f"[{title}](#{links[title]})" for title in others), "- ", "  "), ""]
    lines = [*head, *overview, *body]
    text = "\n".join(line.rstrip() for line in lines)
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Generate the reference of the Python package.")
    parser.add_argument("--check", action="store_true", help="exit with 1 if the file is out of date")
    check = parser.parse_args().check
    text = generate()
    if REFERENCE.exists() and REFERENCE.read_text(encoding="utf-8") == text:
        return 0
    if check:
        print(f"{REFERENCE} is out of date: run {Path(__file__).name}", file=sys.stderr)
        return 1
    REFERENCE.write_text(text, encoding="utf-8")
    print(f"wrote {REFERENCE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
