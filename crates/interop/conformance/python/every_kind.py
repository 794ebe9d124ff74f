"""A small example of each kind that the server supports."""


def examples(namespace):
    """Returns examples by group and kind; those without metadata are only listed."""
    pod = {"containers": [{"name": "main", "image": "x"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
    once = {"spec": {**pod, "restartPolicy": "Never"}}
    chosen = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    about = {"kind": "Pod", "name": "x", "namespace": namespace, "apiVersion": "v1"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "name": "example"}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    devices = [{"name": "a", "exactly": {"deviceClassName": "example"}}]
    backend = {"service": {"name": "x", "port": {"number": 80}}}
    # The client omits zero microseconds, which every server rejects.
    when = "2026-01-01T00:00:00.000001Z"
    bodies = {
        ("", "ConfigMap"): {"data": {"a": "b"}},
        ("", "Endpoints"): {
            "subsets": [{"addresses": [{"ip": "10.0.0.9"}], "ports": [{"port": 80}]}]
        },
        ("", "Event"): {"involvedObject": about, "reason": "Test", "type": "Normal"},
        ("", "LimitRange"): {
            "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}
        },
        ("", "Namespace"): {},
        ("", "Node"): {},
        ("", "PersistentVolume"): {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/tmp"},
            }
        },
        ("", "PersistentVolumeClaim"): {"spec": claim},
        ("", "Pod"): {"spec": pod},
        ("", "PodTemplate"): {"template": template},
        ("", "ReplicationController"): {
            "spec": {"selector": {"a": "b"}, "template": template}
        },
        ("", "ResourceQuota"): {"spec": {"hard": {"pods": "9"}}},
        ("", "Secret"): {"stringData": {"a": "b"}},
        ("", "Service"): {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}},
        ("", "ServiceAccount"): {},
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): None,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): None,
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): None,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): None,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): None,
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): None,
        ("apiregistration.k8s.io", "APIService"): None,
        ("apps", "ControllerRevision"): {"revision": 1, "data": {}},
        ("apps", "DaemonSet"): {"spec": chosen},
        ("apps", "Deployment"): {"spec": chosen},
        ("apps", "ReplicaSet"): {"spec": chosen},
        ("apps", "StatefulSet"): {"spec": {**chosen, "serviceName": "x"}},
        ("autoscaling", "HorizontalPodAutoscaler"): {
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
                "maxReplicas": 2,
            }
        },
        ("batch", "CronJob"): {
            "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": once}}}
        },
        ("batch", "Job"): {"spec": {"template": once, "suspend": True}},
        ("certificates.k8s.io", "CertificateSigningRequest"): None,
        ("certificates.k8s.io", "ClusterTrustBundle"): None,
        ("certificates.k8s.io", "PodCertificateRequest"): None,
        ("coordination.k8s.io", "Lease"): {"spec": {"holderIdentity": "me"}},
        ("discovery.k8s.io", "EndpointSlice"): {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.9"]}],
            "ports": [{"port": 80}],
        },
        ("events.k8s.io", "Event"): {
            "regarding": about,
            "reason": "Test",
            "type": "Normal",
            "action": "Look",
            "note": "Seen",
            "eventTime": when,
            "reportingController": "example.org/test",
            "reportingInstance": "one",
        },
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"): {
            "spec": {"priorityLevelConfiguration": {"name": "example"}}
        },
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): {
            "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}
        },
        ("networking.k8s.io", "Ingress"): {"spec": {"defaultBackend": backend}},
        ("networking.k8s.io", "IngressClass"): {"spec": {"controller": "a.org/b"}},
        ("networking.k8s.io", "IPAddress"): None,
        ("networking.k8s.io", "ServiceCIDR"): None,
        ("networking.k8s.io", "NetworkPolicy"): {"spec": {"podSelector": {}}},
        ("node.k8s.io", "RuntimeClass"): {"handler": "x"},
        ("policy", "PodDisruptionBudget"): {
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
        },
        ("rbac.authorization.k8s.io", "ClusterRole"): {"rules": rules},
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"): {
            "roleRef": {**role, "kind": "ClusterRole"},
            "subjects": [{"kind": "User", "name": "me"}],
        },
        ("rbac.authorization.k8s.io", "Role"): {"rules": rules},
        ("rbac.authorization.k8s.io", "RoleBinding"): {
            "roleRef": {**role, "kind": "Role"},
            "subjects": [{"kind": "User", "name": "me"}],
        },
        ("resource.k8s.io", "DeviceClass"): {"spec": {}},
        ("resource.k8s.io", "DeviceTaintRule"): None,
        ("resource.k8s.io", "ResourceClaim"): {"spec": {"devices": {"requests": devices}}},
        ("resource.k8s.io", "ResourceClaimTemplate"): {
            "spec": {"spec": {"devices": {"requests": devices}}}
        },
        ("resource.k8s.io", "ResourceSlice"): {
            "spec": {
                "driver": "a.org",
                "pool": {"name": "x", "generation": 1, "resourceSliceCount": 1},
                "allNodes": True,
            }
        },
        ("scheduling.k8s.io", "PriorityClass"): {"value": 10},
        ("storage.k8s.io", "CSIDriver"): {"spec": {}},
        ("storage.k8s.io", "CSINode"): {
            "spec": {"drivers": [{"name": "a.org", "nodeID": "x", "topologyKeys": []}]}
        },
        ("storage.k8s.io", "CSIStorageCapacity"): {"storageClassName": "x"},
        ("storage.k8s.io", "StorageClass"): {"provisioner": "a.org/b"},
        ("storage.k8s.io", "VolumeAttachment"): {
            "spec": {
                "attacher": "a.org",
                "nodeName": "x",
                "source": {"persistentVolumeName": "x"},
            }
        },
        ("storage.k8s.io", "VolumeAttributesClass"): None,
        ("storagemigration.k8s.io", "StorageVersionMigration"): {
            "spec": {"resource": {"group": "every.example.org", "resource": "nothing"}}
        },
        ("apiextensions.k8s.io", "CustomResourceDefinition"): custom("samples", "Sample"),
    }
    names = {
        "CustomResourceDefinition": "samples.every.example.org",
        "IPAddress": "10.0.0.7",
    }
    for (group, kind), body in bodies.items():
        if body is not None:
            body["metadata"] = {"name": names.get(kind, "example")}
    return {key: body or {} for key, body in bodies.items()}


def custom(plural, kind, group="every.example.org"):
    """Returns the definition of a kind with a status and a scale."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"size": {"type": "integer", "default": 1, "minimum": 0}},
            },
            "status": {
                "type": "object",
                "properties": {"size": {"type": "integer"}},
            },
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
