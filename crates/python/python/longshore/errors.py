"""The exceptions. Each message says what failed, why, and what to do."""


class KubeError(Exception):
    """The base class of all exceptions of this package."""


class APIError(KubeError):
    """The server returned an error, or a response that cannot be decoded.

    ``server_message``, ``status_code``, ``reason``, ``details`` (a dict) and
    ``retry_after`` (seconds) are the fields of the server's ``Status``, or ``None``.
    """

    def __init__(
        self,
        message,
        *,
        server_message=None,
        status_code=None,
        reason=None,
        details=None,
        retry_after=None,
    ):
        super().__init__(message)
        self.message = message
        self.server_message = server_message
        self.status_code = status_code
        self.reason = reason
        self.details = details
        self.retry_after = retry_after


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

    missing = {}


class NotATaskError(KubeError, RuntimeError):
    """This process does not run in the pod of a task."""


class NoSuchTaskError(KubeError, ValueError):
    """The cluster spec does not have this job or task."""


class SpecError(KubeError, TypeError, ValueError):
    """The value is not a valid cluster spec."""
