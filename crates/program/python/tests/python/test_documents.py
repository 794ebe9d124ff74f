"""Runs the examples in the docstrings and in the documentation."""

import doctest
import importlib.util
import re
import unittest
from pathlib import Path
from typing import Any

import longshore
import longshore._runs
import longshore.aio
import longshore.cluster_resolver
import longshore.testing
import longshore.zenml

from pods import WithCluster

DOCUMENTS = Path(__file__).parents[5] / "docs"
HAS_PYRSISTENT = importlib.util.find_spec("pyrsistent") is not None


class Documents(WithCluster):
    def globals(self) -> dict[str, Any]:
        """A cluster with the pods of a training job."""
        for index, ip in enumerate(["10.0.0.1", "10.0.0.2"]):
            self.add(f"train-{index}", ip=ip, labels={"job-name": "train"}, gpus=1)
        return {"cluster": self.cluster, "kubeconfig": self.embedded.kubeconfig}

    def check(self, results: doctest.TestResults) -> None:
        self.assertGreater(results.attempted, 0)
        self.assertEqual(results.failed, 0)

    def test_docstrings(self) -> None:
        self.check(doctest.testmod(longshore))
        self.check(doctest.testmod(longshore.aio))
        self.check(doctest.testmod(longshore._runs))
        self.check(doctest.testmod(longshore.testing))
        self.check(doctest.testmod(longshore.cluster_resolver, extraglobs=self.globals()))
        self.check(doctest.testmod(longshore.zenml))

    def document(self, name: str) -> None:
        path = str(DOCUMENTS / name)
        self.check(doctest.testfile(path, module_relative=False, globs=self.globals(), optionflags=doctest.ELLIPSIS))

    def test_the_guide(self) -> None:
        self.document("python.md")

    def test_the_guide_to_tensorflows_resolvers(self) -> None:
        self.document("python-resolver.md")

    def run_the_block(self, name: str) -> None:
        text = (DOCUMENTS / name).read_text()
        (block,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        exec(block, {})

    def test_the_page_on_snapshots(self) -> None:
        self.run_the_block("snapshots.md")

    def test_the_page_on_the_clock(self) -> None:
        self.run_the_block("clock.md")

    @unittest.skipUnless(HAS_PYRSISTENT, "pyrsistent is not installed")
    def test_the_guide_to_kube(self) -> None:
        import longshore.kube

        self.check(doctest.testmod(longshore.kube))
        self.document("python-kube.md")


if __name__ == "__main__":
    unittest.main()
