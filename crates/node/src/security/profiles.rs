//! Profiles and labels: seccomp, AppArmor, SELinux, Windows.

use super::{Asked, Refusal, capabilities::ADMINISTER, refuse_of_pod};
use crate::sandbox::Privileges;

/// Where profiles of AppArmor were asked for before there was a field.
const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// `RuntimeDefault` is the filter of this node; another profile is a file that
/// it does not read.
pub(super) fn apply_system_calls(
    asked: &Asked<'_>,
    privileges: &mut Privileges,
) -> Result<(), Refusal> {
    let own = asked.own.seccomp_profile.as_ref();
    let Some(profile) = own.or(asked.of_pod.seccomp_profile.as_ref()) else {
        return Ok(());
    };
    match profile.type_.as_str() {
        "Unconfined" => Ok(()),
        "RuntimeDefault" => {
            privileges.filters_system_calls = true;
            let powers = asked.powers;
            if !powers.user_namespace && powers.effective & (1 << ADMINISTER) == 0 {
                // The kernel's condition for a filter.
                privileges.no_new_privileges = true;
            }
            Ok(())
        }
        other => {
            let reason = format!(
                "this node has no profiles of type {other}; use RuntimeDefault or Unconfined"
            );
            Err(asked.refuse_either(own.is_some(), "seccompProfile", reason))
        }
    }
}

/// Refuses what other security modules would have to enforce.
pub(super) fn refuse_labels(asked: &Asked<'_>) -> Result<(), Refusal> {
    let own = asked.own.app_armor_profile.as_ref();
    let profile = own.or(asked.of_pod.app_armor_profile.as_ref());
    if let Some(profile) = profile.filter(|profile| profile.type_ != "Unconfined") {
        let reason = format!(
            "this node loads no profiles of AppArmor, so not {:?}; use Unconfined, or leave it out",
            profile.type_
        );
        return Err(asked.refuse_either(own.is_some(), "appArmorProfile", reason));
    }
    let name = format!("{APP_ARMOR_ANNOTATION}{}", asked.container.name);
    let annotations = asked.pod.metadata.annotations.as_ref();
    let annotated = annotations.and_then(|annotations| annotations.get(&name));
    if profile.is_none() && annotated.is_some_and(|value| value != "unconfined") {
        let reason = "this node loads no profiles of AppArmor; use unconfined, or leave it out";
        return Err(refuse_of_pod(&format!("annotation {name:?}"), reason));
    }
    let own = asked.own.se_linux_options.as_ref();
    let labels = own.or(asked.of_pod.se_linux_options.as_ref());
    // Without SELinux they have no effect, as on every node of Kubernetes.
    if asked.powers.selinux && labels.is_some_and(|labels| *labels != Default::default()) {
        let reason = "this node sets no labels of SELinux; leave it out";
        return Err(asked.refuse_either(own.is_some(), "seLinuxOptions", reason));
    }
    let own = asked.own.windows_options.as_ref();
    let windows = own.or(asked.of_pod.windows_options.as_ref());
    if windows.is_some_and(|options| *options != Default::default()) {
        let reason = "this node runs Linux; leave it out";
        return Err(asked.refuse_either(own.is_some(), "windowsOptions", reason));
    }
    Ok(())
}
