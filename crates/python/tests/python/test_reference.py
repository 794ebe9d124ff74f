"""The reference of the package is up to date, and the package describes its names."""

import importlib.util
import inspect
import re
import unittest
from pathlib import Path
from typing import Any

import longshore
from longshore import _native

from pods import present

GENERATOR = Path(__file__).resolve().parents[2] / "tools" / "generate_reference.py"


def load() -> Any:
    """The generator, as a module."""
    spec = importlib.util.spec_from_file_location("generate_reference", GENERATOR)
    generator = importlib.util.module_from_spec(present(spec))
    present(present(spec).loader).exec_module(generator)
    return generator


class Reference(unittest.TestCase):
    generator: Any
    contents: Any
    text: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.generator = load()
        cls.contents = cls.generator.Contents()
        cls.text = cls.generator.generate()

    def test_the_file_is_up_to_date(self) -> None:
        # `assertEqual` would print the file.
        same = self.generator.REFERENCE.read_text(encoding="utf-8") == self.text
        self.assertTrue(same, f"{self.generator.REFERENCE} is out of date: run {GENERATOR}")

    def test_the_reference_lists_each_name(self) -> None:
        for name in {*longshore.__all__} - self.generator.OTHERS:
            with self.subTest(name):
                self.assertRegex(self.text, rf"(?m)^(### {name}(\(\))?$|- `{name}\()")

    def test_links_lead_to_headings(self) -> None:
        found = self.generator.anchors(self.text.splitlines())
        for link in re.findall(r"\]\(#([^)]*)\)", self.text):
            self.assertIn(link, found.values())
        for page in re.findall(r"\]\(([^#)]+)", self.text):
            self.assertTrue(self.generator.REFERENCE.with_name(page).exists(), page)

    def test_each_name_is_described(self) -> None:
        for name in {*longshore.__all__, *self.generator.UNNAMED} - self.generator.OTHERS:
            with self.subTest(name):
                self.assertTrue(self.contents.module(name).doc(name))

    def test_each_method_is_described(self) -> None:
        undescribed: set[str] = set()
        for name in {*longshore.__all__, *self.generator.UNNAMED} - self.generator.OTHERS:
            module = self.contents.module(name)
            owner = getattr(longshore, name, None) or getattr(_native, name)
            if not inspect.isclass(owner) or name in self.contents.errors:
                continue
            inherited = {one for base in owner.__bases__ for one in dir(base)}
            for method in {*dir(owner)} - inherited:
                public = not method.startswith("_") and callable(getattr(owner, method))
                if public and not inspect.isclass(getattr(owner, method)) and not module.doc(name, method):
                    undescribed.add(f"{name}.{method}")
        self.assertEqual(sorted(undescribed), [])


if __name__ == "__main__":
    unittest.main()
