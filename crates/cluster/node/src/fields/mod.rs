//! Checks for pod fields, except security contexts, that this node does not support. A pod that
//! sets such a field is rejected with the field's name. Pure.
//!
//! Each field of a pod's spec is supported, harmless or rejected. The table in `tests.rs` lists
//! them; its test fails if Kubernetes' types have a field that is not in the table.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, VolumeMount};

use crate::security::Refusal;

/// Rejects a container if it or its pod sets a field that this node does not
/// support.
pub(crate) fn check(pod: &Pod, container: &Container) -> Result<(), Refusal> {
    if let Some(spec) = &pod.spec {
        check_pod(spec)?;
    }
    check_container(container)?;
    for mount in container.volume_mounts.iter().flatten() {
        check_mount(container, mount)?;
    }
    Ok(())
}

/// Returns true if a list is set and not empty.
fn has<T>(list: Option<&Vec<T>>) -> bool {
    list.is_some_and(|list| !list.is_empty())
}

fn has_text(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

fn check_pod(spec: &PodSpec) -> Result<(), Refusal> {
    let refuse = |field: &str, reason: &str| -> Result<(), Refusal> {
        Err(Refusal::Field {
            field: format!("pod {field}"),
            reason: reason.to_owned(),
        })
    };
    if has_text(spec.runtime_class_name.as_ref()) {
        return refuse(
            "runtimeClassName",
            "this node has one runtime, which runs processes of the machine; leave it out",
        );
    }
    if spec.os.as_ref().is_some_and(|os| os.name != "linux") {
        return refuse("os", "this node runs Linux; leave it out");
    }
    if has(spec.resource_claims.as_ref()) {
        return refuse(
            "resourceClaims",
            "this node allocates no resource claims; request devices in resources.limits",
        );
    }
    if has(spec.eviction_responders.as_ref()) {
        return refuse(
            "evictionResponders",
            "pods are evicted at once here; leave them out",
        );
    }
    if spec.scheduling_group.is_some() {
        return refuse(
            "schedulingGroup",
            "pods are scheduled one by one here; leave it out",
        );
    }
    if spec.set_hostname_as_fqdn == Some(true) {
        return refuse(
            "setHostnameAsFQDN",
            "this node sets the short host name only; leave it out",
        );
    }
    if has_text(spec.hostname_override.as_ref()) {
        return refuse("hostnameOverride", "use hostname");
    }
    for volume in spec.volumes.iter().flatten() {
        let medium = volume
            .empty_dir
            .as_ref()
            .and_then(|dir| dir.medium.as_deref());
        if medium.is_some_and(|medium| medium.starts_with("HugePages")) {
            return refuse(
                &format!("volume {:?} emptyDir.medium", volume.name),
                "this node offers no huge pages; leave it out",
            );
        }
        if volume
            .empty_dir
            .as_ref()
            .is_some_and(|dir| dir.mode.is_some())
        {
            return refuse(
                &format!("volume {:?} emptyDir.mode", volume.name),
                "everybody may write to such a volume here; leave it out",
            );
        }
    }
    Ok(())
}

fn check_container(container: &Container) -> Result<(), Refusal> {
    let name = &container.name;
    let refuse = |field: &str, reason: &str| -> Result<(), Refusal> {
        Err(Refusal::Field {
            field: format!("container {name:?} {field}"),
            reason: reason.to_owned(),
        })
    };
    if has(container.volume_devices.as_ref()) {
        return refuse(
            "volumeDevices",
            "this node offers no block devices; mount a hostPath",
        );
    }
    let resources = container.resources.as_ref();
    if resources.is_some_and(|resources| has(resources.claims.as_ref())) {
        return refuse(
            "resources.claims",
            "this node allocates no resource claims; request devices in resources.limits",
        );
    }
    let path = container.termination_message_path.as_deref();
    if path.is_some_and(|path| path.split('/').any(|part| part == "..")) {
        return refuse("terminationMessagePath", "the path must not contain \"..\"");
    }
    let signal = container
        .lifecycle
        .as_ref()
        .and_then(|lifecycle| lifecycle.stop_signal.as_ref());
    if has_text(signal) {
        let reason = "containers are stopped by SIGTERM; leave it out";
        return refuse("lifecycle.stopSignal", reason);
    }
    let mut rules = container.restart_policy_rules.iter().flatten();
    if rules.any(|rule| rule.action != "Restart") {
        let reason = "this node restarts containers one by one; use the action Restart";
        return refuse("restartPolicyRules", reason);
    }
    for variable in container.env.iter().flatten() {
        let from = variable.value_from.as_ref();
        if from.is_some_and(|from| from.file_key_ref.is_some()) {
            return refuse(
                &format!("env {:?} valueFrom.fileKeyRef", variable.name),
                "this node reads no variables from files of volumes; use a ConfigMap or a Secret",
            );
        }
    }
    Ok(())
}

fn check_mount(container: &Container, mount: &VolumeMount) -> Result<(), Refusal> {
    let refuse = |field: &str, reason: &str| -> Result<(), Refusal> {
        Err(Refusal::Field {
            field: format!(
                "container {:?} volumeMount {:?} {field}",
                container.name, mount.mount_path
            ),
            reason: reason.to_owned(),
        })
    };
    let propagation = mount.mount_propagation.as_deref().unwrap_or("None");
    if propagation != "None" {
        let reason = "mounts that are made later stay in the mount namespace where they are \
                      made; leave it out";
        return refuse("mountPropagation", reason);
    }
    if has(mount.bind_mount_options.as_ref()) {
        let reason = "volumes are mounted without options; leave them out";
        return refuse("bindMountOptions", reason);
    }
    if mount.recursive_read_only.as_deref() == Some("Enabled") {
        let reason = "mounts below the volume keep their own mode; use IfPossible, or leave it out";
        return refuse("recursiveReadOnly", reason);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
