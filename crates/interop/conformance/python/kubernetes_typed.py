"""The official client: the typed API."""

import threading

import harness
from kubernetes import client, config, watch
from kubernetes.client import ApiException

config.load_kube_config()
core, batch = client.CoreV1Api(), client.BatchV1Api()
NAMESPACE = "typed"


def config_map(name, labels=None, **data):
    meta = client.V1ObjectMeta(name=name, labels=labels)
    return client.V1ConfigMap(metadata=meta, data=data)


core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))

# Create, read, replace; stale resource versions and missing names are rejected.
made = core.create_namespaced_config_map(NAMESPACE, config_map("one", a="1"))
assert made.metadata.uid and made.metadata.creation_timestamp.tzinfo
made.data["a"] = "2"
core.replace_namespaced_config_map("one", NAMESPACE, made)
with harness.refused(ApiException, 409):
    core.replace_namespaced_config_map("one", NAMESPACE, made)
with harness.refused(ApiException, 409):
    core.create_namespaced_config_map(NAMESPACE, config_map("one"))
with harness.refused(ApiException, 404):
    core.read_namespaced_config_map("none", NAMESPACE)
with harness.refused(ApiException, 422):
    core.create_namespaced_config_map(NAMESPACE, config_map("Bad_Name"))
dry = core.create_namespaced_config_map(NAMESPACE, config_map("dry"), dry_run="All")
assert dry.metadata.uid
with harness.refused(ApiException, 404):
    core.read_namespaced_config_map("dry", NAMESPACE)

# Patches: the client sends a list as a JSON patch, a dict as a strategic merge patch.
patched = core.patch_namespaced_config_map("one", NAMESPACE, {"data": {"b": "3"}})
assert patched.data == {"a": "2", "b": "3"}
patched = core.patch_namespaced_config_map(
    "one", NAMESPACE, [{"op": "remove", "path": "/data/b"}]
)
assert patched.data == {"a": "2"}
patched = core.patch_namespaced_config_map("one", NAMESPACE, {"data": None})
assert patched.data is None
with harness.refused(ApiException, 422):
    core.patch_namespaced_config_map(
        "one", NAMESPACE, [{"op": "test", "path": "/data/b", "value": "x"}]
    )

# Pagination, selectors.
for number in range(5):
    labels = {"even": str(number % 2 == 0).lower()}
    core.create_namespaced_config_map(NAMESPACE, config_map(f"n{number}", labels))
names, token = [], None
while True:
    page = core.list_namespaced_config_map(NAMESPACE, limit=2, _continue=token)
    assert len(page.items) <= 2
    names += [item.metadata.name for item in page.items]
    token = page.metadata._continue
    if not token:
        break
assert names == ["n0", "n1", "n2", "n3", "n4", "one"], names
even = core.list_namespaced_config_map(NAMESPACE, label_selector="even in (true)")
assert [item.metadata.name for item in even.items] == ["n0", "n2", "n4"]
chosen = core.list_namespaced_config_map(NAMESPACE, field_selector="metadata.name=n1")
assert len(chosen.items) == 1

# The status subresource.
meta = client.V1ObjectMeta(name="job")
pod = client.V1PodSpec(
    restart_policy="Never", containers=[client.V1Container(name="a", image="x")]
)
spec = client.V1JobSpec(suspend=True, template=client.V1PodTemplateSpec(spec=pod))
batch.create_namespaced_job(NAMESPACE, client.V1Job(metadata=meta, spec=spec))
job = batch.read_namespaced_job("job", NAMESPACE)
assert (job.spec.backoff_limit, job.spec.completions, job.metadata.generation) == (6, 1, 1)
status = {"status": {"active": 1, "ready": 0}}
job = batch.patch_namespaced_job_status("job", NAMESPACE, status)
assert job.status.active == 1 and job.metadata.generation == 1
job = batch.patch_namespaced_job("job", NAMESPACE, {"status": {"active": 7}})
assert job.status.active == 1
options = client.V1DeleteOptions(propagation_policy="Foreground", grace_period_seconds=0)
batch.delete_namespaced_job("job", NAMESPACE, body=options)

# Deletion: preconditions, collections.
preconditions = client.V1Preconditions(uid="other")
with harness.refused(ApiException, 409):
    core.delete_namespaced_config_map(
        "one", NAMESPACE, body=client.V1DeleteOptions(preconditions=preconditions)
    )
gone = core.delete_namespaced_config_map("one", NAMESPACE)
assert gone.status == "Success" and gone.details.name == "one"
core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="even=true")
left = core.list_namespaced_config_map(NAMESPACE).items
assert [item.metadata.name for item in left] == ["n1", "n3"]

# A watch: from a resource version, resumed by the client, until its timeout.
listed = core.list_namespaced_config_map(NAMESPACE)
core.create_namespaced_config_map(NAMESPACE, config_map("w1"))
core.delete_namespaced_config_map("w1", NAMESPACE)
seen = []
watcher = watch.Watch()
version = listed.metadata.resource_version
for event in watcher.stream(
    core.list_namespaced_config_map, NAMESPACE, resource_version=version, timeout_seconds=20
):
    seen.append((event["type"], event["object"].metadata.name))
    if len(seen) == 2:
        # The watch must not miss this change.
        core.create_namespaced_config_map(NAMESPACE, config_map("w2"))
    if len(seen) == 3:
        watcher.stop()
assert seen == [("ADDED", "w1"), ("DELETED", "w1"), ("ADDED", "w2")], seen
stream = watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, timeout_seconds=1)
assert sorted(event["object"].metadata.name for event in stream) == ["n1", "n3", "w2"]

# Several short watches miss no event: each resumes where the previous one ended.
resumed, watcher = [], watch.Watch()


def write():
    for number in range(20):
        core.create_namespaced_config_map(NAMESPACE, config_map(f"r{number}"))


writer = threading.Thread(target=write)
version = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
writer.start()
while len(resumed) < 20:
    for event in watcher.stream(
        core.list_namespaced_config_map, NAMESPACE, resource_version=version, timeout_seconds=1
    ):
        resumed.append(event["object"].metadata.name)
    version = watcher.resource_version
writer.join()
assert resumed == [f"r{number}" for number in range(20)], resumed

# A compacted resource version.
harness.expire()
with harness.refused(ApiException, 410):
    for _ in watch.Watch().stream(
        core.list_namespaced_config_map, NAMESPACE, resource_version="1", timeout_seconds=5
    ):
        pass
page = core.list_namespaced_config_map(NAMESPACE, limit=1)
core.delete_namespaced_config_map("w2", NAMESPACE)
harness.expire()
with harness.refused(ApiException, 410):
    core.list_namespaced_config_map(NAMESPACE, limit=1, _continue=page.metadata._continue)

# Version, discovery, logs.
assert client.VersionApi().get_code().major == "1"
assert client.CoreApi().get_api_versions().versions == ["v1"]
assert any(group.name == "batch" for group in client.ApisApi().get_api_versions().groups)
with harness.refused(ApiException, 404):
    core.read_namespaced_pod_log("none", NAMESPACE)
