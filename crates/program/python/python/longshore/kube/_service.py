"""Services."""

from __future__ import annotations

import ipaddress

from ..errors import StatusError
from . import _base
from ._util import statusproperty

_API_PATHS = ["api/v1"]


class ServiceView(_base.BaseView["ServiceItem"], _base.ViewABC["ServiceItem"]):
    """The Services."""

    kind = _base.Kind.ServiceList
    resource = "services"
    api_paths = _API_PATHS


class ServiceItem(_base.BaseItem, _base.ItemABC):
    """A Service: one address for several pods."""

    kind = _base.Kind.Service
    resource = "services"
    api_paths = _API_PATHS

    @statusproperty
    def loadbalancer_ingress(self) -> set[ipaddress.IPv4Address | ipaddress.IPv6Address | str]:
        """The addresses of the load balancer: IP addresses, and host names as texts."""
        found: set[ipaddress.IPv4Address | ipaddress.IPv6Address | str] = set()
        for point in self.raw["status"]["loadBalancer"]["ingress"]:
            if "ip" in point:
                found.add(ipaddress.ip_address(point["ip"]))
            elif "hostname" in point:
                found.add(point["hostname"])
            else:
                raise StatusError(f"{self!r}: a load balancer has neither an IP address nor a host name")
        return found
