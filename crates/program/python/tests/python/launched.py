"""A cluster with pods for tests that launch runs."""

import tempfile
import unittest
from pathlib import Path

import longshore


class Launched(unittest.TestCase):
    """Tests on one cluster with pods."""

    embedded: longshore.EmbeddedCluster
    cluster: longshore.Cluster

    @classmethod
    def setUpClass(cls) -> None:
        cls.embedded = longshore.EmbeddedCluster()
        cls.addClassCleanup(cls.embedded.stop)
        cls.cluster = cls.embedded.cluster

    def folder(self, **files: str) -> Path:
        """A folder ``code`` with these files; ``_`` stands for a dot in their names."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = Path(folder.name, "code")
        path.mkdir()
        for name, text in files.items():
            (path / name.replace("_", ".")).write_text(text)
        return path

    def lines(self, run: longshore.Run) -> list[str]:
        """The lines of all tasks, sorted."""
        return sorted(str(line) for line in run.logs())
