"""The type stubs match the extension module: the same names and the same arguments."""

import ast
import doctest
import inspect
import sys
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any

import longshore
import longshore.aio
import longshore.cluster_resolver
import longshore.types
import longshore.zenml
from longshore import _native

from pods import present

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import generate_aio
import generate_docstrings
import generate_types

STUBS = Path(longshore.__file__).with_name("_native.pyi")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def arguments(function: Function) -> tuple[list[str], list[str]]:
    """The names of a stub's positional arguments, and of its keyword-only arguments."""
    given = function.args
    names = [one.arg for one in [*given.posonlyargs, *given.args]]
    return [name for name in names if name != "self"], [one.arg for one in given.kwonlyargs]


def classes(path: Path) -> dict[str, ast.ClassDef]:
    """The classes of a file, by name."""
    return {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)}


def methods(stub: ast.ClassDef, bases_path: Path = STUBS.with_name("_kinds.pyi")) -> dict[str, Function]:
    """The methods of a stub, with those of its base class, which is in another stub."""
    kinds = classes(bases_path)
    bases = [kinds[base.id].body for base in stub.bases if isinstance(base, ast.Name) and base.id in kinds]
    return {node.name: node for body in [*bases, stub.body] for node in body if isinstance(node, FUNCTIONS)}


class Stubs(unittest.TestCase):
    def test_the_stubs_are_complete(self) -> None:
        stubs = {name: stub for name, stub in classes(STUBS).items() if not name.startswith("_")}
        own = {name for name, value in vars(_native).items() if inspect.isclass(value)}
        self.assertEqual(set(stubs), own)
        for name, stub in stubs.items():
            members = methods(stub)
            public = {one for one in vars(getattr(_native, name)) if not one.startswith("_")}
            self.assertEqual({one for one in members if not one.startswith("_")}, public, name)
            for member in public:
                value = vars(getattr(_native, name))[member]
                if callable(value):
                    with self.subTest(f"{name}.{member}"):
                        self.agree(value, members[member])
        for module in [longshore.cluster_resolver, longshore.zenml]:
            path = Path(present(module.__file__)).with_suffix(".pyi")
            stubs = {name: stub for name, stub in classes(path).items() if not name.startswith("_")}
            self.assertEqual(sorted(stubs), module.__all__)
            for name, stub in stubs.items():
                with self.subTest(name):
                    self.complete(getattr(module, name), methods(stub, path))

    def test_the_stubs_for_asyncio_have_the_same_methods(self) -> None:
        """Each method that waits is asynchronous there."""
        stubs = classes(STUBS.with_name("aio.pyi"))
        self.assertEqual({*stubs, "PortForward", "Run", "compare", "find_run", "run", "runs"}, {"_Event", *longshore.aio.__all__})
        for name in {*stubs} - {"_Event", "WatchEvent"}:
            members = methods(stubs[name])
            public = {one for one in vars(getattr(_native, name)) if not one.startswith("_")}
            self.assertEqual({one for one in members if not one.startswith("_")}, public, name)
            for member in public:
                value = vars(getattr(_native, name))[member]
                if callable(value):
                    with self.subTest(f"{name}.{member}"):
                        self.agree(value, members[member])

    def complete(self, own: type, members: dict[str, Function]) -> None:
        """Checks that a Python class and its stub have the same methods."""
        for member, value in vars(own).items():
            if inspect.isfunction(value) and (member == "__init__" or not member.startswith("_")):
                self.agree(value, members[member])
            elif isinstance(value, property):
                self.assertIn(member, members)
        self.assertEqual({one for one in members if one not in vars(own)}, set())

    def test_functions(self) -> None:
        tree = ast.parse(STUBS.read_text())
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.agree(_native.assemble, functions["assemble"])
        self.agree(_native.quantity, functions["quantity"])
        self.agree(_native.launch, functions["launch"])
        self.agree(_native.find_run, functions["find_run"])
        self.agree(_native.list_runs, functions["list_runs"])
        self.agree(_native.selected_cluster, functions["selected_cluster"])
        self.agree(_native.settings_keys, functions["settings_keys"])
        self.agree(_native.nearest, functions["nearest"])

    def agree(self, value: Any, stub: Function) -> None:
        signature = inspect.signature(value).parameters.values()
        by_place = [one.name for one in signature if one.kind in (one.POSITIONAL_OR_KEYWORD, one.POSITIONAL_ONLY)]
        by_name = [one.name for one in signature if one.kind is one.KEYWORD_ONLY]
        self.assertEqual(([one for one in by_place if one != "self"], by_name), arguments(stub))

    def test_all_lists_the_names_of_the_package(self) -> None:
        tree = ast.parse(Path(longshore.__file__).read_text())
        assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
        (listed,) = [node.value for node in assigned if ast.unparse(node.targets[0]) == "__all__"]
        self.assertEqual(ast.literal_eval(listed), longshore.__all__)
        self.assertEqual(longshore.__all__, sorted(set(longshore.__all__)))
        known = [name for name in vars(longshore) if name[0].isupper() and name != "TYPE_CHECKING"]
        own = {*known, *longshore._LAZY, "errors", "__version__"}
        self.assertEqual(set(longshore.__all__), own)
        for name in longshore.__all__:
            self.assertIsNotNone(getattr(longshore, name))
        # The lazily imported names are also imported under `TYPE_CHECKING`.
        (checked,) = [node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)]
        imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
        imported = {alias.name: node.module for node in imports for alias in node.names}
        self.assertEqual(imported, longshore._LAZY)

    def test_a_missing_name_is_named(self) -> None:
        with self.assertRaisesRegex(AttributeError, "^module 'longshore' has no attribute 'walk'$"):
            longshore.walk  # type: ignore[attr-defined]


class Generated(unittest.TestCase):
    def test_the_generated_files_are_up_to_date(self) -> None:
        with longshore.EmbeddedCluster(pods=False) as embedded:
            files = generate_types.generate(embedded.cluster)
        self.assertEqual(sorted(files), ["_kinds.pyi", "types.pyi"])
        for name, text in files.items():
            self.check(name, text, generate_types)
        self.check("_native.pyi", generate_docstrings.generate(), generate_docstrings)
        self.check("aio.pyi", generate_aio.generate(), generate_aio)

    def check(self, name: str, text: str, generator: ModuleType) -> None:
        # `assertEqual` would print the files.
        same = STUBS.with_name(name).read_text() == text
        self.assertTrue(same, f"{name} is out of date: run {generator.__file__}")

    def test_the_types_can_be_imported(self) -> None:
        names = classes(STUBS.with_name("types.pyi"))
        self.assertGreater(len(names), 300)
        for name in names:
            self.assertIs(getattr(longshore.types, name), dict)
        with self.assertRaisesRegex(AttributeError, "^module 'longshore.types' has no attribute 'pod'$"):
            longshore.types.pod  # type: ignore[attr-defined]
        self.assertEqual(doctest.testmod(longshore.types), (0, 3))


if __name__ == "__main__":
    unittest.main()
