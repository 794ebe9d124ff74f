//! The rules that the level restricted adds, in the order of Kubernetes' messages.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Check, Version, Violation,
    baseline::{bad_seccomp, texts, unmasked_proc},
    template::{Template, plural, quoted},
};

/// The rules.
pub(super) const CHECKS: [Check; 7] = [
    privilege_escalation,
    capabilities,
    proc_mount,
    volumes,
    run_as_non_root,
    run_as_user,
    seccomp,
];

/// The rules of the level baseline that stricter ones replace.
pub(super) fn overridden(version: Version) -> Vec<&'static str> {
    let rules = [
        ("hostPathVolumes", 0),
        ("seccompProfile_baseline", 19),
        ("capabilities_baseline", 22),
        ("procMount", 35),
    ];
    let rules = rules
        .into_iter()
        .filter(|(_, since)| version.is_since(*since));
    rules.map(|(name, _)| name).collect()
}

/// The permitted types of volumes.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// Pods for Windows are exempt from some rules, because they cannot set the fields.
fn is_exempt(pod: &Template<'_>, version: Version) -> bool {
    version.is_since(25) && pod.is_windows()
}

fn privilege_escalation(pod: &Template<'_>, version: Version) -> Option<Violation> {
    if is_exempt(pod, version) {
        return None;
    }
    let found = pod.containers_where(|container| {
        container["securityContext"]["allowPrivilegeEscalation"] != false
    });
    (!found.names.is_empty()).then(|| {
        let detail = format!("{found} must set securityContext.allowPrivilegeEscalation=false");
        Violation::new("allowPrivilegeEscalation != false", detail)
    })
}

fn capabilities(pod: &Template<'_>, version: Version) -> Option<Violation> {
    if !version.is_since(22) || is_exempt(pod, version) {
        return None;
    }
    let of = |container: &Value| container["securityContext"]["capabilities"].clone();
    let missing = pod.containers_where(|container| {
        let capabilities = of(container);
        let mut dropped = texts(&capabilities["drop"]);
        !dropped.any(|one| one == "ALL")
    });
    let mut added = BTreeSet::new();
    let adding = pod.containers_where(|container| {
        let capabilities = of(container);
        let bad = texts(&capabilities["add"]).filter(|one| *one != "NET_BIND_SERVICE");
        let bad: Vec<String> = bad.map(str::to_owned).collect();
        added.extend(bad.iter().cloned());
        !bad.is_empty()
    });
    let mut details = Vec::new();
    if !missing.names.is_empty() {
        details.push(format!(
            "{missing} must set securityContext.capabilities.drop=[\"ALL\"]"
        ));
    }
    if !adding.names.is_empty() {
        details.push(format!(
            "{adding} must not include {} in securityContext.capabilities.add",
            quoted(added.iter().map(String::as_str))
        ));
    }
    (!details.is_empty()).then(|| Violation::new("unrestricted capabilities", details.join("; ")))
}

fn proc_mount(pod: &Template<'_>, version: Version) -> Option<Violation> {
    // Before this release, the rule of the level baseline has no exception.
    version.is_since(35).then(|| unmasked_proc(pod))?
}

fn volumes(pod: &Template<'_>, _: Version) -> Option<Violation> {
    let (mut names, mut types) = (Vec::new(), BTreeSet::new());
    for volume in pod.spec()["volumes"].as_array().into_iter().flatten() {
        let fields = volume.as_object().into_iter().flatten();
        let mut sources = fields.filter(|(name, value)| *name != "name" && !value.is_null());
        let source = sources.next().map_or("unknown", |(name, _)| name.as_str());
        if !VOLUMES.contains(&source) {
            names.extend(volume["name"].as_str());
            types.insert(source);
        }
    }
    (!names.is_empty()).then(|| {
        let uses = if names.len() == 1 { "uses" } else { "use" };
        let detail = format!(
            "{} {} {uses} {} {}",
            plural("volume", names.len()),
            quoted(names),
            plural("restricted volume type", types.len()),
            quoted(types)
        );
        Violation::new("restricted volume types", detail)
    })
}

fn run_as_non_root(pod: &Template<'_>, version: Version) -> Option<Violation> {
    if version.is_since(35) && pod.has_user_namespace() {
        return None;
    }
    let reason = "runAsNonRoot != true";
    let setters = pod.setters(|context| context["runAsNonRoot"] == false);
    if !setters.is_empty() {
        let detail = format!(
            "{} must not set securityContext.runAsNonRoot=false",
            setters.join(" and ")
        );
        return Some(Violation::new(reason, detail));
    }
    if pod.spec()["securityContext"]["runAsNonRoot"] == true {
        return None;
    }
    let missing =
        pod.containers_where(|container| container["securityContext"]["runAsNonRoot"].is_null());
    (!missing.names.is_empty()).then(|| {
        let detail = format!("pod or {missing} must set securityContext.runAsNonRoot=true");
        Violation::new(reason, detail)
    })
}

fn run_as_user(pod: &Template<'_>, version: Version) -> Option<Violation> {
    if !version.is_since(23) || (version.is_since(35) && pod.has_user_namespace()) {
        return None;
    }
    let setters = pod.setters(|context| context["runAsUser"] == 0);
    (!setters.is_empty()).then(|| {
        let detail = format!("{} must not set runAsUser=0", setters.join(" and "));
        Violation::new("runAsUser=0", detail)
    })
}

fn seccomp(pod: &Template<'_>, version: Version) -> Option<Violation> {
    if !version.is_since(19) || is_exempt(pod, version) {
        return None;
    }
    if let Some(bad) = bad_seccomp(pod) {
        return Some(bad);
    }
    if !pod.spec()["securityContext"]["seccompProfile"].is_null() {
        return None;
    }
    let missing =
        pod.containers_where(|container| container["securityContext"]["seccompProfile"].is_null());
    (!missing.names.is_empty()).then(|| {
        let detail = format!(
            "pod or {missing} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
        );
        Violation::new("seccompProfile", detail)
    })
}
