//! The volume with the token of a pod's service account, which the admission plugin
//! ServiceAccount of Kubernetes adds to new pods. Pure.

use longshore_builtin::json as js;
use serde_json::{Value, json};

use super::JsonObject;

/// The start of the volume's name.
const PREFIX: &str = "kube-api-access-";
/// The directory in which clients in containers look for the files.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The requested lifetime of the token. API servers recognize these tokens by it.
const TOKEN_SECONDS: i64 = 3607;

/// Returns true if a new pod gets the volume. The pod's field decides; if it is unset, the
/// account's field decides.
pub(super) fn is_wanted(pod: &JsonObject, account: impl FnOnce() -> Option<bool>) -> bool {
    let own = js::at(pod, "spec.automountServiceAccountToken").and_then(Value::as_bool);
    own.or_else(account).unwrap_or(true)
}

/// Adds the volume, and a mount to each container and init container that has no mount at its path.
/// An existing volume whose name has the same prefix is used instead. `suffix` completes the name
/// of a new volume.
pub(super) fn add(pod: &mut JsonObject, suffix: impl FnOnce() -> String) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else {
        return;
    };
    let known = js::items(spec, "volumes")
        .map(|volume| js::text(volume, "name"))
        .find(|name| name.starts_with(PREFIX))
        .map(str::to_owned);
    let has_volume = known.is_some();
    let lacks_mount = |container: &JsonObject| {
        let mut mounts = js::items(container, "volumeMounts");
        !mounts.any(|mount| js::text(mount, "mountPath") == MOUNT_PATH)
    };
    let lists = ["initContainers", "containers"];
    if !lists
        .iter()
        .any(|list| js::items(spec, list).any(lacks_mount))
    {
        return;
    }
    let name = known.unwrap_or_else(|| format!("{PREFIX}{}", suffix()));
    for list in lists {
        for container in js::items_mut(spec, list) {
            if lacks_mount(container) {
                let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
                push(container, "volumeMounts", mount);
            }
        }
    }
    if !has_volume {
        push(spec, "volumes", volume(&name));
    }
}

/// Appends to a list. A field that is not a list is left to the validation.
fn push(object: &mut JsonObject, list: &str, item: Value) {
    let list = object.entry(list).or_insert(Value::Null);
    match list {
        Value::Array(items) => items.push(item),
        Value::Null => *list = Value::Array(vec![item]),
        _ => {}
    }
}

fn volume(name: &str) -> Value {
    json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {
            "name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{
            "path": "namespace",
            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn with_volume(pod: Value) -> Value {
        let Value::Object(mut pod) = pod else {
            panic!("not an object")
        };
        add(&mut pod, || "abcde".to_owned());
        let first = pod.clone();
        // The second call has no effect.
        add(&mut pod, || panic!("another name"));
        assert_eq!(pod, first);
        pod.into()
    }

    fn mount(name: &str) -> Value {
        json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH})
    }

    #[test]
    fn all_containers_but_ephemeral_ones_mount_the_volume() {
        let pod = with_volume(json!({"spec": {
            "initContainers": [{"name": "i"}],
            "containers": [{"name": "a", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "ephemeralContainers": [{"name": "e"}],
            "volumes": [{"name": "v"}],
        }}));
        let spec = &pod["spec"];
        let own = mount("kube-api-access-abcde");
        assert_eq!(spec["initContainers"][0]["volumeMounts"], json!([own]));
        let mounts = &spec["containers"][0]["volumeMounts"];
        assert_eq!(mounts, &json!([{"name": "v", "mountPath": "/v"}, own]));
        assert!(spec["ephemeralContainers"][0]["volumeMounts"].is_null());
        assert_eq!(spec["volumes"][1], volume("kube-api-access-abcde"));
    }

    #[test]
    fn containers_keep_what_they_mount_at_the_path() {
        let other = json!({"name": "v", "mountPath": MOUNT_PATH});
        let all = json!({"spec": {
            "containers": [{"name": "a", "volumeMounts": [other]}], "volumes": [{"name": "v"}],
        }});
        assert_eq!(with_volume(all.clone()), all);
        let mut one = all;
        one["spec"]["initContainers"] = json!([{"name": "i"}]);
        let pod = with_volume(one);
        assert_eq!(pod["spec"]["containers"][0]["volumeMounts"], json!([other]));
        let mounts = &pod["spec"]["initContainers"][0]["volumeMounts"];
        assert_eq!(mounts, &json!([mount("kube-api-access-abcde")]));
    }

    #[test]
    fn a_volume_with_such_a_name_takes_its_place() {
        let pod = with_volume(json!({"spec": {
            "containers": [{"name": "a"}], "volumes": [{"name": "kube-api-access-own"}],
        }}));
        assert_eq!(
            pod["spec"]["volumes"],
            json!([{"name": "kube-api-access-own"}])
        );
        let mounts = &pod["spec"]["containers"][0]["volumeMounts"];
        assert_eq!(mounts, &json!([mount("kube-api-access-own")]));
    }

    #[test]
    fn the_pods_own_field_comes_first() {
        let pod = |own: Value| {
            let pod = json!({"spec": {"automountServiceAccountToken": own}});
            pod.as_object().unwrap().clone()
        };
        for (own, account, wanted) in [
            (Value::Null, None, true),
            (Value::Null, Some(true), true),
            (Value::Null, Some(false), false),
            (true.into(), Some(false), true),
            (false.into(), Some(true), false),
            (false.into(), None, false),
        ] {
            assert_eq!(
                is_wanted(&pod(own.clone()), || account),
                wanted,
                "{own} {account:?}"
            );
        }
    }

    #[test]
    fn malformed_pods_are_left_to_the_validation() {
        for pod in [
            json!({}),
            json!({"spec": 1}),
            json!({"spec": {"containers": 1, "volumes": 1}}),
            json!({"spec": {"containers": [1, {"volumeMounts": "x"}], "volumes": {}}}),
        ] {
            let Value::Object(mut pod) = pod else {
                panic!("not an object")
            };
            add(&mut pod, || "abcde".to_owned());
        }
    }
}
