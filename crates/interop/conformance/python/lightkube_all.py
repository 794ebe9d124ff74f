"""lightkube: typed and generic resources, synchronous and asynchronous clients."""

import asyncio
import contextlib
import threading

import every_kind
import harness
from lightkube import ALL_NS, AsyncClient, Client, codecs
from lightkube.core.exceptions import ApiError, ConditionError, ObjectDeleted
from lightkube.generic_resource import (
    create_namespaced_resource,
    get_generic_resource,
    load_in_cluster_generic_resources,
)
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace, Node
from lightkube.types import CascadeType, PatchType, on_error_retry

NAMESPACE = "lightkube"
client = Client(namespace=NAMESPACE, field_manager="lightkube-test")
client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))


def config_map(name, **data):
    labels = {"app": "test"}
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=NAMESPACE, labels=labels), data=data)


# Create, get, replace, patches of each type.
one = client.create(config_map("one", a="1"))
one.data["b"] = "2"
client.replace(one)
with harness.refused(ApiError, 409):
    client.replace(one)
with harness.refused(ApiError, 404):
    client.get(ConfigMap, "none")
for kind, patch, expected in [
    (PatchType.STRATEGIC, {"data": {"c": "3"}}, {"a": "1", "b": "2", "c": "3"}),
    (PatchType.MERGE, {"data": {"a": None}}, {"b": "2", "c": "3"}),
    (PatchType.JSON, [{"op": "remove", "path": "/data/b"}], {"c": "3"}),
]:
    assert client.patch(ConfigMap, "one", patch, patch_type=kind).data == expected

# Server-side apply.
applied = client.apply(
    ConfigMap(
        apiVersion="v1",
        kind="ConfigMap",
        metadata=ObjectMeta(name="two", namespace=NAMESPACE, labels={"app": "test"}),
        data={"a": "1"},
    )
)
assert applied.metadata.managedFields[0].manager == "lightkube-test"
again = ConfigMap(metadata=ObjectMeta(name="two", namespace=NAMESPACE), data={"a": "9"})
with harness.refused(ApiError, 409):
    client.apply(again, field_manager="other")
assert client.apply(again, field_manager="other", force=True).data == {"a": "9"}

# Paginated lists, selectors.
for number in range(7):
    client.create(config_map(f"n{number}"))
names = [item.metadata.name for item in client.list(ConfigMap, chunk_size=3)]
assert names == ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "one", "two"], names
chosen = client.list(ConfigMap, namespace=ALL_NS, labels={"app": "test"}, fields={"metadata.name": "n1"})
assert [item.metadata.name for item in chosen] == ["n1"]
assert len(list(client.list(ConfigMap, labels={"app": ["test", "other"]}))) == 9

# A watch from a resource version.
listed = client.list(ConfigMap)
assert len(list(listed)) == 9
version = listed.resourceVersion
client.create(config_map("w"))
client.delete(ConfigMap, "w")
seen = []
for kind, item in client.watch(ConfigMap, resource_version=version, server_timeout=20):
    seen.append((kind, item.metadata.name))
    if len(seen) == 2:
        break
assert seen == [("ADDED", "w"), ("DELETED", "w")], seen

# A watch across namespaces that gets a 410 and starts again.
outcomes = []


def record_error(error, count):
    outcomes.append(error)
    return on_error_retry(error, count)


client.create(config_map("first"))
harness.expire()
seen = []
for kind, item in client.watch(
    ConfigMap,
    namespace=ALL_NS,
    fields={"metadata.name": "first"},
    resource_version="1",
    server_timeout=20,
    on_error=record_error,
):
    seen.append((kind, item.metadata.name))
    if len(seen) == 1:
        client.patch(ConfigMap, "first", {"data": {"x": "y"}})
    if len(seen) == 2:
        break
assert seen == [("ADDED", "first"), ("MODIFIED", "first")], seen
assert len(outcomes) == 1 and isinstance(outcomes[0], ApiError), outcomes
assert outcomes[0].status.code == 410, outcomes[0].status

# Waiting for a condition, and failed waits; a cluster-scoped kind.
client.create(Node(metadata=ObjectMeta(name="light")))
ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
client.patch(Node.Status, "light", ready)
assert client.wait(Node, "light", for_conditions=["Ready"]).metadata.name == "light"
with contextlib.suppress(ConditionError):
    client.wait(Node, "light", for_conditions=["Other"], raise_for_conditions=["Ready"])
    raise AssertionError("the wait did not fail")
taints = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
assert client.patch(Node, "light", taints).spec.taints[0].key == "a"
threading.Timer(0.5, lambda: client.delete(Node, "light")).start()
with contextlib.suppress(ObjectDeleted):
    client.wait(Node, "light", for_conditions=["Other"])
    raise AssertionError("the wait did not notice the deletion")

# Apply with force; dry runs.
client.apply(
    ConfigMap(metadata=ObjectMeta(name="first", namespace=NAMESPACE), data={"x": "z"}),
    field_manager="other",
    force=True,
)
tried = client.create(config_map("tried"), dry_run=True)
assert tried.metadata.uid
with harness.refused(ApiError, 404):
    client.get(ConfigMap, "tried")

# Subresources.
spec = DeploymentSpec(
    selector=LabelSelector(matchLabels={"a": "b"}),
    template=PodTemplateSpec(
        metadata=ObjectMeta(labels={"a": "b"}),
        spec=PodSpec(containers=[Container(name="a", image="x")]),
    ),
)
client.create(Deployment(metadata=ObjectMeta(name="web"), spec=spec))
scale = client.get(Deployment.Scale, "web")
assert scale.spec.replicas == 1 and scale.status.selector == "a=b", scale
scale.spec = ScaleSpec(replicas=4)
client.replace(scale, "web")
assert client.get(Deployment, "web").spec.replicas == 4
status = {"status": {"replicas": 2}}
assert client.patch(Deployment.Status, "web", status).status.replicas == 2
client.delete(Deployment, "web", cascade=CascadeType.ORPHAN, grace_period=0)
client.deletecollection(ConfigMap)
assert not list(client.list(ConfigMap))

# Custom kinds.
client.create(codecs.from_dict(every_kind.custom("hares", "Hare")))
client.wait(CustomResourceDefinition, "hares.every.example.org", for_conditions=["Established"])
Hare = create_namespaced_resource("every.example.org", "v1", "Hare", "hares")
hare = client.create(Hare(metadata=ObjectMeta(name="brown"), spec={"size": 2}))
assert hare.metadata.generation == 1
client.apply(Hare(metadata=ObjectMeta(name="brown"), spec={"size": 3}), force=True)
assert client.get(Hare, "brown").spec == {"size": 3}
assert client.patch(Hare.Status, "brown", status, patch_type=PatchType.MERGE)
assert client.get(Hare.Scale, "brown").spec.replicas == 3
assert [item.metadata.name for item in client.list(Hare)] == ["brown"]
load_in_cluster_generic_resources(client)
assert get_generic_resource("every.example.org/v1", "Hare")
yaml = "{apiVersion: every.example.org/v1, kind: Hare, metadata: {name: white}, spec: {size: 5}}"
for item in codecs.load_all_yaml(yaml):
    assert client.create(item).spec["size"] == 5
listed = client.list(Hare, namespace=ALL_NS, chunk_size=1)
assert sorted(item.metadata.name for item in listed) == ["brown", "white"]
for kind, item in client.watch(Hare, fields={"metadata.name": "white"}, server_timeout=20):
    assert (kind, item.metadata.name) == ("ADDED", "white")
    break
client.deletecollection(Hare)
assert not list(client.list(Hare))
client.delete(CustomResourceDefinition, "hares.every.example.org")


async def main():
    waiting = AsyncClient(namespace=NAMESPACE)
    text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: from-file}, data: {a: b}}"
    for item in codecs.load_all_yaml(text):
        await waiting.create(item, namespace=NAMESPACE)
    async for kind, item in waiting.watch(ConfigMap, fields={"metadata.name": "from-file"}):
        assert (kind, item.data) == ("ADDED", {"a": "b"})
        break
    await waiting.delete(ConfigMap, "from-file")


asyncio.run(main())
