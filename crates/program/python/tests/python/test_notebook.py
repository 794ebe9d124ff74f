"""Progress in notebooks, with a stand-in for IPython."""

import sys
import types
import unittest
from typing import Any
from unittest import mock

from longshore import _notebook

PENDING = {"role": "<b>", "pending": 2, "running": 0, "succeeded": 0, "failed": 0}


class Handle:
    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, value: Any) -> None:
        self.shown.append(value._repr_html_())


class Notebook(unittest.TestCase):
    def notebook(self, shell: object) -> Handle:
        """Modules as those of IPython; returns the display of the cell."""
        handle = Handle()
        ipython: Any = types.ModuleType("IPython")
        ipython.get_ipython = lambda: shell
        display: Any = types.ModuleType("IPython.display")
        display.display = lambda value, display_id: handle
        modules = {"IPython": ipython, "IPython.display": display}
        patch = mock.patch.dict(sys.modules, modules)
        patch.start()
        self.addCleanup(patch.stop)
        return handle

    def test_a_notebook_shows_progress_and_causes(self) -> None:
        handle = self.notebook(types.SimpleNamespace(kernel=object()))
        show = _notebook.progress("train")
        show({"event": "progress", "roles": [PENDING]})
        show({"event": "log", "role": "main", "index": 0, "line": "x"})
        show({"event": "waiting", "cause": "no node has <8> CPUs"})
        show({"event": "finished", "exitCode": 0, "reason": "all tasks succeeded"})
        self.assertEqual(len(handle.shown), 3)
        self.assertIn("<td>&lt;b&gt;</td><td>2</td>", handle.shown[0])
        self.assertIn("no node has &lt;8&gt; CPUs", handle.shown[1])
        self.assertIn("<td>2</td>", handle.shown[1])
        self.assertIn("all tasks succeeded", handle.shown[2])

    def test_terminals_show_nothing(self) -> None:
        handle = self.notebook(types.SimpleNamespace())
        _notebook.progress("train")({"event": "progress", "roles": [PENDING]})
        self.assertEqual(handle.shown, [])

    def test_programs_without_ipython_show_nothing(self) -> None:
        with mock.patch.dict(sys.modules):
            sys.modules.pop("IPython", None)
            _notebook.progress("train")({"event": "finished"})


if __name__ == "__main__":
    unittest.main()
