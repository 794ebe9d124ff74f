"""What can go wrong. Each message says what failed, why, and what to do."""


class KubeError(Exception):
    """The base of all of them."""


class APIError(KubeError):
    """The server refused, or its answer cannot be read.

    ``server_message``, ``status_code``, ``reason``, ``details`` (a dict) and
    ``retry_after`` (seconds) are what the server said; ``None`` where it said nothing.
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
    """The server does not have it (404)."""


class ConflictError(APIError):
    """Somebody else changed it first (409)."""


class AlreadyExistsError(APIError):
    """An object of that name is there already (409)."""


class ForbiddenError(APIError, PermissionError):
    """The token lacks a right (403); the message names it."""


class UnreachableError(APIError, ConnectionError):
    """No answer from the cluster."""


class ClosedError(KubeError):
    """The cluster or the watch was closed."""


class NamespaceError(KubeError, ValueError):
    """A namespace is missing, contradicts another, or is not allowed."""


class StatusError(KubeError, AttributeError):
    """A status field is absent."""


class InvalidError(KubeError, ValueError):
    """An argument was refused before any request."""


class ConfigError(KubeError):
    """The configuration does not lead to a cluster."""


class WaitTimeoutError(KubeError, TimeoutError):
    """Time ran out; the message tells the last state."""


class EmbeddedError(KubeError):
    """The embedded cluster does not start."""


class LaunchError(KubeError):
    """A run does not start: its code cannot be packed or sent, or the cluster refuses it."""


class PodError(KubeError, RuntimeError):
    """A pod does not make a task: it does not run, has no address, is matched twice."""


class MissingTasksError(KubeError, TimeoutError):
    """Not all tasks were there in time.

    ``missing`` maps each such role to how many it has, how many it needs, and what is
    known of the others.
    """

    missing = {}


class NotATaskError(KubeError, RuntimeError):
    """The process runs in none of the tasks' pods."""


class NoSuchTaskError(KubeError, ValueError):
    """A job or a task that the cluster spec does not have."""


class SpecError(KubeError, TypeError, ValueError):
    """What was given is no cluster spec."""
