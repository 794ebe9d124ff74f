"""The sections of the modules of the package."""

from __future__ import annotations

import ast
import re

from .contents import Contents, listed
from .markdown import describe, list_item, text_of, wrapped
from .members import Member, members
from .sections import SUPPORTED, section
from .signatures import Writer
from .sources import FUNCTIONS, PACKAGE, File, Module, decorators

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
            blocking = contents.module(name)
            before = blocking.definitions[name]
            same = isinstance(before, FUNCTIONS) and signature.parameters == Writer(blocking).signature(before).parameters
            doc = "A coroutine, with the same arguments." if same else "A coroutine."
            lines += list_item(f"`{name}(...) -> {signature.returns}`", doc)
            continue
        original = contents.module(name) if name in contents.names else contents.modules["_native"]
        lines += list_item(f"`{name}`", difference(name, original, module))
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
    lines += ["The wheel registers them. The value of each that is a cluster is a `longshore.testing.TestCluster`.", ""]
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
    text = """This page does not list them. `crates/program/python/tools/generate_types.py` generates them from the
    OpenAPI documents of the embedded cluster: their fields are those of the API reference of Kubernetes.
    [python.md](python.md#types) has examples."""
    return [*lines, *wrapped(" ".join(text.split())), ""]
