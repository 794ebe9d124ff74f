"""The cluster of a call: any value that the argument ``cluster`` accepts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _native

#: The attributes that lead from other classes to the connection: ``EmbeddedCluster``, ``TestCluster``
#: and ``Replay``; ``kube.Cluster``.
_CONNECTIONS = ("cluster", "native")


if TYPE_CHECKING:
    from . import aio, kube
    from .testing import TestCluster

    #: What the argument ``cluster`` accepts.
    AnyCluster: TypeAlias = (
        _native.Cluster | aio.Cluster | kube.Cluster | _native.EmbeddedCluster | _native.Replay | TestCluster
        | str | os.PathLike[str] | None
    )


def connection(cluster: Any) -> _native.Cluster | None:
    """The connection of an object that stands for a cluster; ``None`` for another object."""
    if isinstance(cluster, _native.Cluster):
        return cluster
    for name in _CONNECTIONS:
        found = None if isinstance(cluster, (str, os.PathLike)) else getattr(cluster, name, None)
        if isinstance(found, _native.Cluster):
            return found
    return None


def choose(cluster: Any, folder: Path = Path()) -> tuple[_native.Cluster, str | None]:
    """The connection, and the context that the folder's ``longshore.toml`` or the caller names.

    :raises TypeError: For a value that is not a cluster.
    """
    if cluster is None or isinstance(cluster, str):
        return _native.selected_cluster(folder, cluster)
    if isinstance(cluster, os.PathLike):
        return _native.Cluster(kubeconfig=cluster), None
    return _required(cluster, asyncio=False), None


async def choose_async(cluster: Any, folder: Path = Path()) -> tuple[Any, str | None]:
    """As :func:`choose`, for asyncio."""
    if cluster is None or isinstance(cluster, str):
        selecting: Any = _native.selected_cluster(folder, cluster, asyncio=True)
        chosen: tuple[Any, str | None] = await selecting
        return chosen
    if isinstance(cluster, os.PathLike):
        from .aio import Cluster

        return Cluster(kubeconfig=cluster), None
    return _required(cluster, asyncio=True), None


def _required(cluster: Any, *, asyncio: bool) -> _native.Cluster:
    found = connection(cluster)
    if found is None:
        raise TypeError(
            "cluster must be a longshore.Cluster, the name of a context, or the path of a kubeconfig as a "
            f"pathlib.Path, not {type(cluster).__name__}"
        )
    return found._facing(asyncio=asyncio)
