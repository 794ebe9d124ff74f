"""The official client: the dynamic API and its helpers."""

import pathlib
import tempfile

import harness
from kubernetes import config, dynamic, utils
from kubernetes.client import ApiClient
from kubernetes.dynamic.exceptions import (
    ApiException,
    ConflictError,
    NotFoundError,
    ResourceNotFoundError,
    UnprocessibleEntityError,
)

config.load_kube_config()
cluster = dynamic.DynamicClient(ApiClient())
NAMESPACE = "dynamic"
namespaces = cluster.resources.get(api_version="v1", kind="Namespace")
namespaces.create({"metadata": {"name": NAMESPACE}})

# Discovery.
maps = cluster.resources.get(api_version="v1", kind="ConfigMap")
assert maps.namespaced and "watch" in maps.verbs and "cm" in maps.short_names
jobs = cluster.resources.get(group="batch", kind="Job")
assert jobs.subresources["status"]
assert {found.kind for found in cluster.resources.search(name="configmaps")} == {
    "ConfigMap",
    "ConfigMapList",
}
try:
    cluster.resources.get(api_version="v1", kind="Wolf")
    raise AssertionError("a Wolf was found")
except ResourceNotFoundError:
    pass
assert cluster.version["kubernetes"]["major"] == "1"

# Create, get, patches of each type, replace, delete.
made = maps.create({"metadata": {"name": "one"}, "data": {"a": "1"}}, namespace=NAMESPACE)
assert made.metadata.uid
for kind, patch, expected in [
    ("strategic-merge-patch", {"data": {"b": "2"}}, {"a": "1", "b": "2"}),
    ("merge-patch", {"data": {"a": None}}, {"b": "2"}),
    ("json-patch", [{"op": "add", "path": "/data/c", "value": "3"}], {"b": "2", "c": "3"}),
]:
    changed = maps.patch(
        patch, name="one", namespace=NAMESPACE, content_type=f"application/{kind}+json"
    )
    assert changed.data.to_dict() == expected, changed.data
stale = made.to_dict()
try:
    maps.replace(stale, namespace=NAMESPACE)
    raise AssertionError("a stale resource version was accepted")
except ConflictError:
    pass
fresh = maps.get(name="one", namespace=NAMESPACE).to_dict()
fresh["data"] = {"d": "4"}
assert maps.replace(fresh, namespace=NAMESPACE).data.d == "4"
try:
    maps.create({"metadata": {"name": "Wrong_"}}, namespace=NAMESPACE)
    raise AssertionError("an invalid name was accepted")
except UnprocessibleEntityError as error:
    assert "metadata.name" in error.summary()

# Server-side apply and field ownership.
applied = cluster.server_side_apply(
    maps,
    body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}, "data": {"a": "1"}},
    namespace=NAMESPACE,
    field_manager="first",
)
assert applied.metadata.managedFields[0].manager == "first"
try:
    cluster.server_side_apply(
        maps,
        body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}, "data": {"a": "2"}},
        namespace=NAMESPACE,
        field_manager="second",
    )
    raise AssertionError("expected a conflict")
except ConflictError as error:
    assert "first" in str(error.body)
forced = cluster.server_side_apply(
    maps,
    body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}, "data": {"a": "2"}},
    namespace=NAMESPACE,
    field_manager="second",
    force_conflicts=True,
)
assert forced.data.a == "2"

# A watch from the resource version of a list.
listed = maps.get(namespace=NAMESPACE)
version = listed.metadata.resourceVersion
maps.create({"metadata": {"name": "three"}}, namespace=NAMESPACE)
maps.delete(name="three", namespace=NAMESPACE)
seen = []
for event in maps.watch(namespace=NAMESPACE, resource_version=version, timeout=20):
    seen.append((event["type"], event["object"].metadata.name))
    if len(seen) == 2:
        break
assert seen == [("ADDED", "three"), ("DELETED", "three")], seen
harness.expire()
with harness.refused(ApiException, 410):
    for _ in maps.watch(namespace=NAMESPACE, resource_version="1", timeout=5):
        pass

# Collections, selectors, missing objects.
maps.create({"metadata": {"name": "four", "labels": {"a": "b"}}}, namespace=NAMESPACE)
chosen = maps.get(namespace=NAMESPACE, label_selector="a=b").items
assert [item.metadata.name for item in chosen] == ["four"]
maps.delete(namespace=NAMESPACE, label_selector="a=b")
try:
    maps.get(name="four", namespace=NAMESPACE)
    raise AssertionError("a deleted object was found")
except NotFoundError:
    pass

# The helpers: files with several documents, quantities.
text = """
apiVersion: v1
kind: ConfigMap
metadata: {name: from-file}
---
apiVersion: v1
kind: Service
metadata: {name: from-file}
spec: {clusterIP: None, ports: [{port: 80}]}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: from-list}, stringData: {a: b}}
"""
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "several.yaml")
    path.write_text(text)
    utils.create_from_yaml(ApiClient(), str(path), namespace=NAMESPACE)
    try:
        utils.create_from_yaml(ApiClient(), str(path), namespace=NAMESPACE)
        raise AssertionError("a duplicate was created")
    except utils.FailToCreateError as error:
        assert {problem.status for problem in error.api_exceptions} == {409}
secrets = cluster.resources.get(api_version="v1", kind="Secret")
assert secrets.get(name="from-list", namespace=NAMESPACE).data.a == "Yg=="
assert utils.parse_quantity("0.5Gi") == 2**29
