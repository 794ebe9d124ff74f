"""Nodes."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .. import _native
from ..errors import StatusError
from . import _base
from ._util import OpenEnum, statusproperty

_API_PATHS = ["api/v1"]


class AddressType(OpenEnum):
    """The type of an address of a node."""

    ExternalIP = "ExternalIP"
    InternalIP = "InternalIP"
    Hostname = "Hostname"
    ExternalDNS = "ExternalDNS"
    InternalDNS = "InternalDNS"
    LegacyHostIP = "LegacyHostIP"


class Address(NamedTuple):
    """An address of a node. ``addr`` is a text for host names."""

    type: AddressType
    addr: ipaddress.IPv4Address | ipaddress.IPv6Address | str


class NodeView(_base.BaseView["NodeItem"], _base.ViewABC["NodeItem"]):
    """The nodes."""

    kind = _base.Kind.NodeList
    resource = "nodes"
    api_paths = _API_PATHS
    _namespaced = False


class NodeItem(_base.BaseItem, _base.ItemABC):
    """A node."""

    kind = _base.Kind.Node
    resource = "nodes"
    api_paths = _API_PATHS
    AddressType = AddressType

    @property
    def addresses(self) -> Iterator[Address]:
        """The addresses; none if the node reports none.

        :raises kube.StatusError: For an IP address that is not one.
        """
        for address in self.raw.get("status", {}).get("addresses", ()):
            which = AddressType(address["type"])
            is_ip = which.value.endswith("IP")
            try:
                yield Address(which, ipaddress.ip_address(address["address"]) if is_ip else address["address"])
            except ValueError as error:
                raise StatusError(f"{self!r}: {error}") from error

    @statusproperty
    def capacity(self) -> Mapping[str, int | float]:
        """The resources: CPUs as a number with fractions, all others (memory in bytes) as whole numbers."""
        return _amounts(self.raw["status"]["capacity"])

    @statusproperty
    def allocatable(self) -> Mapping[str, int | float]:
        """The part of ``capacity`` that pods can use."""
        return _amounts(self.raw["status"]["allocatable"])

    @statusproperty
    def conditions(self) -> list[Any]:
        """The conditions: mappings with ``type``, ``status`` (``True``, ``False``, ``Unknown``), ``reason``."""
        return list(self.raw["status"]["conditions"])


def _amounts(quantities: Mapping[str, str]) -> dict[str, int | float]:
    values = {name: _native.quantity(text) for name, text in quantities.items()}
    return {name: int(value) if value.is_integer() else value for name, value in values.items()}
