"""The exceptions. Each message says what failed, why, and what to do."""

from __future__ import annotations

from ._response import Response

#: As in ``typing``, whose import takes long.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class KubeError(Exception):
    """The base class of all exceptions of this package."""


class APIError(KubeError):
    """The server returned an error, or a response that cannot be decoded.

    ``message`` is the text. ``server_message``, ``status_code``, ``reason``, ``details`` (a dict)
    and ``retry_after`` (seconds) are the fields of the server's ``Status``, or ``None``.

    :param response: The response, with the attributes of one of the library requests, such as
        ``status_code``, ``text``, ``headers``, ``url`` and ``json()``; ``None`` if the server did not respond.
    """

    def __init__(self, response: Any, message: str | None = None) -> None:
        super().__init__(response, message)
        self.response = response
        self.message = message
        self.status_code: int | None = getattr(response, "status_code", None)

    def _field(self, name: str) -> Any:
        try:
            return self.response.json().get(name)
        except Exception:
            # The response of another HTTP library may have any body, or none.
            return None

    @property
    def server_message(self) -> str | None:
        message: str | None = self._field("message")
        return message

    @property
    def reason(self) -> str | None:
        reason: str | None = self._field("reason")
        return reason

    @property
    def details(self) -> dict[str, Any] | None:
        details: dict[str, Any] | None = self._field("details")
        return details

    @property
    def retry_after(self) -> float | None:
        seconds: float | None = getattr(self.response, "retry_after", None)
        return seconds

    def __str__(self) -> str:
        if self.response is None or isinstance(self.response, Response):
            # The message is complete.
            return self.message or ""
        parts = [part for part in (self.message, self.server_message) if part]
        return f"{'; '.join(parts)} [HTTP {self.status_code}]"


class NotFoundError(APIError, LookupError):
    """The object does not exist (404)."""


class ConflictError(APIError):
    """Another client changed the object first (409)."""


class AlreadyExistsError(APIError):
    """An object with this name already exists (409)."""


class ForbiddenError(APIError, PermissionError):
    """The user lacks a permission (403); the message names it."""


class UnreachableError(APIError, ConnectionError):
    """The cluster did not respond."""


class ClosedError(KubeError):
    """The cluster or the watch was closed."""


class NamespaceError(KubeError, ValueError):
    """A namespace is missing, contradicts another, or is not allowed."""


class StatusError(KubeError, AttributeError):
    """A status field is absent."""


class InvalidError(KubeError, ValueError):
    """An argument is invalid; no request was sent."""


class ConfigError(KubeError):
    """The configuration names no usable cluster."""


class WaitTimeoutError(KubeError, TimeoutError):
    """The timeout expired; the message contains the last state."""


class EmbeddedError(KubeError):
    """The embedded cluster cannot start."""


class LaunchError(KubeError):
    """A run cannot start: its code cannot be packed or uploaded, or the cluster rejects it."""


class PodError(KubeError, RuntimeError):
    """A pod is not a valid task: it is not running, has no address, or two selectors match it."""


class MissingTasksError(KubeError, TimeoutError):
    """Tasks were still missing when the timeout expired.

    ``missing`` maps each incomplete role to the number of its tasks, the number that it
    needs, and the reasons why tasks are missing.
    """

    missing: dict[str, tuple[int, int, list[str]]] = {}


class NotATaskError(KubeError, RuntimeError):
    """This process does not run in the pod of a task."""


class NoSuchTaskError(KubeError, ValueError):
    """The cluster spec does not have this job or task."""


class SpecError(KubeError, TypeError, ValueError):
    """The value is not a valid cluster spec."""
