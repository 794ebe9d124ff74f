"""Markdown of docstrings, signatures and members."""

from __future__ import annotations

import re
import textwrap
from typing import NamedTuple

from .members import Member
from .signatures import Signature

#: The length of lines. Signatures are not wrapped in lists.
WIDTH = 96


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
