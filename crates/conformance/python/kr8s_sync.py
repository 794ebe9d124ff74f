"""kr8s, its plain interface."""

import kr8s
from kr8s.objects import ConfigMap, Deployment, Namespace, Pod, Secret

NAMESPACE = "kr8s-sync"
api = kr8s.api()
Namespace({"metadata": {"name": NAMESPACE}}).create()
assert api.version()["major"] == "1"
assert any(kind["kind"] == "ConfigMap" for kind in api.api_resources())


def config_map(name, labels=None, **data):
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels or {}}
    return ConfigMap({"metadata": metadata, "data": data})


# Create, find, refresh, patch, label, annotate, delete.
one = config_map("one", {"a": "b"}, colour="blue")
assert not one.exists()
one.create()
assert one.exists() and one.metadata.uid
same = ConfigMap.get("one", namespace=NAMESPACE)
assert same.data.colour == "blue"
same.patch({"data": {"colour": "red"}})
one.refresh()
assert one.data.colour == "red"
one.patch([{"op": "remove", "path": "/data/colour"}], type="json")
assert not one.raw.get("data")
one.label(tier="front")
one.annotate(note="x")
assert one.labels["tier"] == "front" and one.annotations["note"] == "x"
one.remove_label("tier")
assert "tier" not in one.labels

# Lists.
for number in range(3):
    config_map(f"n{number}", {"set": "n"}).create()
names = [item.name for item in kr8s.get("configmaps", namespace=NAMESPACE, label_selector="set=n")]
assert names == ["n0", "n1", "n2"], names
names = [item.name for item in ConfigMap.list(namespace=NAMESPACE, label_selector={"a": "b"})]
assert names == ["one"], names
names = [item.name for item in kr8s.get("cm", "n1", namespace=NAMESPACE)]
assert names == ["n1"], names
everywhere = [item.name for item in kr8s.get("configmaps", namespace=kr8s.ALL, field_selector="metadata.name=n2")]
assert everywhere == ["n2"], everywhere
try:
    ConfigMap.get("none", namespace=NAMESPACE, timeout=0)
    raise AssertionError("it was found")
except kr8s.NotFoundError:
    pass
try:
    config_map("n1").create()
    raise AssertionError("it was created twice")
except kr8s.ServerError as error:
    assert error.response.status_code == 409

# A watch.
seen = []
for kind, item in api.watch("configmaps", namespace=NAMESPACE, label_selector="set=n"):
    seen.append((kind, item.name))
    if len(seen) == 3:
        config_map("n3", {"set": "n"}).create()
    elif kind == "ADDED" and item.name == "n3":
        item.patch({"data": {"a": "b"}})
    elif kind == "MODIFIED":
        item.delete()
    elif kind == "DELETED":
        break
assert seen[3:] == [("ADDED", "n3"), ("MODIFIED", "n3"), ("DELETED", "n3")], seen

# Scale, conditions, waiting.
pod = {"containers": [{"name": "a", "image": "x"}]}
template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
web = Deployment({"metadata": {"name": "web", "namespace": NAMESPACE}, "spec": spec})
web.create()
web.patch({"spec": {"replicas": 3}}, subresource="scale")
web.refresh()
assert web.replicas == 3
lone = Pod({"metadata": {"name": "lone", "namespace": NAMESPACE}, "spec": pod})
lone.create()
assert not lone.ready()
ready = {"type": "Ready", "status": "True"}
lone.patch({"status": {"conditions": [ready]}}, subresource="status")
lone.wait("condition=Ready", timeout=20)
lone.wait("jsonpath='{.metadata.name}'=lone", timeout=20)
lone.delete(grace_period=0)
lone.wait("delete", timeout=20)
assert not lone.exists()

# A secret's owner.
owner = ConfigMap.get("one", namespace=NAMESPACE)
owned = Secret({"metadata": {"name": "owned", "namespace": NAMESPACE}, "stringData": {"a": "b"}})
owned.create()
owned.set_owner(owner)
owned.refresh()
assert owned.metadata.ownerReferences[0].uid == owner.metadata.uid
assert owned.raw["data"] == {"a": "Yg=="}
