"""The cluster of a call: one rule for all calls, and one set of values for the argument ``cluster``."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import longshore
from longshore import aio
from longshore.testing import TestCluster

from launched import Launched
from pods import present

HAS_PYRSISTENT = importlib.util.find_spec("pyrsistent") is not None
if TYPE_CHECKING or HAS_PYRSISTENT:
    from longshore import kube

#: Launches runs by all calls that select a cluster by themselves, finds them by all others, and prints the URLs
#: of the connections.
CALLS = """
import asyncio, json, longshore, subprocess
from longshore import aio
async def use_asyncio():
    run = await aio.run(".", ["true"])
    return run.name, {found.name for found in await aio.runs()}, (await aio.find_run(run.name)).name
run = longshore.run(".", ["true"])
name, listed, found = asyncio.run(use_asyncio())
names = {run.name, name}
assert names <= listed and found == name, (names, listed)
for listing in [longshore.runs(), longshore.runs(cluster=longshore.Cluster()), longshore.runs(cluster=aio.Cluster())]:
    assert names <= {found.name for found in listing}, (names, listing)
assert longshore.find_run(name).name == longshore.Run(name).name == name
listing = subprocess.check_output(["longshore", "runs", "--output", "json"], text=True)
assert all(name in listing for name in names), listing
print(json.dumps([longshore.Cluster().url, aio.Cluster().url]))
"""


class Values(Launched):
    """Each value that stands for the same cluster, in each function with the argument ``cluster``."""

    def setUp(self) -> None:
        folder = self.folder(longshore_toml=f"[contexts.east]\nkubeconfig = '{self.embedded.kubeconfig}'\n")
        before = Path.cwd()
        self.addCleanup(os.chdir, before)
        os.chdir(folder)
        self.kubeconfig = self.embedded.kubeconfig

    def values(self) -> dict[str, Any]:
        return {
            "a cluster": self.cluster,
            "a cluster of a kubeconfig": longshore.Cluster(kubeconfig=self.kubeconfig),
            "a cluster for asyncio": aio.Cluster(kubeconfig=self.kubeconfig),
            "an embedded cluster": self.embedded,
            "a cluster of a test": TestCluster(self.cluster, str(self.kubeconfig), "default", None),
            "a kubeconfig": Path(self.kubeconfig),
            "the name of a context": "east",
            "a context of a kubeconfig": self.context(),
            **({"a cluster of kube": kube.Cluster.from_kubeconfig(self.kubeconfig)} if HAS_PYRSISTENT else {}),
        }

    def context(self) -> str:
        """The current context of the kubeconfig, which is kubectl's."""
        patched = mock.patch.dict(os.environ, {"KUBECONFIG": str(self.kubeconfig)})
        patched.start()
        self.addCleanup(patched.stop)
        found = re.search('current-context: *"?([^"\\s]+)', Path(self.kubeconfig).read_text())
        return present(found)[1]

    def test_all_values(self) -> None:
        known = longshore.run(".", ["true"], cluster=self.cluster)
        for name, value in self.values().items():
            with self.subTest(name):
                run = longshore.run(".", ["true"], cluster=value)
                self.assertEqual(run.wait(timeout=60).exit_code, 0)
                self.assertEqual(longshore.find_run(known.name, cluster=value).name, known.name)
                self.assertEqual(longshore.Run(known.name, "default", cluster=value).namespace, "default")
                listed = [summary.name for summary in longshore.runs(cluster=value)]
                self.assertLessEqual({known.name, run.name}, set(listed))
            with self.subTest(f"asyncio: {name}"):
                asyncio.run(self.use_asyncio(value, known))

    async def use_asyncio(self, value: Any, known: longshore.Run) -> None:
        run = await aio.run(".", ["true"], cluster=value)
        self.assertEqual((await run.wait(timeout=60)).exit_code, 0)
        found = await aio.find_run(known.name, cluster=value)
        self.assertEqual((found.name, await found.status()), (known.name, "succeeded"))
        listed = [summary.name for summary in await aio.runs(cluster=value)]
        self.assertLessEqual({known.name, run.name}, set(listed))

    def test_namespaces(self) -> None:
        self.cluster.create({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "team"}})
        run = longshore.run(".", ["true"], cluster=self.cluster, namespace="team")
        self.assertEqual(longshore.find_run(run.name, "team", cluster="east").name, run.name)
        self.assertEqual(longshore.Run(run.name, namespace="team", cluster="east").namespace, "team")
        with self.assertRaises(longshore.NotFoundError):
            longshore.find_run(run.name, cluster="east")
        Path("longshore.toml").write_text(f"[contexts.east]\nkubeconfig = '{self.kubeconfig}'\nnamespace = 'team'\n")
        self.assertEqual(longshore.find_run(run.name, cluster="east").name, run.name)

    def test_other_values(self) -> None:
        async def of_asyncio(value: Any) -> None:
            await aio.runs(cluster=value)

        for value in [3, b"east", object(), ["east"]]:
            calls: list[Callable[[Any], object]] = [
                lambda value: longshore.run(".", ["true"], cluster=value),
                lambda value: longshore.find_run("a", cluster=value),
                lambda value: longshore.runs(cluster=value),
                lambda value: longshore.Run("a", cluster=value),
                lambda value: asyncio.run(of_asyncio(value)),
            ]
            for call in calls:
                with self.subTest(value), self.assertRaisesRegex(TypeError, "cluster must be a longshore.Cluster, the name"):
                    call(value)
        with self.assertRaises(longshore.ConfigError):
            longshore.runs(cluster=Path("/no/such/kubeconfig"))
        with self.assertRaises(longshore.ConfigError):
            longshore.runs(cluster="no-such-context")


class OneRule(unittest.TestCase):
    """Calls without a cluster use the same one: that of the command ``longshore run``."""

    def test_all_calls_select_the_same_cluster(self) -> None:
        with tempfile.TemporaryDirectory() as home, longshore.EmbeddedCluster() as other:
            url, file = other.url, str(other.kubeconfig)
            folder = Path(home, "code")
            folder.mkdir()
            own = {name: value for name, value in os.environ.items() if name not in ("LONGSHORE_CONTEXT", "LONGSHORE_KUBECONFIG")}
            own |= {"LONGSHORE_DATA_DIR": f"{home}/data", "HOME": home, "KUBECONFIG": file}
            cases: list[tuple[dict[str, str], str, bool]] = [
                # kubectl's cluster, which may be that of production, only by a request.
                ({}, "", False),
                ({"LONGSHORE_KUBECONFIG": file}, "", True),
                ({"LONGSHORE_CONTEXT": "east"}, f"[contexts.east]\nkubeconfig = '{file}'\n", True),
                ({}, f"kubeconfig = '{file}'\n", True),
            ]
            try:
                for variables, settings, is_other in cases:
                    (folder / "longshore.toml").write_text(settings)
                    with self.subTest(variables=variables, settings=settings):
                        env = {**own, **variables}
                        done = subprocess.run([sys.executable, "-c", CALLS], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
                        self.assertEqual(done.returncode, 0, done.stderr)
                        urls = set(json.loads(done.stdout))
                        self.assertEqual(len(urls), 1, urls)
                        self.assertEqual(urls == {url}, is_other, urls)
                code = "import longshore; print(longshore.Cluster.from_kubeconfig().url)"
                found = subprocess.check_output([sys.executable, "-c", code], cwd=folder, env=own, text=True)
                self.assertEqual(found.strip(), url)
            finally:
                subprocess.run(["longshore", "down", "--force"], env=own, capture_output=True, check=False)


if __name__ == "__main__":
    unittest.main()
