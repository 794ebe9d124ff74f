"""Generates docs/python-reference.md, the reference of the Python package.

Signatures are those of the stubs, or of the modules without a stub. The text is that of the docstrings, which
``generate_docstrings.py`` copies from the extension module to its stubs. Run this program after a change of
either, with a Python that can import the package ``longshore``::

    python3 crates/program/python/tools/generate_reference.py           # writes the file
    python3 crates/program/python/tools/generate_reference.py --check   # exits with 1 if the file is out of date
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from reference.contents import SUBJECTS, Contents
from reference.markdown import wrapped
from reference.modules import asyncio_section, kube_section, testing_section, types_section
from reference.sections import error_section, section
from reference.sources import ROOT

REFERENCE = ROOT / "docs" / "python-reference.md"

INTRODUCTION = """\
# Reference of the Python package

This page lists the classes and functions of the package `longshore`.
[python.md](python.md) introduces them with examples, and [python-recipes.md](python-recipes.md)
has complete programs. `crates/program/python/tools/generate_reference.py` generates this page from the
type stubs and docstrings: change those, and run it.

Signatures omit the types of objects: `Item` stands for `Item[Pod]` or an item of another kind.
The type of an object of a known kind comes from [`longshore.types`](#longshoretypes); otherwise
it is `dict[str, Any]`. A `timeout` is a number of seconds; without one, the call waits for as
long as necessary. A method raises the errors that its description names, and those that
[Errors](#errors) names for all methods.
"""


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
