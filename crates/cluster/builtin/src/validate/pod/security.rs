//! Validation of security contexts.

use std::collections::HashSet;

use crate::{
    cause::Cause,
    validate::field_value::{Causes, FieldValue},
};

/// Validates a user or group id.
fn number(at: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if at
        .number()
        .is_some_and(|number| !(0..=i64::from(i32::MAX)).contains(&number))
    {
        causes.invalid(at, "must be between 0 and 2147483647, inclusive");
    }
}

/// Validates the security context of a pod.
pub(super) fn of_pod(context: &FieldValue<'_>, causes: &mut Causes<'_>) {
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        number(&context.get(field), causes);
    }
    for group in context.get("supplementalGroups").items() {
        number(&group, causes);
    }
    let mut names = HashSet::new();
    for sysctl in context.get("sysctls").items() {
        let name = sysctl.get("name");
        if name.text().is_empty() {
            causes.required(&name, "");
        } else if !is_sysctl(name.text()) {
            let detail = r"must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            causes.invalid(&name, detail);
        } else if names.contains(&name.text()) {
            causes.duplicate(&name);
        }
        names.insert(name.text());
    }
    seccomp(&context.get("seccompProfile"), causes);
    causes.one_of_if_set(
        &context.get("fsGroupChangePolicy"),
        &["Always", "OnRootMismatch"],
    );
}

fn is_sysctl(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 253
        && name.split(['.', '/']).all(|part| {
            part.bytes().all(|b| plain(b) || b == b'-' || b == b'_')
                && part.bytes().next().is_some_and(plain)
                && part.bytes().last().is_some_and(plain)
        })
}

/// Validates a seccomp profile.
fn seccomp(profile: &FieldValue<'_>, causes: &mut Causes<'_>) {
    if !profile.is_set() {
        return;
    }
    let (kind, local) = (profile.get("type"), profile.get("localhostProfile"));
    if kind.text() == "Localhost" {
        if local.text().is_empty() {
            causes.required(&local, "must be set when seccomp type is Localhost");
        } else if local.text().starts_with('/') {
            causes.invalid(&local, "must be a relative path");
        } else if local.text().split('/').any(|part| part == "..") {
            causes.invalid(&local, "must not contain '..'");
        }
    } else if local.is_set() {
        let detail = "can only be set when seccomp type is Localhost";
        causes
            .0
            .push(Cause::invalid(&local.path, profile.value(), detail));
    }
    if kind.text().is_empty() {
        causes.required(&kind, "type is required when seccompProfile is set");
    } else {
        causes.one_of(&kind, &["Localhost", "RuntimeDefault", "Unconfined"]);
    }
}

/// Validates the security context of a container.
pub(super) fn of_container(context: &FieldValue<'_>, causes: &mut Causes<'_>) {
    for field in ["runAsUser", "runAsGroup"] {
        number(&context.get(field), causes);
    }
    seccomp(&context.get("seccompProfile"), causes);
    let forbids = context.get("allowPrivilegeEscalation").raw() == Some(&false.into());
    let mut report = |detail| {
        causes
            .0
            .push(Cause::invalid(&context.path, context.value(), detail))
    };
    if forbids && context.get("privileged").is_true() {
        report("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    let added = context.get("capabilities").get("add");
    if forbids && added.items().any(|one| one.text() == "CAP_SYS_ADMIN") {
        report(
            "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
        );
    }
}
