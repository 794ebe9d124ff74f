//! The rules of the level baseline, in the order of Kubernetes' messages.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Check, Version, Violation,
    template::{Template, plural, quoted},
};

/// The rules with their names.
pub(super) const CHECKS: [(&str, Check); 12] = [
    ("appArmorProfile", app_armor),
    ("capabilities_baseline", capabilities),
    ("hostNamespaces", host_namespaces),
    ("hostPathVolumes", host_paths),
    ("hostPorts", host_ports),
    ("hostProbesAndHostLifecycle", host_probes),
    ("privileged", privileged),
    ("procMount", proc_mount),
    ("seLinuxOptions", se_linux),
    ("seccompProfile_baseline", seccomp),
    ("sysctls", sysctls),
    ("windowsHostProcess", windows_host_process),
];

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The permitted sysctls, each with the minor release since which it is permitted.
const SYSCTLS: [(&str, u32); 14] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
    ("net.ipv4.tcp_slow_start_after_idle", 37),
    ("net.ipv4.tcp_notsent_lowat", 37),
];

const APP_ARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The strings of a list.
pub(super) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str)
}

fn app_armor(pod: &Template<'_>, _: Version) -> Option<Violation> {
    let mut values = BTreeSet::new();
    let mut setters = pod.setters(|context| {
        let profile = context["appArmorProfile"]["type"].as_str();
        let bad = profile.filter(|kind| !matches!(*kind, "RuntimeDefault" | "Localhost"));
        values.extend(bad.map(str::to_owned));
        bad.is_some()
    });
    let annotations = pod.annotations().filter(|(key, value)| {
        let is_allowed =
            value.is_empty() || *value == "runtime/default" || value.starts_with("localhost/");
        key.starts_with(APP_ARMOR_ANNOTATION) && !is_allowed
    });
    let annotations: BTreeSet<String> = annotations
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    let mut values: Vec<String> = values.into_iter().collect();
    if !annotations.is_empty() {
        setters.push(plural("annotation", annotations.len()));
        values.extend(annotations);
    }
    if setters.is_empty() {
        return None;
    }
    let reason = plural("forbidden AppArmor profile", values.len());
    let detail = format!(
        "{} must not set AppArmor profile type to {}",
        setters.join(" and "),
        quoted(values.iter().map(String::as_str))
    );
    Some(Violation::new(&reason, detail))
}

fn capabilities(pod: &Template<'_>, _: Version) -> Option<Violation> {
    let mut added = BTreeSet::new();
    let found = pod.containers_where(|container| {
        let bad = texts(&container["securityContext"]["capabilities"]["add"]);
        let bad: Vec<_> = bad.filter(|one| !CAPABILITIES.contains(one)).collect();
        added.extend(bad.iter().map(|one| (*one).to_owned()));
        !bad.is_empty()
    });
    (!found.names.is_empty()).then(|| {
        let detail = format!(
            "{found} must not include {} in securityContext.capabilities.add",
            quoted(added.iter().map(String::as_str))
        );
        Violation::new("non-default capabilities", detail)
    })
}

fn host_namespaces(pod: &Template<'_>, _: Version) -> Option<Violation> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let shared = fields.filter(|field| pod.spec()[*field] == true);
    let shared: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    (!shared.is_empty()).then(|| Violation::new("host namespaces", shared.join(", ")))
}

fn host_paths(pod: &Template<'_>, _: Version) -> Option<Violation> {
    let volumes = pod.spec()["volumes"].as_array().into_iter().flatten();
    let volumes = volumes.filter(|volume| !volume["hostPath"].is_null());
    let names: Vec<&str> = volumes
        .filter_map(|volume| volume["name"].as_str())
        .collect();
    (!names.is_empty()).then(|| {
        let word = plural("volume", names.len());
        Violation::new("hostPath volumes", format!("{word} {}", quoted(names)))
    })
}

fn host_ports(pod: &Template<'_>, _: Version) -> Option<Violation> {
    let mut ports = BTreeSet::new();
    let found = pod.containers_where(|container| {
        let list = container["ports"].as_array().into_iter().flatten();
        let used = list.filter_map(|port| port["hostPort"].as_i64());
        let used: Vec<_> = used.filter(|port| *port != 0).collect();
        ports.extend(used.iter().map(i64::to_string));
        !used.is_empty()
    });
    (!found.names.is_empty()).then(|| {
        let uses = if found.names.len() == 1 {
            "uses"
        } else {
            "use"
        };
        let detail = format!(
            "{found} {uses} {} {}",
            plural("hostPort", ports.len()),
            ports.iter().cloned().collect::<Vec<_>>().join(", ")
        );
        Violation::new("hostPort", detail)
    })
}

fn host_probes(pod: &Template<'_>, version: Version) -> Option<Violation> {
    if !version.is_since(34) {
        return None;
    }
    let mut hosts = BTreeSet::new();
    let mut found = pod.containers_where(|container| {
        let handlers = [
            &container["livenessProbe"],
            &container["readinessProbe"],
            &container["startupProbe"],
            &container["lifecycle"]["postStart"],
            &container["lifecycle"]["preStop"],
        ];
        let used = handlers.into_iter().flat_map(|handler| {
            ["httpGet", "tcpSocket"].map(|kind| handler[kind]["host"].as_str())
        });
        let used: Vec<&str> = used.flatten().filter(|host| !host.is_empty()).collect();
        hosts.extend(used.iter().map(|host| (*host).to_owned()));
        !used.is_empty()
    });
    found.names.sort_unstable();
    (!found.names.is_empty()).then(|| {
        let uses = if found.names.len() == 1 {
            "uses"
        } else {
            "use"
        };
        let detail = format!(
            "{found} {uses} {} {}",
            plural("probe or lifecycle host", hosts.len()),
            quoted(hosts.iter().map(String::as_str))
        );
        Violation::new("probe or lifecycle host", detail)
    })
}

fn privileged(pod: &Template<'_>, _: Version) -> Option<Violation> {
    let found =
        pod.containers_where(|container| container["securityContext"]["privileged"] == true);
    (!found.names.is_empty()).then(|| {
        let detail = format!("{found} must not set securityContext.privileged=true");
        Violation::new("privileged", detail)
    })
}

fn proc_mount(pod: &Template<'_>, version: Version) -> Option<Violation> {
    if version.is_since(35) && pod.has_user_namespace() {
        return None;
    }
    unmasked_proc(pod)
}

/// Finds containers that can see all of /proc.
pub(super) fn unmasked_proc(pod: &Template<'_>) -> Option<Violation> {
    let mut kinds = BTreeSet::new();
    let found = pod.containers_where(|container| {
        let mount = container["securityContext"]["procMount"].as_str();
        let bad = mount.filter(|kind| *kind != "Default");
        kinds.extend(bad.map(str::to_owned));
        bad.is_some()
    });
    (!found.names.is_empty()).then(|| {
        let kinds = quoted(kinds.iter().map(String::as_str));
        let detail = format!("{found} must not set securityContext.procMount to {kinds}");
        Violation::new("procMount", detail)
    })
}

fn se_linux(pod: &Template<'_>, version: Version) -> Option<Violation> {
    let (mut types, mut sets_user, mut sets_role) = (BTreeSet::new(), false, false);
    let setters = pod.setters(|context| {
        let options = &context["seLinuxOptions"];
        let text = |field: &str| options[field].as_str().unwrap_or_default().to_owned();
        let kind = text("type");
        let is_allowed = match &*kind {
            "" | "container_t" | "container_init_t" | "container_kvm_t" => true,
            "container_engine_t" => version.is_since(31),
            _ => false,
        };
        let (user, role) = (!text("user").is_empty(), !text("role").is_empty());
        sets_user |= user;
        sets_role |= role;
        if !is_allowed {
            types.insert(kind);
        }
        !is_allowed || user || role
    });
    if setters.is_empty() {
        return None;
    }
    let mut problems = Vec::new();
    if !types.is_empty() {
        let word = plural("type", types.len());
        problems.push(format!(
            "{word} {}",
            quoted(types.iter().map(String::as_str))
        ));
    }
    if sets_user {
        problems.push("user may not be set".to_owned());
    }
    if sets_role {
        problems.push("role may not be set".to_owned());
    }
    let detail = format!(
        "{} set forbidden securityContext.seLinuxOptions: {}",
        setters.join(" and "),
        problems.join("; ")
    );
    Some(Violation::new("seLinuxOptions", detail))
}

fn seccomp(pod: &Template<'_>, version: Version) -> Option<Violation> {
    // Before this release, profiles were annotations, which no longer have an effect.
    if !version.is_since(19) {
        return None;
    }
    bad_seccomp(pod)
}

/// The pod and containers that set a seccomp profile that is not permitted.
pub(super) fn bad_seccomp(pod: &Template<'_>) -> Option<Violation> {
    let mut values = BTreeSet::new();
    let setters = pod.setters(|context| {
        let profile = context["seccompProfile"]["type"].as_str();
        let bad = profile.filter(|kind| !matches!(*kind, "RuntimeDefault" | "Localhost"));
        values.extend(bad.map(str::to_owned));
        bad.is_some()
    });
    (!setters.is_empty()).then(|| {
        let detail = format!(
            "{} must not set securityContext.seccompProfile.type to {}",
            setters.join(" and "),
            quoted(values.iter().map(String::as_str))
        );
        Violation::new("seccompProfile", detail)
    })
}

fn sysctls(pod: &Template<'_>, version: Version) -> Option<Violation> {
    let list = pod.spec()["securityContext"]["sysctls"].as_array();
    let names = list.into_iter().flatten();
    let names = names.filter_map(|one| one["name"].as_str());
    let forbidden = names.filter(|name| {
        let mut allowed = SYSCTLS.iter();
        !allowed.any(|(known, since)| known == name && version.is_since(*since))
    });
    let forbidden: Vec<&str> = forbidden.collect();
    (!forbidden.is_empty()).then(|| Violation::new("forbidden sysctls", forbidden.join(", ")))
}

fn windows_host_process(pod: &Template<'_>, _: Version) -> Option<Violation> {
    let setters = pod.setters(|context| context["windowsOptions"]["hostProcess"] == true);
    (!setters.is_empty()).then(|| {
        let detail = format!(
            "{} must not set securityContext.windowsOptions.hostProcess=true",
            setters.join(" and ")
        );
        Violation::new("hostProcess", detail)
    })
}
