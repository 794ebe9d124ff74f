"""Lists pods with a client that is not Longshore's.

The client has the methods ``list_namespaced_pod`` and ``list_pod_for_all_namespaces`` of
the official client's ``CoreV1Api``. They return an object with ``items``, which are pods
of the official client, dicts, or objects with the same attributes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

#: The attributes that the resolver reads, under the official client's names. The JSON
#: names are the same in camel case, except for ``_NAMES``.
_FIELDS: dict[str, Any] = {
    "metadata": {
        "name": None,
        "namespace": None,
        "uid": None,
        "labels": None,
        "annotations": None,
        "deletion_timestamp": None,
    },
    "spec": {"hostname": None, "subdomain": None, "node_name": None, "containers": [{
        "ports": [{"name": None, "container_port": None, "host_port": None}],
        "resources": {"limits": None},
    }]},
    "status": {
        "phase": None,
        "pod_ip": None,
        "pod_i_ps": [{"ip": None}],
        "host_ip": None,
        "host_i_ps": [{"ip": None}],
        "conditions": [{"type": None, "status": None, "reason": None, "message": None}],
        "container_statuses": [{"state": {"waiting": {"reason": None}}}],
    },
}
_NAMES = {"pod_ip": "podIP", "pod_i_ps": "podIPs", "host_ip": "hostIP", "host_i_ps": "hostIPs"}

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return _NAMES.get(name) or first + "".join(other.title() for other in others)


def _leaf(value: Any) -> Any:
    """A value that JSON can represent; ``None`` for the attributes that a mock invents."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, dict):
        return {str(key): _leaf(one) for key, one in value.items()}
    return value if isinstance(value, (str, int)) else None


def _read(value: Any, fields: Any) -> Any:
    """The fields of an object as JSON, without those that are not set."""
    if fields is None:
        return _leaf(value)
    if isinstance(fields, list):
        return [_read(one, fields[0]) for one in value] if isinstance(value, (list, tuple)) else None
    found = {_json_name(name): _read(getattr(value, name, None), below) for name, below in fields.items()}
    return {name: one for name, one in found.items() if one not in (None, {})}


def as_json(pod: Any) -> Any:
    """A pod as JSON."""
    return pod if isinstance(pod, dict) else _read(pod, _FIELDS)


def in_a_pod() -> bool:
    """Whether this process runs in a pod."""
    return "KUBERNETES_SERVICE_HOST" in os.environ


def own_namespace() -> str:
    """The namespace of this process's pod; ``default`` outside of a pod."""
    try:
        return _OWN_NAMESPACE.read_text().strip() or "default"
    except OSError:
        return "default"


def is_client(value: Any) -> bool:
    """Whether the value has the list methods of ``CoreV1Api``."""
    return hasattr(value, "list_namespaced_pod") or hasattr(value, "list_pod_for_all_namespaces")


def _scope(client: Any, namespace: str | None, all_namespaces: bool) -> tuple[str, bool]:
    """The namespace to search, and whether all are searched instead."""
    if namespace is None and not in_a_pod() and hasattr(client, "list_pod_for_all_namespaces"):
        all_namespaces = True
    return namespace or own_namespace(), all_namespaces


def select(
    client: Any, mapping: Iterable[tuple[str, Sequence[Any]]], namespace: str | None, all_namespaces: bool
) -> list[tuple[str, list[list[Any]]]]:
    """The pods of each selector of each role.

    Without a namespace, those of the namespace of this process's pod or, outside of a pod, those of
    all namespaces: the client has no namespace of its own.

    :raises TypeError: If no list method of the client returns a list of pods.
    """
    asked_for_all = all_namespaces
    one, all_namespaces = _scope(client, namespace, all_namespaces)

    def in_namespace(selector: Any) -> Any:
        return client.list_namespaced_pod(one, label_selector=selector)

    def everywhere(selector: Any) -> Any:
        return client.list_pod_for_all_namespaces(label_selector=selector)

    methods: list[Callable[[Any], Any]] = [everywhere, in_namespace] if all_namespaces else [in_namespace, everywhere]
    if asked_for_all:
        methods.remove(in_namespace)
    names: dict[Callable[[Any], Any], str] = {
        in_namespace: "list_namespaced_pod",
        everywhere: "list_pod_for_all_namespaces",
    }
    methods = [method for method in methods if hasattr(client, names[method])]

    def pods(selector: Any) -> list[Any]:
        for method in methods:
            found = method(selector)
            items = found["items"] if isinstance(found, dict) else getattr(found, "items", None)
            # A test double may have a method that it was not prepared for.
            if not isinstance(items, (list, tuple)):
                continue
            listed = [as_json(pod) for pod in items]
            if method is everywhere and not all_namespaces:
                listed = [pod for pod in listed if pod.get("metadata", {}).get("namespace") in (None, one)]
            return listed
        tried = " or ".join(names[method] for method in methods)
        raise TypeError(f"the client's {tried or 'list methods'} returned no list of pods")

    return [(role, [pods(selector) for selector in selectors]) for role, selectors in mapping]


def unmatched(
    client: Any,
    mapping: Iterable[tuple[str, Sequence[Any]]],
    spec: dict[str, Any],
    namespace: str | None,
    all_namespaces: bool,
) -> list[tuple[str, str]]:
    """A sentence about each role without tasks, with the namespaces in which pods do match."""
    one, all_namespaces = _scope(client, namespace, all_namespaces)
    searched = "any namespace" if all_namespaces else f"the namespace {one}"
    sentences: list[tuple[str, str]] = []
    for role, selectors in mapping:
        if spec.get(role):
            continue
        text = f"the job {role} has no tasks: no running pod of {searched} matches {' or '.join(map(str, selectors))}"
        try:
            found = select(client, [(role, selectors)], None, True)
        except Exception:  # noqa: BLE001 - the client may not list the pods of all namespaces
            found = []
        places: dict[str, int] = {}
        for pod in (pod for _, groups in found for group in groups for pod in group):
            place = str(pod.get("metadata", {}).get("namespace", "default"))
            places[place] = places.get(place, 0) + 1
        if places:
            text += "; pods match in " + ", ".join(f"{place} ({count})" for place, count in sorted(places.items()))
        sentences.append((role, text))
    return sentences
