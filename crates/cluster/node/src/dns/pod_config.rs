//! A pod's `resolv.conf`, in the format of the kubelet. Pure.

use std::fmt::Write as _;

use k8s_openapi::api::core::v1::Pod;
use longshore_services::{ResolverConfig, ZONE};

use super::ClusterDns;

/// Limits of Kubernetes: the maximum numbers of name servers and search domains, and the maximum
/// lengths in bytes of a domain and of all domains.
const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_LENGTH: usize = 253;
const MAX_SEARCHES_LENGTH: usize = 2048;
/// The options of pods that use the cluster's DNS server.
const CLUSTER_OPTIONS: &str = "ndots:5";

/// The settings of a pod's resolver, and the events about them: reasons and messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DnsSettings {
    config: ResolverConfig,
    pub(crate) events: Vec<(&'static str, String)>,
}

/// Returns true if the pod's settings differ from the settings of the cluster or of the machine.
pub(crate) fn has_own_settings(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    spec.is_some_and(|spec| {
        let config = spec.dns_config.as_ref();
        spec.dns_policy.as_deref() == Some("None")
            || config.is_some_and(|config| *config != Default::default())
    })
}

/// Returns true if the pod uses the cluster's DNS server, if it exists.
pub(crate) fn uses_cluster_server(pod: &Pod) -> bool {
    base(pod) == Base::Cluster
}

/// The owner of the name servers that a pod uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Cluster,
    Machine,
    Nothing,
}

fn base(pod: &Pod) -> Base {
    let spec = pod.spec.as_ref();
    let on_machine = spec.is_some_and(|spec| spec.host_network == Some(true));
    match spec.and_then(|spec| spec.dns_policy.as_deref()) {
        Some("None") => Base::Nothing,
        Some("Default") => Base::Machine,
        Some("ClusterFirstWithHostNet") => Base::Cluster,
        _ if on_machine => Base::Machine,
        _ => Base::Cluster,
    }
}

impl DnsSettings {
    /// Determines the settings of a pod from the machine's settings.
    pub(crate) fn of(pod: &Pod, cluster: Option<ClusterDns>, machine: ResolverConfig) -> Self {
        let mut events = Vec::new();
        // Connections of Alpine's C library cannot be redirected.
        let mut others = Vec::new();
        let mut config = match (base(pod), cluster) {
            (Base::Nothing, _) => ResolverConfig::default(),
            (Base::Machine, _) => machine,
            (Base::Cluster, Some(cluster)) => {
                if cluster.redirect().is_some() {
                    others = machine.nameservers;
                }
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                let own = [
                    format!("{namespace}.svc.{ZONE}"),
                    format!("svc.{ZONE}"),
                    ZONE.to_owned(),
                ];
                ResolverConfig {
                    nameservers: vec![cluster.address.to_string()],
                    searches: own.into_iter().chain(machine.searches).collect(),
                    options: vec![CLUSTER_OPTIONS.to_owned()],
                }
            }
            (Base::Cluster, None) => {
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                events.push((
                    "MissingClusterDNS",
                    format!(
                        "pod: \"{name}_{namespace}({uid})\". kubelet does not have ClusterDNS \
                         IP configured and cannot create Pod using \"ClusterFirst\" policy. \
                         Falling back to \"Default\" policy."
                    ),
                ));
                machine
            }
        };
        let own = pod.spec.as_ref().and_then(|spec| spec.dns_config.as_ref());
        if let Some(own) = own {
            let nameservers = own.nameservers.iter().flatten().cloned();
            config.nameservers.extend(nameservers);
            config
                .searches
                .extend(own.searches.iter().flatten().cloned());
            for option in own.options.iter().flatten() {
                let name = option.name.as_deref().unwrap_or_default();
                let value = option.value.as_deref().filter(|value| !value.is_empty());
                config.set_option(match value {
                    Some(value) => format!("{name}:{value}"),
                    None => name.to_owned(),
                });
            }
        }
        without_duplicates(&mut config.nameservers);
        without_duplicates(&mut config.searches);
        events.extend(
            limit_nameservers(&mut config.nameservers).map(|text| ("DNSConfigForming", text)),
        );
        events.extend(limit_searches(&mut config.searches).map(|text| ("DNSConfigForming", text)));
        config.nameservers.extend(others);
        without_duplicates(&mut config.nameservers);
        config.nameservers.truncate(MAX_NAMESERVERS);
        Self { config, events }
    }

    /// Writes the file.
    pub(crate) fn render(&self) -> String {
        let ResolverConfig {
            nameservers,
            searches,
            options,
        } = &self.config;
        let mut text = String::new();
        // Writing to a String cannot fail.
        if !searches.is_empty() {
            let _ = writeln!(text, "search {}", searches.join(" "));
        }
        for server in nameservers {
            let _ = writeln!(text, "nameserver {server}");
        }
        if !options.is_empty() {
            let _ = writeln!(text, "options {}", options.join(" "));
        }
        text
    }
}

fn without_duplicates(words: &mut Vec<String>) {
    let mut known = std::collections::HashSet::new();
    words.retain(|word| known.insert(word.clone()));
}

/// Removes the servers over the limit. Returns the text of the event about it.
fn limit_nameservers(servers: &mut Vec<String>) -> Option<String> {
    if servers.len() <= MAX_NAMESERVERS {
        return None;
    }
    servers.truncate(MAX_NAMESERVERS);
    Some(format!(
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied \
         nameserver line is: {}",
        servers.join(" ")
    ))
}

/// Like [`limit_nameservers`], for search domains.
fn limit_searches(searches: &mut Vec<String>) -> Option<String> {
    let before = searches.len();
    searches.truncate(MAX_SEARCHES);
    searches.retain(|search| search.len() <= MAX_SEARCH_LENGTH);
    while searches.join(" ").len() > MAX_SEARCHES_LENGTH {
        searches.pop();
    }
    (searches.len() < before).then(|| {
        format!(
            "Search Line limits were exceeded, some search paths have been omitted, the applied \
             search line is: {}",
            searches.join(" ")
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::SocketAddr;

    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: Value) -> Pod {
        let mut spec = spec;
        spec["containers"] = json!([]);
        let metadata = json!({"name": "p", "namespace": "n", "uid": "u"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn machine() -> ResolverConfig {
        ResolverConfig::parse("nameserver 10.0.0.1\nsearch a.example\noptions rotate\n")
    }

    fn cluster(port: u16) -> ClusterDns {
        ClusterDns {
            address: [127, 8, 0, 10].into(),
            listener: SocketAddr::from(([127, 8, 0, 10], port)),
        }
    }

    fn file(spec: Value) -> String {
        let settings = DnsSettings::of(&pod(spec), Some(cluster(53)), machine());
        assert_eq!(settings.events, []);
        settings.render()
    }

    const OF_CLUSTER: &str = "search n.svc.cluster.local svc.cluster.local cluster.local \
                              a.example\nnameserver 127.8.0.10\noptions ndots:5\n";
    const OF_MACHINE: &str = "search a.example\nnameserver 10.0.0.1\noptions rotate\n";

    #[test]
    fn the_policy_selects_the_settings() {
        for (spec, expected) in [
            (json!({}), OF_CLUSTER),
            (json!({"dnsPolicy": "ClusterFirst"}), OF_CLUSTER),
            (
                json!({"dnsPolicy": "ClusterFirst", "hostNetwork": true}),
                OF_MACHINE,
            ),
            (
                json!({"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": true}),
                OF_CLUSTER,
            ),
            (json!({"dnsPolicy": "Default"}), OF_MACHINE),
            (
                json!({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"]}}),
                "nameserver 1.1.1.1\n",
            ),
        ] {
            assert_eq!(file(spec.clone()), expected, "{spec}");
        }
    }

    #[test]
    fn the_settings_of_the_pod_are_merged() {
        let config = json!({
            "nameservers": ["1.1.1.1", "127.8.0.10"],
            "searches": ["b.example", "a.example"],
            "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
        });
        let spec = json!({"dnsPolicy": "ClusterFirst", "dnsConfig": config});
        assert!(has_own_settings(&pod(spec.clone())));
        assert!(!has_own_settings(&pod(json!({"dnsConfig": {}}))));
        assert_eq!(
            file(spec),
            "search n.svc.cluster.local svc.cluster.local cluster.local a.example b.example\n\
             nameserver 127.8.0.10\nnameserver 1.1.1.1\noptions ndots:2 edns0\n"
        );
    }

    #[test]
    fn what_exceeds_the_limits_is_left_out_and_reported() {
        let searches: Vec<String> = (0..40).map(|number| format!("s{number}")).collect();
        let config = json!({"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"],
                            "searches": searches});
        let spec = json!({"dnsPolicy": "None", "dnsConfig": config});
        let settings = DnsSettings::of(&pod(spec), None, machine());
        let texts: Vec<&str> = settings.events.iter().map(|(_, text)| &**text).collect();
        assert_eq!(
            texts[0],
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied \
             nameserver line is: 1.1.1.1 1.1.1.2 1.1.1.3"
        );
        assert!(texts[1].ends_with(" s30 s31"), "{}", texts[1]);
        let mut long = vec!["a".repeat(254), "b".repeat(253)];
        assert!(limit_searches(&mut long).is_some());
        assert_eq!(long, ["b".repeat(253)]);
        let mut many = vec!["c".repeat(253); 10];
        assert!(limit_searches(&mut many).is_some());
        assert_eq!(many.len(), 8);
    }

    #[test]
    fn without_a_server_pods_use_the_machines() {
        let settings = DnsSettings::of(&pod(json!({})), None, machine());
        assert_eq!(settings.render(), OF_MACHINE);
        assert_eq!(settings.events[0].0, "MissingClusterDNS");
        let settings = DnsSettings::of(&pod(json!({"dnsPolicy": "Default"})), None, machine());
        assert_eq!(settings.events, []);
    }

    /// Programs that cannot be redirected can still resolve names of other zones.
    #[test]
    fn a_server_at_another_port_is_followed_by_the_machines() {
        let settings = DnsSettings::of(&pod(json!({})), Some(cluster(5353)), machine());
        assert!(
            settings
                .render()
                .contains("nameserver 127.8.0.10\nnameserver 10.0.0.1\n"),
            "{}",
            settings.render()
        );
    }
}
