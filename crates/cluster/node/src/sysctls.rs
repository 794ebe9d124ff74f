//! Decides which kernel parameters pods may set (`sysctls`), like the kubelet. Pure.

use k8s_openapi::api::core::v1::Pod;

use crate::host_ports::Rejection;

/// A namespace of the kernel that has its own values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Ipc,
    Net,
}

/// The parameters that a pod may set, because they have no effect on other pods.
const SAFE: [(&str, Namespace); 14] = [
    ("kernel.shm_rmid_forced", Namespace::Ipc),
    ("net.ipv4.ip_local_port_range", Namespace::Net),
    ("net.ipv4.tcp_syncookies", Namespace::Net),
    ("net.ipv4.ping_group_range", Namespace::Net),
    ("net.ipv4.ip_unprivileged_port_start", Namespace::Net),
    ("net.ipv4.ip_local_reserved_ports", Namespace::Net),
    ("net.ipv4.tcp_keepalive_time", Namespace::Net),
    ("net.ipv4.tcp_fin_timeout", Namespace::Net),
    ("net.ipv4.tcp_keepalive_intvl", Namespace::Net),
    ("net.ipv4.tcp_keepalive_probes", Namespace::Net),
    ("net.ipv4.tcp_rmem", Namespace::Net),
    ("net.ipv4.tcp_wmem", Namespace::Net),
    ("net.ipv4.tcp_slow_start_after_idle", Namespace::Net),
    ("net.ipv4.tcp_notsent_lowat", Namespace::Net),
];

/// Rejects a pod that sets an unsafe parameter, or a parameter whose namespace the pod shares with
/// the machine.
///
/// # Errors
/// The first such parameter.
pub(crate) fn check(pod: &Pod) -> Result<(), Rejection> {
    let Some(spec) = &pod.spec else {
        return Ok(());
    };
    let context = spec.security_context.iter();
    for sysctl in context.flat_map(|context| context.sysctls.iter().flatten()) {
        let name = normalized(&sysctl.name);
        let known = SAFE.iter().find(|(safe, _)| *safe == name);
        let problem = match known.map(|(_, namespace)| namespace) {
            None => format!("{name:?} not allowlisted"),
            Some(Namespace::Ipc) if spec.host_ipc == Some(true) => {
                format!("{name:?} not allowed with host IPC enabled")
            }
            Some(Namespace::Net) if spec.host_network == Some(true) => {
                format!("{name:?} not allowed with host Net enabled")
            }
            Some(_) => continue,
        };
        return Err(("SysctlForbidden", format!("forbidden sysctl: {problem}")));
    }
    Ok(())
}

/// Returns a name with dots between its parts. In a name with slashes, dots belong to the parts.
fn normalized(name: &str) -> String {
    let swap = |letter| match letter {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    match name.find(['.', '/']) {
        Some(at) if name[at..].starts_with('/') => name.chars().map(swap).collect(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn only_safe_parameters_of_own_namespaces_are_admitted() {
        for (name, host, expected) in [
            ("kernel.shm_rmid_forced", "", None),
            ("kernel/shm_rmid_forced", "", None),
            ("net.ipv4.tcp_rmem", "hostIPC", None),
            (
                "kernel.msgmax",
                "",
                Some("\"kernel.msgmax\" not allowlisted"),
            ),
            (
                "net/ipv4/conf/eth0.1/x",
                "",
                Some("\"net.ipv4.conf.eth0/1.x\" not allowlisted"),
            ),
            (
                "kernel.shm_rmid_forced",
                "hostIPC",
                Some("\"kernel.shm_rmid_forced\" not allowed with host IPC enabled"),
            ),
            (
                "net.ipv4.tcp_rmem",
                "hostNetwork",
                Some("\"net.ipv4.tcp_rmem\" not allowed with host Net enabled"),
            ),
        ] {
            let mut spec = json!({"containers": [], "securityContext": {
                "sysctls": [{"name": name, "value": "1"}]}});
            if !host.is_empty() {
                spec[host] = true.into();
            }
            let pod = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
            let expected =
                expected.map(|text| ("SysctlForbidden", format!("forbidden sysctl: {text}")));
            assert_eq!(check(&pod).err(), expected, "{name} {host}");
        }
        assert_eq!(check(&Pod::default()), Ok(()));
    }
}
