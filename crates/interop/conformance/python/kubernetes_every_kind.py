"""Every served kind with the typed models of the official client.

They reject missing required fields and null lists.
"""

import re

from kubernetes import client, config

import every_kind

config.load_kube_config()
api = client.ApiClient()
checked = 0


def snake_case(name):
    """Returns the spelling of the client: `csi_driver` for `CSIDriver`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def typed(group, version):
    prefix = "".join(part.title() for part in group.removesuffix(".k8s.io").split("."))
    return getattr(client, f"{prefix or 'Core'}{version.title()}Api")()


core = client.CoreV1Api()
core.create_namespace({"metadata": {"name": "kinds"}})
examples = every_kind.examples("kinds")
# Later than this version of the client.
later_groups = ["storagemigration.k8s.io"]
groups = [("", "v1")]
for group in client.ApisApi().get_api_versions().groups:
    version = group.preferred_version.version
    if group.name in later_groups:
        examples = {key: value for key, value in examples.items() if key[0] != group.name}
        continue
    groups.append((group.name, version))
for group, version in groups:
    target = typed(group, version)
    for resource in target.get_api_resources().resources:
        if "/" in resource.name or "list" not in resource.verbs or "create" not in resource.verbs:
            continue
        kind = snake_case(resource.kind)
        namespaced = "namespaced_" if resource.namespaced else ""
        place = ["kinds"] if resource.namespaced else []
        example = examples.pop((group, resource.kind), None)
        assert example is not None, f"no example of {resource.kind} of {group}: add one"
        listing = getattr(target, f"list_{namespaced}{kind}", None)
        if listing is None:
            # Later than this version of the client.
            later = ("ClusterTrustBundle", "DeviceTaintRule", "MutatingAdmissionPolicy",
                     "PodCertificateRequest")
            assert resource.kind.startswith(later), resource.kind
            continue
        listed = listing(*place)
        assert listed.items is not None and listed.metadata.resource_version
        if example.get("metadata"):
            made = getattr(target, f"create_{namespaced}{kind}")(*place, body=example)
            name = made.metadata.name
            read = getattr(target, f"read_{namespaced}{kind}")(name, *place)
            assert read.metadata.uid == made.metadata.uid
            # An object can be replaced with the object that was read.
            getattr(target, f"replace_{namespaced}{kind}")(name, *place, read)
            assert name in [item.metadata.name for item in listing(*place).items]
            getattr(target, f"patch_{namespaced}{kind}")(
                name, *place, {"metadata": {"labels": {"seen": "1"}}}
            )
            assert listing(*place, label_selector="seen=1").items[0].metadata.name == name
            if kind == "event":
                # Both Event APIs share one store. The client cannot parse core/v1 Events
                # as events.k8s.io Events, on any server.
                getattr(target, f"delete_{namespaced}{kind}")(name, *place)
        if resource.namespaced:
            everywhere = getattr(target, f"list_{kind}_for_all_namespaces")
            assert everywhere().items is not None
        checked += 1

assert not examples, f"not served: {sorted(examples)}"
print(f"{checked} kinds")
