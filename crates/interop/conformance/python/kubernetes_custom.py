"""The official client: custom kinds with all of its APIs, files, resumed watches."""

import pathlib
import tempfile
import threading

import every_kind
import harness
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client import ApiException
from kubernetes.dynamic.exceptions import ApiException as DynamicException

config.load_kube_config()
core, customs = client.CoreV1Api(), client.CustomObjectsApi()
definitions = client.ApiextensionsV1Api()
GROUP, VERSION, NAMESPACE, PLURAL = "every.example.org", "v1", "custom", "voles"
PLACE = (GROUP, VERSION, NAMESPACE, PLURAL)
core.create_namespace({"metadata": {"name": NAMESPACE}})

# A definition, watched until it is established.
definitions.create_custom_resource_definition(every_kind.custom("voles", "Vole"))
watcher = watch.Watch()
for event in watcher.stream(
    definitions.list_custom_resource_definition,
    field_selector="metadata.name=voles.every.example.org",
    timeout_seconds=20,
):
    conditions = event["object"].status.conditions or []
    if any(found.type == "Established" and found.status == "True" for found in conditions):
        watcher.stop()
established = definitions.read_custom_resource_definition_status("voles.every.example.org")
assert established.status.accepted_names.kind == "Vole"


def vole(name, **spec):
    metadata = {"name": name, "labels": {"set": "all"}}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Vole", "metadata": metadata, "spec": spec}


made = customs.create_namespaced_custom_object(*PLACE, vole("one"))
assert made["spec"]["size"] == 1 and made["metadata"]["generation"] == 1
with harness.refused(ApiException, 422):
    customs.create_namespaced_custom_object(*PLACE, vole("two", size=-1))
with harness.refused(ApiException, 409):
    customs.create_namespaced_custom_object(*PLACE, vole("one"))
patched = customs.patch_namespaced_custom_object(*PLACE, "one", {"spec": {"size": 2}})
assert patched["spec"]["size"] == 2 and patched["metadata"]["generation"] == 2
patched = customs.patch_namespaced_custom_object(*PLACE, "one", {"spec": {"size": 3}})
assert patched["spec"]["size"] == 3
status = customs.patch_namespaced_custom_object_status(*PLACE, "one", {"status": {"size": 5}})
assert status["status"] == {"size": 5} and status["metadata"]["generation"] == 3
scale = customs.get_namespaced_custom_object_scale(*PLACE, "one")
assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 5)
customs.patch_namespaced_custom_object_scale(*PLACE, "one", {"spec": {"replicas": 4}})
read = customs.get_namespaced_custom_object(*PLACE, "one")
assert read["spec"]["size"] == 4 and read["metadata"]["generation"] == 4
read["spec"] = {"size": 6}
assert customs.replace_namespaced_custom_object(*PLACE, "one", read)["spec"]["size"] == 6
with harness.refused(ApiException, 409):
    customs.replace_namespaced_custom_object(*PLACE, "one", read)
everywhere = customs.list_cluster_custom_object(GROUP, VERSION, PLURAL, label_selector="set=all")
assert [item["metadata"]["name"] for item in everywhere["items"]] == ["one"]

# A watch that has received all events continues when the history before it is compacted.
names, watcher = [], watch.Watch()


def write():
    for number in range(10):
        customs.create_namespaced_custom_object(*PLACE, vole(f"n{number}"))
        if number == 5:
            harness.until(lambda: "n5" in names)
            harness.expire()


writer = threading.Thread(target=write)
writer.start()
for event in watcher.stream(customs.list_namespaced_custom_object, *PLACE, timeout_seconds=30):
    assert event["type"] == "ADDED", event
    names.append(event["object"]["metadata"]["name"])
    if names[-1] == "n9":
        watcher.stop()
writer.join()
assert sorted(set(names)) == sorted(["one", *(f"n{number}" for number in range(10))]), names
version = watcher.resource_version
assert version

# A watch of the dynamic API resumes where another ended.
cluster = dynamic.DynamicClient(client.ApiClient())
voles = cluster.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Vole")
assert {"status", "scale"} <= set(voles.subresources), voles.subresources
customs.delete_namespaced_custom_object(*PLACE, "n9")
seen = []
for event in voles.watch(namespace=NAMESPACE, resource_version=version, timeout=20):
    seen.append((event["type"], event["object"].metadata.name))
    break
assert seen == [("DELETED", "n9")], seen
for event in voles.watch(namespace=NAMESPACE, name="n3", timeout=1):
    seen.append((event["type"], event["raw_object"]["metadata"]["name"]))
assert seen[1:] == [("ADDED", "n3")], seen
bookmarks = voles.watch(namespace=NAMESPACE, timeout=1, allow_watch_bookmarks=True)
assert all(event["type"] in ("ADDED", "BOOKMARK") for event in bookmarks)
harness.expire()
with harness.refused(DynamicException, 410):
    for _ in voles.watch(namespace=NAMESPACE, resource_version="1", timeout=5):
        pass
forced = voles.server_side_apply(
    body=vole("n3", size=8), namespace=NAMESPACE, field_manager="test", force_conflicts=True
)
assert forced.spec.size == 8
changed = voles.status.patch(
    body={"status": {"size": 1}},
    name="n3",
    namespace=NAMESPACE,
    content_type="application/merge-patch+json",
)
assert changed.status.size == 1 and changed.spec.size == 8
assert voles.scale.get(name="n3", namespace=NAMESPACE).spec.replicas == 8
listed = voles.get(namespace=NAMESPACE, limit=4)
assert len(listed.items) == 4 and listed.metadata["continue"]

# Files: create, and repeated apply.
with tempfile.TemporaryDirectory() as folder:
    for name in ("a", "b"):
        text = f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{k: v}}}}"
        pathlib.Path(folder, f"{name}.yaml").write_text(text)
    utils.create_from_directory(client.ApiClient(), folder, namespace=NAMESPACE)
    with harness.refused_all(utils.FailToCreateError, 409):
        utils.create_from_directory(client.ApiClient(), folder, namespace=NAMESPACE)
custom = client.ApiClient()
for _ in range(2):
    utils.create_from_yaml(
        custom, yaml_objects=[vole("applied", size=7)], namespace=NAMESPACE, apply=True
    )
applied = customs.get_namespaced_custom_object(*PLACE, "applied")
assert applied["metadata"]["managedFields"][0]["operation"] == "Apply", applied

customs.delete_collection_namespaced_custom_object(*PLACE, label_selector="set=all")
assert customs.list_namespaced_custom_object(*PLACE)["items"] == []
definitions.delete_custom_resource_definition("voles.every.example.org")


def gone():
    try:
        customs.list_namespaced_custom_object(*PLACE)
    except ApiException as error:
        return error.status == 404


harness.until(gone)
