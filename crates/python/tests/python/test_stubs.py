"""The type stubs say what the native part has: the same names, the same arguments."""

import ast
import inspect
import unittest
from pathlib import Path

import longshore
from longshore import _native

STUBS = Path(longshore.__file__).with_name("_native.pyi")


def arguments(function):
    """The names of a stub's arguments, those by name only behind a star."""
    given = function.args
    names = [one.arg for one in [*given.posonlyargs, *given.args]]
    return [name for name in names if name != "self"], [one.arg for one in given.kwonlyargs]


class Stubs(unittest.TestCase):
    def test_they_are_complete(self):
        tree = ast.parse(STUBS.read_text())
        stubs = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        own = {name for name, value in vars(_native).items() if inspect.isclass(value)}
        self.assertEqual(set(stubs), own)
        for name, stub in stubs.items():
            members = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
            public = {one for one in vars(getattr(_native, name)) if not one.startswith("_")}
            self.assertEqual({one for one in members if not one.startswith("_")}, public, name)
            for member in public:
                value = vars(getattr(_native, name))[member]
                if callable(value):
                    with self.subTest(f"{name}.{member}"):
                        self.agree(value, members[member])
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.agree(_native.assemble, functions["assemble"])

    def agree(self, value, stub):
        signature = inspect.signature(value).parameters.values()
        by_place = [one.name for one in signature if one.kind in (one.POSITIONAL_OR_KEYWORD, one.POSITIONAL_ONLY)]
        by_name = [one.name for one in signature if one.kind is one.KEYWORD_ONLY]
        self.assertEqual(([one for one in by_place if one != "self"], by_name), arguments(stub))


if __name__ == "__main__":
    unittest.main()
