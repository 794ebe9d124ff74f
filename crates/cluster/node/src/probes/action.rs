//! The action of a probe, from a container's spec. Pure.

use std::{net::Ipv4Addr, time::Duration};

use k8s_openapi::{
    api::core::v1::{Container, HTTPGetAction, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::http::{HttpGet, Scheme};
use crate::environment::expand;

/// The action of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Runs a command in the container.
    Exec(Vec<String>),
    /// Sends an HTTP request.
    Http(HttpGet),
    /// Connects to a TCP port.
    Tcp { host: String, port: u16 },
    /// Calls `grpc.health.v1.Health/Check`.
    Grpc {
        host: String,
        port: u16,
        service: String,
    },
    /// The probe cannot be performed, for this reason.
    Invalid(String),
}

/// Returns a probe's action.
pub(crate) fn resolve_action(probe: &Probe, container: &Container, address: Ipv4Addr) -> Action {
    let invalid = Action::Invalid;
    if let Some(exec) = &probe.exec {
        let words = exec.command.iter().flatten();
        return Action::Exec(words.map(|word| static_expand(word, container)).collect());
    }
    if let Some(get) = &probe.http_get {
        return resolve_http(get, container, address, "probe").map_or_else(invalid, Action::Http);
    }
    if let Some(socket) = &probe.tcp_socket {
        let host = host_or(socket.host.as_deref(), address);
        return resolve_port(&socket.port, container)
            .map_or_else(invalid, |port| Action::Tcp { host, port });
    }
    if let Some(grpc) = &probe.grpc {
        return match u16::try_from(grpc.port) {
            Ok(port) if port > 0 => Action::Grpc {
                host: address.to_string(),
                port,
                service: grpc.service.clone().unwrap_or_default(),
            },
            _ => invalid(format!("invalid port number: {}", grpc.port)),
        };
    }
    invalid(format!("missing probe handler for {}", container.name))
}

/// Returns the request of a probe or a hook; `purpose` becomes part of the user
/// agent.
pub(crate) fn resolve_http(
    get: &HTTPGetAction,
    container: &Container,
    address: Ipv4Addr,
    purpose: &str,
) -> Result<HttpGet, String> {
    let scheme = match get.scheme.as_deref().unwrap_or("HTTP") {
        "" | "HTTP" => Scheme::Http,
        "HTTPS" => Scheme::Https,
        other => return Err(format!("unsupported protocol scheme {other:?}")),
    };
    let host = host_or(get.host.as_deref(), address);
    let port = resolve_port(&get.port, container)?;
    let headers = get.http_headers.iter().flatten();
    let headers = headers.map(|header| (header.name.as_str(), header.value.as_str()));
    let path = get.path.as_deref().unwrap_or_default();
    HttpGet::new(scheme, host, port, path, headers, purpose)
}

fn host_or(host: Option<&str>, address: Ipv4Addr) -> String {
    match host {
        Some(host) if !host.is_empty() => host.to_owned(),
        _ => address.to_string(),
    }
}

/// Returns a port's number. A name is the name of a port of the container.
fn resolve_port(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => i64::from(*number),
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            match ports.find(|port| port.name.as_deref() == Some(name)) {
                Some(port) => i64::from(port.container_port),
                None => name
                    .parse()
                    .map_err(|_| format!("strconv.Atoi: parsing {name:?}: invalid syntax"))?,
            }
        }
    };
    u16::try_from(number)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| format!("invalid port number: {number}"))
}

/// Replaces references to variables that the container's spec sets to a fixed value. Other
/// references are kept.
fn static_expand(word: &str, container: &Container) -> String {
    let value = |name: &str| {
        let mut variables = container.env.iter().flatten().rev();
        variables
            .find(|variable| variable.name == name)
            .filter(|variable| variable.value_from.is_none())
            .map(|variable| variable.value.as_deref().unwrap_or_default())
    };
    expand(word, value).unwrap_or_else(|_| word.to_owned())
}

/// Formats whole seconds as Go does: `1s`, `1m30s`.
pub(crate) fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let rest = seconds % 60;
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::{Value, json};

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 16, 0, 1);

    fn action(probe: &Value) -> Action {
        let container: Container = serde_json::from_value(json!({
            "name": "c",
            "ports": [{"name": "web", "containerPort": 8080}],
            "env": [{"name": "A", "value": "x"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        }))
        .unwrap();
        let probe: Probe = serde_json::from_value(probe.clone()).unwrap();
        resolve_action(&probe, &container, ADDRESS)
    }

    #[test]
    fn ports_are_numbers_or_names_of_the_container() {
        let tcp = |port: Value| action(&json!({"tcpSocket": {"port": port}}));
        let at = |port| Action::Tcp {
            host: "127.16.0.1".to_owned(),
            port,
        };
        assert_eq!(tcp(json!(80)), at(80));
        assert_eq!(tcp(json!("web")), at(8080));
        assert_eq!(tcp(json!("81")), at(81));
        let invalid = |text: &str| Action::Invalid(text.to_owned());
        let unknown = "strconv.Atoi: parsing \"db\": invalid syntax";
        assert_eq!(tcp(json!("db")), invalid(unknown));
        assert_eq!(tcp(json!(70_000)), invalid("invalid port number: 70000"));
        let other = json!({"tcpSocket": {"port": 80, "host": "example.com"}});
        let host = "example.com".to_owned();
        assert_eq!(action(&other), Action::Tcp { host, port: 80 });
    }

    #[test]
    fn commands_see_the_fixed_variables_only() {
        let exec = json!({"exec": {"command": ["echo", "$(A)", "$(B)", "$$(A)"]}});
        let words = ["echo", "x", "$(B)", "$(A)"].map(str::to_owned);
        assert_eq!(action(&exec), Action::Exec(words.to_vec()));
    }

    #[test]
    fn a_grpc_probe_calls_the_pod() {
        let grpc = json!({"grpc": {"port": 5000, "service": "s"}});
        let (host, service) = ("127.16.0.1".to_owned(), "s".to_owned());
        let port = 5000;
        let expected = Action::Grpc {
            host,
            port,
            service,
        };
        assert_eq!(action(&grpc), expected);
        let text = "missing probe handler for c".to_owned();
        assert_eq!(action(&json!({})), Action::Invalid(text));
    }

    #[test]
    fn durations_are_formatted_as_in_go() {
        let text = |seconds| duration_text(Duration::from_secs(seconds));
        assert_eq!([text(1), text(90), text(3600)], ["1s", "1m30s", "1h0m0s"]);
    }
}
