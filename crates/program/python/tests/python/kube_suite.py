"""Runs the tests of the library ``kube`` 0.10 with ``longshore.kube`` in its place.

Usage: kube_suite.py SDIST stub|embedded

``stub`` uses the library's own stub of a server; ``embedded`` an embedded cluster behind the last
kubectl of LONGSHORE_TEST_KUBECTLS, as a proxy.
"""

import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
import types
from pathlib import Path
from typing import Any

import pytest

import longshore
import longshore.kube

from pods import present

#: Tests that are left out, with the reasons. A name is a part of the test's ID.
EXCLUDED = {
    "the library documents that items of one version are equal, but compared their identity": [
        "Item::test_fetch",
        "Resource::test_fetch",
    ],
    "a time has its zone": ["test_util.py::test_parse_rfc3339"],
    "they replace or test parts of the library requests": [
        "test_cluster.py::TestAPIServerProxy::test_close",
        "test_cluster.py::TestCluster::test_api_path_call",
        "test_util.py::test_api_path_unsuccessful",
        "test_util.py::test_find_api_path_successful",
        "test_util.py::test_jsond_decode",
    ],
}

#: Further tests that are left out with the library's stub.
EXCLUDED_WITH_STUB = {
    "they replace or test parts of the library requests": [
        "test_cluster.py::TestAPIServerProxy::test_delete_",
        "test_cluster.py::TestAPIServerProxy::test_get_",
        "test_cluster.py::TestAPIServerProxy::test_patch_",
        "test_cluster.py::TestAPIServerProxy::test_post_",
    ],
}

#: Further tests that are left out on the embedded cluster.
EXCLUDED_ON_EMBEDDED = {
    "they read the socket of a watcher": ["test_node.py::TestNodeResource::test_watch_contextmgr"],
    "they use paths that Kubernetes does not have, such as api/v1/daemonsets": [
        "test_daemonset.py",
        "test_deployment.py",
        "test_replicaset.py",
    ],
    "their manifest is invalid: the selector of a ReplicationController has no matchLabels": [
        "test_replicationcontroller.py",
    ],
    "an earlier test has set the label, so its patch changes nothing": ["test_pod.py::TestPodView::test_watch[pause]"],
    "every namespace has a label since Kubernetes 1.21": ["test_meta.py::TestCluster::test_no_labels"],
}

#: The names of the library's modules, and the modules here.
MODULES = {"_replicationcontroller": "_replicaset"}


def replace_library(folder: Path) -> None:
    """Makes ``import kube`` import ``longshore.kube``, with the names of the library's modules."""
    kube: Any = longshore.kube
    sys.modules["kube"] = kube
    for path in sorted((folder / "kube").glob("_*.py")):
        name = path.stem
        if name in ("__init__", "_testing", "_error"):
            continue
        module = importlib.import_module(f"longshore.kube.{MODULES.get(name, name)}")
        sys.modules[f"kube.{name}"] = module
        setattr(kube, name, module)
    error = types.ModuleType("kube._error")
    for name in ["KubeError", "APIError", "StatusError", "NamespaceError"]:
        setattr(error, name, getattr(kube, name))
    sys.modules["kube._error"] = kube._error = error
    # The stub is a part of the tests.
    spec = importlib.util.spec_from_file_location("kube._testing", folder / "kube/_testing.py")
    kube._testing = sys.modules["kube._testing"] = importlib.util.module_from_spec(present(spec))
    present(present(spec).loader).exec_module(kube._testing)


class Plugin:
    """What the suite needs from its environment."""

    embedded: longshore.EmbeddedCluster

    def __init__(self, excluded: "list[str]") -> None:
        self.names = set(excluded)
        self.unused = set(self.names)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        excluded = []
        for item in items:
            found = {name for name in self.names if name in item.nodeid}
            self.unused -= found
            if found:
                excluded.append(item)
        config.hook.pytest_deselected(items=excluded)
        items[:] = [item for item in items if item not in excluded]

    @pytest.fixture(scope="session")
    def xprocess(self) -> "Plugin":
        """The suite starts kubectl proxy with it."""
        return self

    def ensure(self, _name: str, _prepare: object) -> tuple[int, None]:
        kubectl = os.environ["LONGSHORE_TEST_KUBECTLS"].split(os.pathsep)[-1]
        command = [kubectl, "--kubeconfig", str(self.embedded.kubeconfig), "proxy", "--port", "8001"]
        proxy = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = present(proxy.stdout).readline()
        assert "Starting to serve" in line, line
        return proxy.pid, None


def main(sdist: str, mode: str) -> int:
    further = {"stub": EXCLUDED_WITH_STUB, "embedded": EXCLUDED_ON_EMBEDDED}[mode]
    excluded = [*EXCLUDED.items(), *further.items()]
    plugin = Plugin([name for _, names in excluded for name in names])
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (suite,) = Path(folder).iterdir()
        replace_library(suite)
        arguments = [str(suite / "tests"), "-q", "-p", "no:cacheprovider", "-W", "ignore", "--tb=short", "-rf"]
        if mode == "embedded":
            with longshore.EmbeddedCluster() as plugin.embedded:
                code = pytest.main([*arguments, "--verify", "embedded"], plugins=[plugin])
        else:
            code = pytest.main(arguments, plugins=[plugin])
    for reason, names in excluded:
        print(f"left out, because {reason}: {', '.join(names)}")
    if plugin.unused:
        print(f"no test has these names: {', '.join(sorted(plugin.unused))}")
        return 1
    return int(code)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
