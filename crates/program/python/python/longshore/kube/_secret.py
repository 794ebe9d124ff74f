"""Secrets."""

from __future__ import annotations

import base64
from typing import Any

from . import _base
from ._util import OpenEnum

_API_PATHS = ["api/v1"]


class SecretView(_base.BaseView["SecretItem"], _base.ViewABC["SecretItem"]):
    """The Secrets."""

    kind = _base.Kind.SecretList
    resource = "secrets"
    api_paths = _API_PATHS


class SecretType(OpenEnum):
    """The type of a Secret."""

    Opaque = "Opaque"
    BasicAuth = "kubernetes.io/basic-auth"
    BootstrapToken = "bootstrap.kubernetes.io/token"
    DockerCfg = "kubernetes.io/dockercfg"
    DockerConfigJson = "kubernetes.io/dockerconfigjson"
    ServiceAccountToken = "kubernetes.io/service-account-token"
    SshAuth = "kubernetes.io/ssh-auth"
    Tls = "kubernetes.io/tls"


#: Inside the class of the items, the name is an alias of this.
_SecretType = SecretType


class SecretItem(_base.BaseItem, _base.ItemABC):
    """A Secret. Its text form shows no data."""

    kind = _base.Kind.Secret
    resource = "secrets"
    api_paths = _API_PATHS
    SecretType = SecretType

    def spec(self) -> dict[str, Any]:
        """An empty dict: Secrets have no ``spec``."""
        return {}

    @property
    def type(self) -> _SecretType:
        """The type."""
        return SecretType(self.raw.get("type", "Opaque"))

    @property
    def data(self) -> dict[str, bytes]:
        """The decoded values by name; a new dict."""
        return {name: base64.b64decode(value) for name, value in (self.raw.get("data") or {}).items()}
