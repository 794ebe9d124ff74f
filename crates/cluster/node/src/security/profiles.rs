//! Security profiles and labels: seccomp, AppArmor, SELinux, Windows.

use super::{ContextRequest, Refusal, capabilities::ADMINISTER, refuse_of_pod};
use crate::sandbox::Privileges;

/// The legacy annotation for AppArmor profiles.
const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Applies the seccomp profile. `RuntimeDefault` is this node's filter; other profiles are files
/// that the node does not read.
pub(super) fn apply_system_calls(
    request: &ContextRequest<'_>,
    privileges: &mut Privileges,
) -> Result<(), Refusal> {
    let own = request.own.seccomp_profile.as_ref();
    let Some(profile) = own.or(request.of_pod.seccomp_profile.as_ref()) else {
        return Ok(());
    };
    match profile.type_.as_str() {
        "Unconfined" => Ok(()),
        "RuntimeDefault" => {
            privileges.filters_system_calls = true;
            let agent_privileges = request.agent_privileges;
            if !agent_privileges.user_namespace
                && agent_privileges.effective & (1 << ADMINISTER) == 0
            {
                // The kernel requires this for a filter.
                privileges.no_new_privileges = true;
            }
            Ok(())
        }
        other => {
            let reason = format!(
                "this node has no profiles of type {other}; use RuntimeDefault or Unconfined"
            );
            Err(request.refuse_either(own.is_some(), "seccompProfile", reason))
        }
    }
}

/// Rejects fields that other security modules would have to enforce.
pub(super) fn refuse_labels(request: &ContextRequest<'_>) -> Result<(), Refusal> {
    let own = request.own.app_armor_profile.as_ref();
    let profile = own.or(request.of_pod.app_armor_profile.as_ref());
    if let Some(profile) = profile.filter(|profile| profile.type_ != "Unconfined") {
        let reason = format!(
            "this node loads no profiles of AppArmor, so not {:?}; use Unconfined, or leave it out",
            profile.type_
        );
        return Err(request.refuse_either(own.is_some(), "appArmorProfile", reason));
    }
    let name = format!("{APP_ARMOR_ANNOTATION}{}", request.container.name);
    let annotations = request.pod.metadata.annotations.as_ref();
    let annotated = annotations.and_then(|annotations| annotations.get(&name));
    if profile.is_none() && annotated.is_some_and(|value| value != "unconfined") {
        let reason = "this node loads no profiles of AppArmor; use unconfined, or leave it out";
        return Err(refuse_of_pod(&format!("annotation {name:?}"), reason));
    }
    let own = request.own.se_linux_options.as_ref();
    let labels = own.or(request.of_pod.se_linux_options.as_ref());
    // Without SELinux, the labels have no effect, as on every Kubernetes node.
    if request.agent_privileges.selinux
        && labels.is_some_and(|labels| *labels != Default::default())
    {
        let reason = "this node sets no labels of SELinux; leave it out";
        return Err(request.refuse_either(own.is_some(), "seLinuxOptions", reason));
    }
    let own = request.own.windows_options.as_ref();
    let windows = own.or(request.of_pod.windows_options.as_ref());
    if windows.is_some_and(|options| *options != Default::default()) {
        let reason = "this node runs Linux; leave it out";
        return Err(request.refuse_either(own.is_some(), "windowsOptions", reason));
    }
    Ok(())
}
