//! Adapts pods to the Pod Security Standard `restricted`.
//!
//! Source: <https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted>.

use serde_json::{Map, Value, json};

use crate::names;

/// The default user and group of containers. Images rarely have a user with this ID; it owns
/// the content of the pod's volumes.
const USER: u32 = 1000;

/// Completes a pod's spec. Fields of its template stay unchanged.
pub(super) fn complete(pod: &mut Value) {
    fill(
        &mut pod["securityContext"],
        json!({
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        }),
    );
    for field in ["initContainers", "containers"] {
        for container in pod[field].as_array_mut().into_iter().flatten() {
            fill(
                &mut container["securityContext"],
                json!({
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                }),
            );
            if container["name"] == names::MAIN {
                add_home(container);
            }
        }
    }
}

/// Sets a writable home folder for the command, because the image's belongs to root.
fn add_home(main: &mut Value) {
    let Some(env) = main["env"].as_array_mut() else {
        return;
    };
    if !env.iter().any(|variable| variable["name"] == "HOME") {
        env.push(json!({"name": "HOME", "value": "/tmp"}));
    }
}

fn fill(context: &mut Value, defaults: Value) {
    if context.is_null() {
        *context = Value::Object(Map::new());
    }
    let (Some(context), Value::Object(defaults)) = (context.as_object_mut(), defaults) else {
        return;
    };
    for (field, value) in defaults {
        context.entry(field).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_template_are_kept() {
        let mut pod = json!({
            "securityContext": {"runAsUser": 7},
            "initContainers": [{"name": "install"}],
            "containers": [
                {"name": "main", "env": [{"name": "HOME", "value": "/home/ada"}],
                 "securityContext": {"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}},
                {"name": "side"},
            ],
        });
        complete(&mut pod);
        let container = json!({
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        });
        let expected = json!({
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 7, "runAsGroup": 1000, "fsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "initContainers": [{"name": "install", "securityContext": container}],
            "containers": [
                {"name": "main", "env": [{"name": "HOME", "value": "/home/ada"}],
                 "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
                 }},
                {"name": "side", "securityContext": container},
            ],
        });
        assert_eq!(pod, expected);
    }

    #[test]
    fn a_command_has_a_home_folder() {
        let mut pod = json!({"containers": [{"name": "main", "env": []}]});
        complete(&mut pod);
        let env = &pod["containers"][0]["env"];
        assert_eq!(*env, json!([{"name": "HOME", "value": "/tmp"}]));
    }
}
