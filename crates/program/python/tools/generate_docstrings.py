"""Copies the docstrings of the extension module to its stubs, where editors look for them.

Run this program after a change of a docstring in the Rust sources, with a Python that can import the package
``longshore``, and then ``generate_aio.py`` and ``generate_reference.py``::

    python3 crates/program/python/tools/generate_docstrings.py           # writes _native.pyi
    python3 crates/program/python/tools/generate_docstrings.py --check   # exits with 1 if it is out of date
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from longshore import _native

STUBS = Path(__file__).parents[1] / "python" / "longshore" / "_native.pyi"

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def native_doc(owner: str, name: str) -> str:
    """The docstring of a method in the extension module; empty if there is none."""
    found = getattr(getattr(_native, owner, None), name, None)
    # `None` has a docstring since Python 3.13.
    text = None if found is None else found.__doc__
    return inspect.cleandoc(text or "")


def generate(doc: Callable[[str, str], str] = native_doc) -> str:
    """The stubs with the docstrings.

    :param doc: Returns the docstring of a method.
    """
    text = STUBS.read_text(encoding="utf-8")
    lines = text.splitlines()
    # From the end, so that the numbers of earlier lines remain.
    for owner, method in reversed(list(methods(ast.parse(text)))):
        added = [f"        {line}".rstrip() for line in quoted(doc(owner, method.name))]
        if not added:
            continue
        body = method.body[0]
        line = lines[body.lineno - 1]
        if ast.get_docstring(method) is None:
            # The line ends with ` ...`, and perhaps with a comment.
            added.insert(0, line[: body.col_offset].rstrip() + line[body.end_col_offset :])
        lines[body.lineno - 1 : body.end_lineno] = added
    return "\n".join(lines) + "\n"


def methods(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The public methods and properties with their classes; of overloads, the first."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            seen: set[str] = set()
            for method in node.body:
                if isinstance(method, FUNCTIONS) and not method.name.startswith("_") and method.name not in seen:
                    seen.add(method.name)
                    yield node.name, method


def quoted(doc: str) -> list[str]:
    """The lines of a docstring in quotes; none for an empty one."""
    lines = doc.splitlines()
    if len(lines) < 2:
        return [f'"""{line}"""' for line in lines]
    return [f'"""{lines[0]}', *lines[1:], '"""']


def main() -> int:
    parser = argparse.ArgumentParser(description="Copy the docstrings of the extension module to its stubs.")
    parser.add_argument("--check", action="store_true", help="exit with 1 if the stubs are out of date")
    check = parser.parse_args().check
    text = generate()
    if STUBS.read_text(encoding="utf-8") == text:
        return 0
    if check:
        print(f"{STUBS} is out of date: run {Path(__file__).name}", file=sys.stderr)
        return 1
    STUBS.write_text(text, encoding="utf-8")
    print(f"wrote {STUBS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
