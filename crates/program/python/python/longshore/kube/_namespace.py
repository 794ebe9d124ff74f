"""Namespaces."""

from ..errors import APIError
from . import _base
from ._util import OpenEnum, statusproperty

_API_PATHS = ["api/v1"]


class NamespaceView(_base.BaseView["NamespaceItem"], _base.ViewABC["NamespaceItem"]):
    """The namespaces."""

    kind = _base.Kind.NamespaceList
    resource = "namespaces"
    api_paths = _API_PATHS
    _namespaced = False


class NamespacePhase(OpenEnum):
    """The phase of a namespace."""

    Active = "Active"
    Terminating = "Terminating"


#: Inside the class of the items, the name is an alias of this.
_NamespacePhase = NamespacePhase


class NamespaceItem(_base.BaseItem, _base.ItemABC):
    """A namespace."""

    kind = _base.Kind.Namespace
    resource = "namespaces"
    api_paths = _API_PATHS
    NamespacePhase = NamespacePhase

    def delete(self) -> None:
        """Deletes the namespace. It is no error if it no longer exists, or is already being deleted."""
        try:
            super().delete()
        except APIError as error:
            if error.status_code != 409:
                raise

    @statusproperty
    def phase(self) -> _NamespacePhase:
        """The phase."""
        return NamespacePhase(self.raw["status"]["phase"])
