//! All fields of a pod's spec: supported, harmless, or rejected.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1 as core;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use super::*;
use crate::{
    images::ImageUsers,
    security::{Accounts, AgentPrivileges, enforce},
};

/// The handling of a field by the node.
enum Support {
    /// The node or its controllers implement the field.
    Supported,
    /// The field has no effect here, for this reason.
    Harmless(&'static str),
    /// A pod with this value of the field is rejected.
    Refused(Value),
    /// The volume type is rejected when volumes are prepared.
    NoSuchVolume,
    /// The API server does not allow the field in new pods.
    NotCreated,
    /// The fields of this object are in the table.
    Parts,
}
use Support::{Harmless, NoSuchVolume, NotCreated, Parts, Refused, Supported};

type Table = Vec<(&'static str, Support)>;

const NO_IMAGES: Support = Harmless("images are not pulled");
const NOT_LIMITED: Support = Harmless("documented: not enforced for directories on disk");

fn pod_spec() -> Table {
    vec![
        ("activeDeadlineSeconds", Supported),
        ("affinity", Supported),
        ("automountServiceAccountToken", Supported),
        ("containers", Parts),
        ("dnsConfig", Supported),
        ("dnsPolicy", Supported),
        (
            "enableServiceLinks",
            Harmless("variables for Services are never made; Services have no endpoints here"),
        ),
        ("ephemeralContainers", NotCreated),
        (
            "evictionResponders",
            Refused(json!([{"name": "a.example.com/b", "priority": 1}])),
        ),
        ("hostAliases", Supported),
        ("hostIPC", Harmless("all pods share the machine's")),
        ("hostNetwork", Supported),
        ("hostPID", Refused(json!(true))),
        ("hostUsers", Refused(json!(false))),
        ("hostname", Supported),
        ("hostnameOverride", Refused(json!("other"))),
        ("imagePullSecrets", NO_IMAGES),
        ("initContainers", Supported),
        ("nodeName", Supported),
        ("nodeSelector", Supported),
        ("os", Refused(json!({"name": "windows"}))),
        (
            "overhead",
            Harmless("set by a runtime class, which is refused"),
        ),
        ("preemptionPolicy", Harmless("nothing is preempted")),
        ("priority", Supported),
        ("priorityClassName", Supported),
        ("readinessGates", Supported),
        (
            "resourceClaims",
            Refused(json!([{"name": "c", "resourceClaimName": "c"}])),
        ),
        ("resources", Supported),
        ("restartPolicy", Supported),
        ("runtimeClassName", Refused(json!("gvisor"))),
        ("schedulerName", Supported),
        ("schedulingGates", Supported),
        ("schedulingGroup", Refused(json!({"podGroupName": "g"}))),
        ("securityContext", Parts),
        ("serviceAccount", Supported),
        ("serviceAccountName", Supported),
        ("setHostnameAsFQDN", Refused(json!(true))),
        ("shareProcessNamespace", Refused(json!(true))),
        ("subdomain", Supported),
        ("terminationGracePeriodSeconds", Supported),
        ("tolerations", Supported),
        ("topologySpreadConstraints", Supported),
        ("volumes", Parts),
    ]
}

fn container() -> Table {
    vec![
        ("args", Supported),
        ("command", Supported),
        ("env", Parts),
        ("envFrom", Supported),
        ("image", NO_IMAGES),
        ("imagePullPolicy", NO_IMAGES),
        ("lifecycle", Parts),
        ("livenessProbe", Supported),
        ("name", Supported),
        (
            "ports",
            Harmless("pods share the machine's network: a port is where the command binds it"),
        ),
        ("readinessProbe", Supported),
        (
            "resizePolicy",
            Harmless("pods cannot be resized: there is no such subresource"),
        ),
        ("resources", Parts),
        ("restartPolicy", Supported),
        (
            "restartPolicyRules",
            Refused(json!([{"action": "RestartAllContainers"}])),
        ),
        ("securityContext", Parts),
        ("startupProbe", Supported),
        ("stdin", Supported),
        ("stdinOnce", Supported),
        ("terminationMessagePath", Refused(json!("/../etc/passwd"))),
        ("terminationMessagePolicy", Supported),
        ("tty", Supported),
        (
            "volumeDevices",
            Refused(json!([{"name": "v", "devicePath": "/dev/x"}])),
        ),
        ("volumeMounts", Parts),
        ("workingDir", Supported),
    ]
}

fn lifecycle() -> Table {
    vec![
        ("postStart", Supported),
        ("preStop", Supported),
        ("stopSignal", Refused(json!("SIGUSR1"))),
    ]
}

fn volume_mount() -> Table {
    vec![
        ("bindMountOptions", Refused(json!(["noexec"]))),
        ("mountPath", Supported),
        ("mountPropagation", Refused(json!("Bidirectional"))),
        ("name", Supported),
        ("readOnly", Supported),
        ("recursiveReadOnly", Refused(json!("Enabled"))),
        ("subPath", Supported),
        ("subPathExpr", Supported),
    ]
}

fn variable_source() -> Table {
    vec![
        ("configMapKeyRef", Supported),
        ("fieldRef", Supported),
        (
            "fileKeyRef",
            Refused(json!({"key": "k", "path": "p", "volumeName": "v"})),
        ),
        ("resourceFieldRef", Supported),
        ("secretKeyRef", Supported),
    ]
}

fn resources() -> Table {
    vec![
        ("claims", Refused(json!([{"name": "c"}]))),
        ("limits", Supported),
        ("requests", Supported),
    ]
}

fn empty_dir() -> Table {
    vec![
        ("medium", Refused(json!("HugePages-2Mi"))),
        ("mode", Refused(json!(448))),
        ("sizeLimit", NOT_LIMITED),
    ]
}

fn volume() -> Table {
    let mut table = vec![("emptyDir", Parts)];
    let served = [
        "configMap",
        "downwardAPI",
        "ephemeral",
        "hostPath",
        "name",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    table.extend(served.map(|name| (name, Supported)));
    let others = "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc \
                  flexVolume flocker gcePersistentDisk gitRepo glusterfs image iscsi nfs \
                  photonPersistentDisk portworxVolume quobyte rbd scaleIO \
                  storageos vsphereVolume";
    table.extend(others.split_whitespace().map(|name| (name, NoSuchVolume)));
    table
}

fn context() -> Table {
    vec![
        ("allowPrivilegeEscalation", Supported),
        (
            "appArmorProfile",
            Refused(json!({"type": "RuntimeDefault"})),
        ),
        ("capabilities", Supported),
        ("privileged", Supported),
        ("procMount", Supported),
        ("readOnlyRootFilesystem", Supported),
        ("runAsGroup", Supported),
        ("runAsNonRoot", Supported),
        ("runAsUser", Supported),
        ("seLinuxOptions", Refused(json!({"level": "s0"}))),
        (
            "seccompProfile",
            Refused(json!({"type": "Localhost", "localhostProfile": "p"})),
        ),
        ("windowsOptions", Refused(json!({"runAsUserName": "u"}))),
    ]
}

fn pod_context() -> Table {
    vec![
        (
            "appArmorProfile",
            Refused(json!({"type": "RuntimeDefault"})),
        ),
        ("fsGroup", Supported),
        (
            "fsGroupChangePolicy",
            Harmless("of no effect on the types of volumes that exist here"),
        ),
        ("runAsGroup", Supported),
        ("runAsNonRoot", Supported),
        ("runAsUser", Supported),
        (
            "seLinuxChangePolicy",
            Harmless("without labels there is nothing to change"),
        ),
        ("seLinuxOptions", Refused(json!({"level": "s0"}))),
        (
            "seccompProfile",
            Refused(json!({"type": "Localhost", "localhostProfile": "p"})),
        ),
        ("supplementalGroups", Supported),
        ("supplementalGroupsPolicy", Supported),
        ("sysctls", Refused(json!([{"name": "a", "value": "b"}]))),
        ("windowsOptions", Refused(json!({"runAsUserName": "u"}))),
    ]
}

/// Returns the field names of a type.
fn fields_of<T: JsonSchema>() -> BTreeSet<String> {
    let schema = T::json_schema(&mut SchemaGenerator::default());
    let properties = schema.as_value()["properties"].as_object().unwrap();
    properties.keys().cloned().collect()
}

/// Returns the rejection of a pod whose spec has `value` at `path`.
fn refusal(path: &str, value: &Value) -> Option<String> {
    let mut pod = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {
        "containers": [{
            "name": "c",
            "env": [{"name": "V", "valueFrom": {}}],
            "volumeMounts": [{"name": "v", "mountPath": "/m"}],
            "terminationMessagePath": "/dev/termination-log",
            "resources": {}, "lifecycle": {}, "securityContext": {},
        }],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "dnsPolicy": "ClusterFirst", "securityContext": {},
    }});
    let (parent, name) = path.rsplit_once('/').unwrap();
    let parent = pod.pointer_mut(&format!("/spec{parent}")).unwrap();
    if !value.is_null() {
        parent[name] = value.clone();
    }
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let container = &pod.spec.as_ref().unwrap().containers[0];
    let agent_privileges = AgentPrivileges {
        namespaces: true,
        read_only_views: true,
        selinux: true,
        capabilities: (1 << 41) - 1,
        effective: (1 << 41) - 1,
        ..AgentPrivileges::default()
    };
    let (accounts, images) = (Accounts::default(), ImageUsers::default());
    let enforced = enforce(&pod, container, &agent_privileges, &accounts, &images).map(drop);
    let checked = check(&pod, container).and(enforced);
    checked.err().map(|refusal| refusal.to_string())
}

#[test]
fn every_field_is_supported_harmless_or_rejected() {
    assert_eq!(refusal("/hostname", &Value::Null), None);
    let main = "/containers/0";
    for (place, table, fields) in [
        (String::new(), pod_spec(), fields_of::<core::PodSpec>()),
        (
            "/securityContext".into(),
            pod_context(),
            fields_of::<core::PodSecurityContext>(),
        ),
        (main.into(), container(), fields_of::<core::Container>()),
        (
            format!("{main}/securityContext"),
            context(),
            fields_of::<core::SecurityContext>(),
        ),
        (
            format!("{main}/lifecycle"),
            lifecycle(),
            fields_of::<core::Lifecycle>(),
        ),
        (
            format!("{main}/resources"),
            resources(),
            fields_of::<core::ResourceRequirements>(),
        ),
        (
            format!("{main}/env/0/valueFrom"),
            variable_source(),
            fields_of::<core::EnvVarSource>(),
        ),
        (
            format!("{main}/volumeMounts/0"),
            volume_mount(),
            fields_of::<core::VolumeMount>(),
        ),
        ("/volumes/0".into(), volume(), fields_of::<core::Volume>()),
        (
            "/volumes/0/emptyDir".into(),
            empty_dir(),
            fields_of::<core::EmptyDirVolumeSource>(),
        ),
    ] {
        let listed: BTreeSet<String> = table.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(
            listed.len(),
            table.len(),
            "{place}: a field is listed twice"
        );
        assert_eq!(listed, fields, "{place}");
        for (name, verdict) in table {
            match verdict {
                Refused(value) => {
                    let path = format!("{place}/{name}");
                    let text = refusal(&path, &value);
                    let text = text.unwrap_or_else(|| panic!("{path}: {value} is accepted"));
                    assert!(text.contains(name), "{path}: {text}");
                    let (_, reason) = text.split_once(": ").unwrap();
                    assert!(!reason.is_empty(), "{text}");
                }
                Harmless(reason) => assert!(!reason.is_empty()),
                Supported | NoSuchVolume | NotCreated | Parts => {}
            }
        }
    }
}

#[test]
fn empty_values_are_accepted() {
    for (path, value) in [
        ("/os", json!({"name": "linux"})),
        ("/runtimeClassName", json!("")),
        ("/containers/0/volumeDevices", json!([])),
        (
            "/containers/0/volumeMounts/0/mountPropagation",
            json!("None"),
        ),
        (
            "/containers/0/volumeMounts/0/recursiveReadOnly",
            json!("IfPossible"),
        ),
        ("/volumes/0/emptyDir/medium", json!("Memory")),
    ] {
        assert_eq!(refusal(path, &value), None, "{path} {value}");
    }
}
