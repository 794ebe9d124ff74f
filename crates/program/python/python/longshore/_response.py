"""The response of a server in an error, as the library requests has it."""

from __future__ import annotations

import json
from http import HTTPStatus

#: As in ``typing``, whose import takes long.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


class Headers(dict[str, str]):
    """The headers of a response. The case of their names does not matter."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__({name.lower(): value for name, value in headers.items()})

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        """The header, or the default."""
        return super().get(name.lower(), default)


class Response:
    """The server's response, with the attributes of a ``Response`` of the library requests.

    :param status: The ``Status`` of the Kubernetes API: the server's, or, of a response with another body,
        one that describes it.
    :param retry_after: The seconds to wait before another attempt, or ``None``.
    :param method: The method of the request.
    :param url: The URL of the request.
    :param headers: The headers of the response.
    :param content: The body of the response.
    """

    #: Encodings of JSON are UTF-8.
    encoding = "utf-8"
    apparent_encoding = "utf-8"
    #: Redirects are not followed.
    history: tuple[Response, ...] = ()
    next = None

    def __init__(
        self,
        status_code: int,
        status: Mapping[str, Any],
        retry_after: float | None = None,
        *,
        method: str = "",
        url: str = "",
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> None:
        self.status_code = status_code
        self.retry_after = retry_after
        self.method = method
        self.url = url
        #: The headers of the response, by names in any case.
        self.headers = Headers(headers or {"content-type": "application/json"})
        self._status = dict(status)
        #: The body in bytes.
        self.content = json.dumps(self._status).encode() if content is None else content

    @property
    def text(self) -> str:
        """The body."""
        return self.content.decode("utf-8", errors="replace")

    @property
    def reason(self) -> str:
        """The reason phrase of the status code, such as ``Not Found``."""
        try:
            return HTTPStatus(self.status_code).phrase
        except ValueError:
            return ""

    @property
    def ok(self) -> bool:
        """Returns true if the status code is less than 400."""
        return self.status_code < 400

    @property
    def is_redirect(self) -> bool:
        """Returns true if the server redirects the request."""
        return 300 <= self.status_code < 400 and "location" in self.headers

    is_permanent_redirect = is_redirect

    def json(self, **options: Any) -> Any:
        """The body's JSON; of a body that is not JSON, the ``Status`` that describes it: a dict with ``message``,
        ``reason``, ``details``, ``code``.

        :param options: Those of ``json.loads``.
        """
        try:
            found = json.loads(self.content, **options)
        except ValueError:
            return dict(self._status)
        return found if isinstance(found, dict) else dict(self._status)

    def raise_for_status(self) -> None:
        """Raises the error of an unsuccessful response.

        :raises longshore.APIError: For a status code of 400 or above.
        """
        if not self.ok:
            from .errors import APIError

            message = f"{self.status_code} {self.reason} for url: {self.url}"
            raise APIError(self, message)

    def iter_content(self, chunk_size: int | None = 1, decode_unicode: bool = False) -> Iterator[Any]:
        """The body in parts."""
        body: bytes | str = self.text if decode_unicode else self.content
        size = chunk_size or len(body) or 1
        return (body[start : start + size] for start in range(0, len(body), size))

    def iter_lines(self, decode_unicode: bool = False) -> Iterator[Any]:
        """The lines of the body."""
        return iter((self.text if decode_unicode else self.content).splitlines())

    def close(self) -> None:
        """Does nothing: the body has been read."""

    def __enter__(self) -> Response:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        return self.iter_content(128)

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return f"<Response [{self.status_code}]>"
