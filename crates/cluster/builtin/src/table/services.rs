//! Table rows of Services.

use jiff::Timestamp;
use serde_json::Value;

use super::{age_cell, list, name, or, text};

pub(crate) fn cells(service: &Value, now: Timestamp) -> Vec<Value> {
    let ip = or(
        text(service, "/spec/clusterIPs/0"),
        text(service, "/spec/clusterIP"),
    );
    vec![
        name(service),
        text(service, "/spec/type").into(),
        or(ip, "<none>").into(),
        external(service).into(),
        ports(service).into(),
        age_cell(service, now),
        selector(service).into(),
    ]
}

fn external(service: &Value) -> String {
    let mut addresses: Vec<&str> = list(service, "/spec/externalIPs")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    match text(service, "/spec/type") {
        "ExternalName" => return text(service, "/spec/externalName").to_owned(),
        "LoadBalancer" => {
            for ingress in list(service, "/status/loadBalancer/ingress") {
                addresses.push(or(text(ingress, "/ip"), text(ingress, "/hostname")));
            }
            return or(&addresses.join(","), "<pending>").to_owned();
        }
        _ => {}
    }
    or(&addresses.join(","), "<none>").to_owned()
}

fn ports(service: &Value) -> String {
    let ports: Vec<String> = list(service, "/spec/ports")
        .iter()
        .map(|port| {
            let number = |pointer| port.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
            let protocol = or(text(port, "/protocol"), "TCP");
            match number("/nodePort") {
                0 => format!("{}/{protocol}", number("/port")),
                node => format!("{}:{node}/{protocol}", number("/port")),
            }
        })
        .collect();
    or(&ports.join(","), "<none>").to_owned()
}

fn selector(service: &Value) -> String {
    let parts: Vec<String> = service
        .pointer("/spec/selector")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    or(&parts.join(","), "<none>").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn headless_and_load_balanced() {
        let mut service = json!({
            "metadata": {"name": "s"},
            "spec": {"type": "ClusterIP", "clusterIP": "None", "ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "nodePort": 30053}], "selector": {"a": "b"}},
        });
        let row = |service: &Value| Value::from(cells(service, Timestamp::UNIX_EPOCH));
        assert_eq!(
            row(&service),
            json!([
                "s",
                "ClusterIP",
                "None",
                "<none>",
                "80/TCP,53:30053/UDP",
                "<unknown>",
                "a=b"
            ])
        );
        service["spec"]["type"] = "LoadBalancer".into();
        assert_eq!(row(&service)[3], "<pending>");
    }
}
