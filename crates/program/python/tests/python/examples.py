"""The Python code of the documentation, as modules for a type checker.

Each module has its code at the lines where its page has it, so that line numbers agree.
"""

import ast
import doctest
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[5]
PACKAGE = ROOT / "crates/program/python/python/longshore"

#: The first line of the modules of a page: what the page assumes.
ASSUMED = {
    "python.md": "from pathlib import Path; from typing import Any, TypedDict; import longshore; "
    "cluster: longshore.Cluster; kubeconfig: Path",
    "python-kube.md": "from pathlib import Path; kubeconfig: Path",
    "python-resolver.md": "import longshore; cluster: longshore.Cluster",
    "python-testing.md": "from typing import Any; my_operator: Any",
    "zenml.md": "from typing import Any; pipeline: Any",
    "cluster_resolver.py": "import longshore; cluster: longshore.Cluster",
    "names.py": "from longshore._zenml.names import label_value, memory_quantity, run_name",
    "order.py": "from longshore._zenml.order import Order",
}

PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "crates/program/python/README.md"]

#: The reference repeats docstrings.
GENERATED = "python-reference.md"


class Code(NamedTuple):
    """Code of a page."""

    #: The line, from 1.
    line: int
    text: str


def modules() -> dict[str, str]:
    """The modules, by a path that names the page."""
    found: dict[str, str] = {}
    for path in PAGES:
        if path.name != GENERATED:
            text = path.read_text(encoding="utf-8")
            add(found, path, "", [*doctests(text, 1), *blocks(text, "")])
            for group in {group_of(name) for name in re.findall(r"^```python (\S+)$", text, re.MULTILINE)}:
                add(found, path, group, blocks(text, group))
    for path in sorted(PACKAGE.rglob("*.py")):
        add(found, path, "", docstrings(path.read_text(encoding="utf-8")))
    return found


def add(found: dict[str, str], path: Path, group: str, code: list[Code]) -> None:
    if code:
        folder = path.relative_to(ROOT).with_suffix("")
        name = re.sub(r"\W", "_", "/".join([*folder.parts, *group.split("/")]).rstrip("/"))
        found[f"{name}.py"] = module(code, ASSUMED.get(path.name, ""))


def module(code: list[Code], assumed: str) -> str:
    lines = [assumed]
    for line, text in sorted(code):
        lines += [""] * (line - 1 - len(lines))
        lines += text.splitlines()
    return "\n".join(lines) + "\n"


def doctests(text: str, first: int) -> list[Code]:
    """The examples with a prompt in a text that begins in a line of its file."""
    return [Code(first + one.lineno, one.source) for one in doctest.DocTestParser().get_examples(text)]


def docstrings(text: str) -> list[Code]:
    """The examples in the docstrings of a module."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            doc = ast.get_docstring(node, clean=False)
            if doc:
                found += doctests(doc, node.body[0].lineno)
    return found


def blocks(text: str, group: str) -> list[Code]:
    """The code blocks of a group, or, with an empty one, those without a name."""
    found = []
    for match in re.finditer(r"^```python ?(\S*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if group_of(match[1]) == group:
            found.append(Code(text.count("\n", 0, match.start(2)) + 1, match[2]))
    return found


def group_of(name: str) -> str:
    """The files of a folder are one module: the cells of a notebook."""
    return str(Path(name).parent) if "/" in name else name
