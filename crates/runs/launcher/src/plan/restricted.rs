//! Adapts pods to the Pod Security Standard `restricted`.
//!
//! Source: <https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted>.

use longshore_client::k8s_openapi::api::core::v1::{
    Capabilities, Container, EnvVar, PodSpec, SeccompProfile,
};
use longshore_diagnosis::names;

/// The default user and group of containers. Images rarely have a user with this ID; it owns
/// the content of the pod's volumes.
const USER: i64 = 1000;

/// Completes a pod's spec. Fields of the pod's template are not changed.
pub(super) fn complete(pod: &mut PodSpec) {
    let context = pod.security_context.get_or_insert_default();
    context.run_as_non_root.get_or_insert(true);
    context.run_as_user.get_or_insert(USER);
    context.run_as_group.get_or_insert(USER);
    context.fs_group.get_or_insert(USER);
    context
        .seccomp_profile
        .get_or_insert_with(|| SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            ..SeccompProfile::default()
        });
    let init = pod.init_containers.iter_mut().flatten();
    for container in init.chain(&mut pod.containers) {
        let context = container.security_context.get_or_insert_default();
        context.allow_privilege_escalation.get_or_insert(false);
        context.capabilities.get_or_insert_with(|| Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            ..Capabilities::default()
        });
        if container.name == names::MAIN {
            add_home(container);
        }
    }
}

/// Sets a writable home folder for the command, because the image's home folder belongs to root.
fn add_home(main: &mut Container) {
    let Some(env) = &mut main.env else {
        return;
    };
    if !env.iter().any(|variable| variable.name == "HOME") {
        env.push(EnvVar {
            name: "HOME".to_owned(),
            value: Some("/tmp".to_owned()),
            ..EnvVar::default()
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn completed(pod: Value) -> Value {
        let mut pod: PodSpec = serde_json::from_value(pod).unwrap();
        complete(&mut pod);
        serde_json::to_value(pod).unwrap()
    }

    #[test]
    fn fields_of_the_template_are_kept() {
        let pod = completed(json!({
            "securityContext": {"runAsUser": 7},
            "initContainers": [{"name": "install"}],
            "containers": [
                {"name": "main", "env": [{"name": "HOME", "value": "/home/ada"}],
                 "securityContext": {"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}},
                {"name": "side"},
            ],
        }));
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
        let pod = completed(json!({"containers": [{"name": "main", "env": []}]}));
        let env = &pod["containers"][0]["env"];
        assert_eq!(*env, json!([{"name": "HOME", "value": "/tmp"}]));
    }
}
