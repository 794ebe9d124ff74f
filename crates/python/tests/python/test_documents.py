"""Runs the examples in the docstrings and in docs/python.md."""

import doctest
import unittest
from pathlib import Path

import longshore
import longshore.cluster_resolver
import longshore.zenml

from pods import WithCluster

DOCUMENT = Path(__file__).parents[4] / "docs/python.md"


class Documents(WithCluster):
    def globals(self):
        """A cluster with the pods of a training job."""
        for index, ip in enumerate(["10.0.0.1", "10.0.0.2"]):
            self.add(f"train-{index}", ip=ip, labels={"job-name": "train"}, gpus=1)
        return {"cluster": self.cluster}

    def check(self, results):
        self.assertGreater(results.attempted, 0)
        self.assertEqual(results.failed, 0)

    def test_docstrings(self):
        self.check(doctest.testmod(longshore))
        self.check(doctest.testmod(longshore.cluster_resolver, extraglobs=self.globals()))
        self.check(doctest.testmod(longshore.zenml))

    def test_the_document(self):
        self.check(doctest.testfile(str(DOCUMENT), module_relative=False, globs=self.globals(), optionflags=doctest.ELLIPSIS))


if __name__ == "__main__":
    unittest.main()
