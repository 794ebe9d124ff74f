"""The type stubs match the extension module: the same names and the same arguments."""

import ast
import importlib.util
import inspect
import os
import subprocess
import sys
import unittest
from pathlib import Path

import longshore
import longshore.aio
import longshore.cluster_resolver
import longshore.zenml
from longshore import _native

STUBS = Path(longshore.__file__).with_name("_native.pyi")


def arguments(function):
    """The names of a stub's positional arguments, and of its keyword-only arguments."""
    given = function.args
    names = [one.arg for one in [*given.posonlyargs, *given.args]]
    return [name for name in names if name != "self"], [one.arg for one in given.kwonlyargs]


class Stubs(unittest.TestCase):
    def test_the_stubs_are_complete(self):
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
        for module in [longshore.cluster_resolver, longshore.zenml]:
            tree = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text())
            stubs = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
            self.assertEqual(sorted(stubs), module.__all__)
            for name, stub in stubs.items():
                with self.subTest(name):
                    self.complete(getattr(module, name), stub)

    def test_the_stubs_for_asyncio_have_the_same_methods(self):
        """Each method that waits is asynchronous there."""
        path = STUBS.with_name("aio.pyi")
        stubs = {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)}
        self.assertEqual({*stubs, "PortForward", "Run", "run"}, set(longshore.aio.__all__))
        for name in {*stubs} - {"WatchEvent"}:
            functions = (ast.FunctionDef, ast.AsyncFunctionDef)
            members = {node.name: node for node in stubs[name].body if isinstance(node, functions)}
            public = {one for one in vars(getattr(_native, name)) if not one.startswith("_")}
            self.assertEqual({one for one in members if not one.startswith("_")}, public, name)
            for member in public:
                value = vars(getattr(_native, name))[member]
                if callable(value):
                    with self.subTest(f"{name}.{member}"):
                        self.agree(value, members[member])

    def complete(self, own, stub):
        """Checks that a Python class and its stub have the same methods."""
        members = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
        for member, value in vars(own).items():
            if inspect.isfunction(value) and (member == "__init__" or not member.startswith("_")):
                self.agree(value, members[member])
            elif isinstance(value, property):
                self.assertIn(member, members)
        self.assertEqual({one for one in members if one not in vars(own)}, set())

    def test_functions(self):
        tree = ast.parse(STUBS.read_text())
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.agree(_native.assemble, functions["assemble"])
        self.agree(_native.quantity, functions["quantity"])
        self.agree(_native.launch, functions["launch"])
        self.agree(_native.find_run, functions["find_run"])

    def agree(self, value, stub):
        signature = inspect.signature(value).parameters.values()
        by_place = [one.name for one in signature if one.kind in (one.POSITIONAL_OR_KEYWORD, one.POSITIONAL_ONLY)]
        by_name = [one.name for one in signature if one.kind is one.KEYWORD_ONLY]
        self.assertEqual(([one for one in by_place if one != "self"], by_name), arguments(stub))

    def test_all_lists_the_names_of_the_package(self):
        tree = ast.parse(Path(longshore.__file__).read_text())
        assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
        (listed,) = [node.value for node in assigned if node.targets[0].id == "__all__"]
        self.assertEqual(ast.literal_eval(listed), longshore.__all__)
        self.assertEqual(longshore.__all__, sorted(set(longshore.__all__)))
        known = [name for name in vars(longshore) if name[0].isupper() and name != "TYPE_CHECKING"]
        own = {*known, *longshore._LAZY, "errors", "__version__"}
        self.assertEqual(set(longshore.__all__), own)
        for name in longshore.__all__:
            self.assertIsNotNone(getattr(longshore, name))
        # The lazily imported names are also imported under `TYPE_CHECKING`.
        (checked,) = [node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)]
        imported = {alias.name: node.module for node in checked.body for alias in node.names}
        self.assertEqual(imported, longshore._LAZY)

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_mypy_reads_the_stubs(self):
        uses = "".join(f"longshore.{name}\n" for name in longshore.__all__)
        code = f"import longshore\nfrom longshore import *\n{uses}"
        code += "count: int = len(Cluster().view('pods'))\nKubernetesClusterResolver().watch().next(timeout=1)\n"
        silent = ["--strict", "--no-incremental", "--follow-imports=silent", "-c"]
        found = {**os.environ, "MYPYPATH": str(Path(longshore.__file__).parents[1])}
        package = ["--strict", "--no-incremental", "--python-version", "3.10", "--package", "longshore"]
        checked = subprocess.run([sys.executable, "-m", "mypy", *package], capture_output=True, text=True, env=found)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        for text, expected in [(code, 0), ("import longshore\nlongshore.walk()\n", 1)]:
            command = [sys.executable, "-m", "mypy", *silent, text]
            checked = subprocess.run(command, capture_output=True, text=True, env=found)
            self.assertEqual(checked.returncode, expected, checked.stdout + checked.stderr)

    def test_a_missing_name_is_named(self):
        with self.assertRaisesRegex(AttributeError, "^module 'longshore' has no attribute 'walk'$"):
            longshore.walk


if __name__ == "__main__":
    unittest.main()
