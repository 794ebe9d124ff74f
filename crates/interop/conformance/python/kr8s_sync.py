"""kr8s: the synchronous API."""

import pathlib
import tempfile

import harness  # noqa: F401, sets the deadline
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
    raise AssertionError("a missing object was found")
except kr8s.NotFoundError:
    pass
try:
    config_map("n1").create()
    raise AssertionError("a duplicate was created")
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

# Scale, conditions, waits.
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

# Owner references.
owner = ConfigMap.get("one", namespace=NAMESPACE)
owned = Secret({"metadata": {"name": "owned", "namespace": NAMESPACE}, "stringData": {"a": "b"}})
owned.create()
owned.set_owner(owner)
owned.refresh()
assert owned.metadata.ownerReferences[0].uid == owner.metadata.uid
assert owned.raw["data"] == {"a": "Yg=="}

# Several objects at once, and from files.
from kr8s.objects import Job, Node, Service, object_from_spec, objects_from_files  # noqa: E402

with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "two.yaml")
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: kr8s-sync}\n"
    file.write_text("---\n".join(text.replace("NAME", name) for name in ("f1", "f2")))
    for item in objects_from_files(file):
        item.create()
for item in kr8s.get("configmaps", "f1", "f2", namespace=NAMESPACE):
    item.annotate({"seen": "1"})
assert ConfigMap.get("f2", namespace=NAMESPACE).annotations.seen == "1"
file_map = ConfigMap.get("f1", namespace=NAMESPACE)
file_map.label({"by-hand": "1", "two": "2"})
assert file_map.labels == {"by-hand": "1", "two": "2"}, file_map.labels
file_map.label("two-")
assert file_map.labels == {"by-hand": "1"}, file_map.labels
file_map.adopt(ConfigMap.get("f2", namespace=NAMESPACE))
owners = ConfigMap.get("f2", namespace=NAMESPACE).metadata.ownerReferences
assert owners[0].name == "f1"
file_map.delete(propagation_policy="Background")
file_map.wait("delete", timeout=20)

# The scale takes effect immediately.
web.scale(5)
web.refresh()
assert web.spec.replicas == 5
assert web.patch([{"op": "test", "path": "/spec/replicas", "value": 5}], type="json") is None
try:
    web.patch([{"op": "test", "path": "/spec/replicas", "value": 6}], type="json")
    raise AssertionError("a failed test operation was accepted")
except kr8s.ServerError as error:
    assert error.response.status_code == 422

# Nodes, and a Service with ports.
node = Node({"metadata": {"name": "kr8s-node"}})
node.create()
node.cordon()
node.taint("a", "b", effect="NoSchedule")
node.refresh()
assert node.unschedulable and "a" in [taint.key for taint in node.taints]
node.uncordon()
node.delete()
ports = [{"port": 80, "targetPort": 8080}]
spec = {"selector": {"app": "web"}, "ports": ports}
front = Service({"metadata": {"name": "front", "namespace": NAMESPACE}, "spec": spec})
front.create()
assert front.spec.clusterIP and front.spec.ports[0].protocol == "TCP"

# The watch of one object, and a wait for one of several conditions.
template = {"spec": {**pod, "restartPolicy": "Never"}}
job = object_from_spec(
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once", "namespace": NAMESPACE},
        "spec": {"suspend": True, "template": template},
    }
)
assert isinstance(job, Job)
job.create()
Job.get("once", namespace=NAMESPACE).annotate(a="b")
for kind, item in job.watch():
    assert (kind, item.annotations.a) == ("MODIFIED", "b")
    break
suspended = {"type": "Suspended", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
job.patch({"status": {"conditions": [suspended]}}, subresource="status")
job.wait(["condition=Failed", "condition=Suspended"], mode="any", timeout=20)
try:
    job.wait("condition=Complete", timeout=1)
    raise AssertionError("the wait did not time out")
except TimeoutError:
    pass
