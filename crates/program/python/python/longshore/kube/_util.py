"""Values of the API as Python values: immutable mappings, times, enums that accept new members."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pyrsistent

from ..errors import APIError, KubeError, StatusError

#: The characters of a label's value.
_LABEL = re.compile(r"[A-Za-z0-9_.-]*", re.ASCII)

#: Day, time, fraction of a second, zone.
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def freeze(value: Any) -> Any:
    """The value with its dicts and lists, at all depths, as immutable ``PMap`` and ``PVector``."""
    return pyrsistent.freeze(value)


def thaw(value: Any) -> Any:
    """A copy of the value with plain dicts and lists: the reverse of :func:`freeze`."""
    return pyrsistent.thaw(value)


class Time(datetime):
    """A time in UTC that knows its zone.

    ``kube`` 0.10 returned times without a zone. For its programs, a time compares with, and can be
    subtracted from, times without a zone, which then mean UTC as from ``datetime.utcnow()``.
    """

    def __eq__(self, other: object) -> bool:
        return super().__eq__(_in_utc(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: datetime) -> bool:  # type: ignore[override]
        return super().__lt__(_in_utc(other))

    def __le__(self, other: datetime) -> bool:  # type: ignore[override]
        return super().__le__(_in_utc(other))

    def __gt__(self, other: datetime) -> bool:  # type: ignore[override]
        return super().__gt__(_in_utc(other))

    def __ge__(self, other: datetime) -> bool:  # type: ignore[override]
        return super().__ge__(_in_utc(other))

    def __sub__(self, other: Any) -> Any:
        return super().__sub__(_in_utc(other))

    def __rsub__(self, other: datetime) -> timedelta:
        difference: timedelta = self - other
        return -difference

    __hash__ = datetime.__hash__


def _in_utc(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=timezone.utc)
    return value


def parse_rfc3339(when: str) -> Time:
    """Parses a time of the API, such as ``2024-05-01T10:00:00Z`` or ``...00.123456Z``.

    :raises ValueError: If the text is not a time of RFC 3339.
    """
    match = _RFC3339.fullmatch(when)
    if match is None:
        raise ValueError(f"{when!r} is not a time of RFC 3339, as in '2024-05-01T10:00:00Z'")
    day, time_of_day, fraction, zone = match.groups()
    # `fromisoformat` of Python 3.10 accepts only three or six digits, and no "Z".
    fraction = (fraction or "").ljust(6, "0")[:6]
    zone = "+00:00" if zone in "Zz" else zone
    time = datetime.fromisoformat(f"{day}T{time_of_day}.{fraction}{zone}").astimezone(timezone.utc)
    parts = (time.year, time.month, time.day, time.hour, time.minute, time.second, time.microsecond)
    return Time(*parts, tzinfo=timezone.utc)


class OpenEnum(enum.Enum):
    """An enum that keeps values that it does not know, because a newer server may send them."""

    @classmethod
    def _missing_(cls, value: object) -> OpenEnum | None:
        if not isinstance(value, str):
            return None
        member = object.__new__(cls)
        member._name_ = member._value_ = value
        return member

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and type(self) is type(other) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


if TYPE_CHECKING:
    # Type checkers know the types of properties.
    statusproperty = property
else:

    def statusproperty(function):
        """A property whose absence in the object raises :class:`kube.StatusError` with its name."""

        @functools.wraps(function)
        def wrapper(self):
            try:
                return function(self)
            except StatusError:
                raise
            except Exception as error:
                raise StatusError(f"{self!r} has no valid {function.__name__}") from error

        return property(wrapper)


def count(item: Any, field: str) -> int:
    """A count in the status of an object. The API omits counts of 0, and a new object has no status yet."""
    number: object = (item.raw.get("status") or {}).get(field) or 0
    if not isinstance(number, int) or isinstance(number, bool):
        raise StatusError(f"{item!r}: status.{field} is not a number: {number!r}")
    return number


def fetch_resource(cluster: Any, api_path: str, resource: str, name: str, namespace: str | None = None) -> Any:
    """Requests one object.

    :raises LookupError: If it does not exist.
    :raises kube.APIError: For other errors of the server.
    """
    parent = ["namespaces", namespace] if namespace else []
    try:
        return cluster.proxy.get(api_path, *parent, resource, name)
    except APIError as error:
        if error.status_code == 404 and not isinstance(error, LookupError):
            raise LookupError(str(error)) from error
        raise


def _exactly(key: str, value: str, what: str) -> str:
    """The part of a selector for one value, which must not become more than that."""
    if what == "field":
        value = re.sub(r"([\\,=])", r"\\\1", value)
    elif not _LABEL.fullmatch(value):
        raise ValueError(f"{value!r} is no value of a label: give a selector with operators as a text")
    if re.search(r"[,=!\s]", key):
        raise ValueError(f"{key!r} is not the name of a {what}: give a selector with operators as a text")
    return f"{key}={value}"


def selector(selects: Any, what: str) -> str | None:
    """A selector as text. A dict selects objects that have each of its values.

    :raises ValueError: If it is empty: it would select every object.
    """
    if selects is None:
        return None
    text = selects if isinstance(selects, str) else ",".join(
        _exactly(key, value, what) for key, value in selects.items()
    )
    if not text.strip():
        raise ValueError(f"an empty {what} selector selects every object: leave it out")
    return text


def filter_list(
    cluster: Any, api_path: str, resource: str, labels: Any, fields: Any, namespace: str | None = None
) -> Iterator[Any]:
    """The objects that match the selectors, as the proxy returns them."""
    parameters = {"labelSelector": selector(labels, "label"), "fieldSelector": selector(fields, "field")}
    parameters = {key: value for key, value in parameters.items() if value is not None}
    parent = ["namespaces", namespace] if namespace else []
    yield from cluster.proxy.get(api_path, *parent, resource, **parameters)["items"]


def find_api_path(proxy: Any, api_paths: list[str], resource: str) -> str:
    """The first of the paths whose API the server has with this resource.

    :raises kube.KubeError: If it has none of them.
    """
    for path in api_paths:
        try:
            resources = proxy.get(path)["resources"]
        except LookupError:
            continue
        if any(one["name"] == resource for one in resources):
            return path
    raise KubeError(f"the server has no {resource} in {', '.join(api_paths)}")
