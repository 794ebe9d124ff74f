"""Requests by path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from .. import _native
from . import _util, _watch


class APIServerProxy:
    """Sends requests by path over pooled connections.

    :param base_url: The URL of a server that requires no credentials, such as ``kubectl proxy``.
    """

    def __init__(self, base_url: str = "http://localhost:8001/") -> None:
        self._open(_native.Cluster(base_url), base_url)

    @classmethod
    def of(cls, native: _native.Cluster) -> APIServerProxy:
        """The proxy of an existing connection, with its credentials."""
        proxy = cls.__new__(cls)
        proxy._open(native, native.url)
        return proxy

    def _open(self, native: _native.Cluster, url: str) -> None:
        #: The connection.
        self.native = native
        self.base_url = url if url.endswith("/") else url + "/"
        self._proxy = native.proxy()

    def close(self) -> None:
        """Closes the connections. Later requests raise :class:`longshore.ClosedError`."""
        self.native.close()

    def urljoin(self, *path: str) -> str:
        """The URL of a path, given as one text or in parts."""
        return self._proxy.urljoin(list(path))

    def get(self, *path: str, **params: Any) -> Any:
        """GET; the keyword arguments are query parameters.

        :returns: The answer, immutable.
        :raises kube.APIError: For errors of the server, and if it does not respond.
        """
        return _util.freeze(self._proxy.request("GET", list(path), _query(params), None, None))

    def post(self, *path: str, json: Any = None, **params: Any) -> Any:
        """POST with a JSON body; otherwise as :meth:`get`."""
        return _util.freeze(self._proxy.request("POST", list(path), _query(params), json, None))

    def put(self, *path: str, json: Any = None, **params: Any) -> Any:
        """PUT with a JSON body; otherwise as :meth:`get`."""
        return _util.freeze(self._proxy.request("PUT", list(path), _query(params), json, None))

    def delete(self, *path: str, json: Any = None, **params: Any) -> Any:
        """DELETE, with or without a JSON body; otherwise as :meth:`get`."""
        return _util.freeze(self._proxy.request("DELETE", list(path), _query(params), json, None))

    def patch(self, *path: str, patch: Any = None, kind: str = "strategic", **params: Any) -> Any:
        """PATCH; otherwise as :meth:`get`.

        :param kind: The kind of the patch: ``strategic``, ``merge``, ``json`` or ``apply``.
        """
        return _util.freeze(self._proxy.request("PATCH", list(path), _query(params), patch, kind))

    def watch(
        self, *path: str, version: str | None = None, fields: Mapping[str, Any] | None = None
    ) -> _watch.JSONWatcher:
        """Watches a path.

        :param version: The resource version to start after; default: the events start with all objects.
        :param fields: Values that the objects must have, by dotted names such as ``metadata.name``.
        """
        return _watch.JSONWatcher(self, *path, version=version, fields=fields)

    def open_watch(
        self, path: tuple[str, ...], version: str | None, fields: Mapping[str, Any] | None
    ) -> _native.Stream[dict[str, Any]]:
        params = {} if version is None else {"resourceVersion": version}
        return self._proxy.watch(list(path), _query(params), _query(fields or {}) or None)

    def __enter__(self) -> APIServerProxy:
        return self

    def __exit__(self, *_raised: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<APIServerProxy {self.base_url}>"


def connect(kubeconfig: str | os.PathLike[str] | None, context: str | None) -> APIServerProxy:
    """The proxy of the cluster of a kubeconfig, or of the pod's service account."""
    return APIServerProxy.of(_native.Cluster.from_kubeconfig(kubeconfig, context))


def _query(params: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = []
    for name, value in params.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is not None:
                pairs.append((name, str(one).lower() if isinstance(one, bool) else str(one)))
    return pairs
