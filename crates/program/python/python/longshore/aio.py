"""The client for asyncio: the same classes, whose methods return awaitables.

>>> import asyncio, longshore, os
>>> from longshore import aio
>>> async def names(kubeconfig: str | os.PathLike[str]) -> list[str]:
...     with aio.Cluster(kubeconfig=kubeconfig) as cluster:
...         namespaces = await cluster.view("namespaces")
...         return sorted([item.name async for item in namespaces])
>>> with longshore.EmbeddedCluster(pods=False) as embedded:
...     asyncio.run(names(embedded.kubeconfig))
['default', 'kube-node-lease', 'kube-public', 'kube-system']

No call needs a thread of Python. Cancelling a task cancels its request.
"""

from __future__ import annotations

import os

from . import _native
from ._aio_runs import Run, compare, find_run, run, runs
from ._native import Cache, Item, Leadership, PortForward, Proxy, Session, Stream, View, Watch
from .events import WatchEvent

__all__ = [
    "Cache",
    "Cluster",
    "Item",
    "Leadership",
    "PortForward",
    "Proxy",
    "Run",
    "Session",
    "Stream",
    "View",
    "Watch",
    "WatchEvent",
    "compare",
    "find_run",
    "run",
    "runs",
]


class Cluster(_native.Cluster):
    """A connection to a cluster, with the arguments of :class:`longshore.Cluster`."""

    def __new__(
        cls,
        url: str | None = None,
        *,
        kubeconfig: str | os.PathLike[str] | None = None,
        context: str | None = None,
        **hidden: bool,
    ) -> Cluster:
        arguments = {"kubeconfig": kubeconfig, "context": context, "asyncio": True, **hidden}
        return super().__new__(cls, url, **arguments)  # pyright: ignore[reportCallIssue]

    async def __aenter__(self) -> Cluster:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        self.close()
