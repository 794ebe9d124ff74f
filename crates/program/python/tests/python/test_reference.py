"""The reference of the package is up to date, and the package describes its names."""

import inspect
import re
import sys
import unittest
from pathlib import Path

import longshore
from longshore import _native

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import generate_reference
from generate_reference import REFERENCE
from reference.contents import OTHERS, UNNAMED, Contents


class Reference(unittest.TestCase):
    contents: Contents
    text: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.contents = Contents()
        cls.text = generate_reference.generate()

    def test_the_file_is_up_to_date(self) -> None:
        # `assertEqual` would print the file.
        same = REFERENCE.read_text(encoding="utf-8") == self.text
        self.assertTrue(same, f"{REFERENCE} is out of date: run {generate_reference.__file__}")

    def test_the_reference_lists_each_name(self) -> None:
        for name in {*longshore.__all__} - OTHERS:
            with self.subTest(name):
                self.assertRegex(self.text, rf"(?m)^(### {name}(\(\))?$|- `{name}\()")

    def test_links_lead_to_headings(self) -> None:
        found = generate_reference.anchors(self.text.splitlines())
        for link in re.findall(r"\]\(#([^)]*)\)", self.text):
            self.assertIn(link, found.values())
        for page in re.findall(r"\]\(([^#)]+)", self.text):
            self.assertTrue(REFERENCE.with_name(page).exists(), page)

    def test_each_name_is_described(self) -> None:
        for name in {*longshore.__all__, *UNNAMED} - OTHERS:
            with self.subTest(name):
                self.assertTrue(self.contents.module(name).doc(name))

    def test_each_method_is_described(self) -> None:
        undescribed: set[str] = set()
        for name in {*longshore.__all__, *UNNAMED} - OTHERS:
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
