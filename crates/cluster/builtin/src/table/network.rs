//! Table rows of endpoints, Ingresses and NetworkPolicies.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Column, age_cell,
    columns::{AGE, NAME, column},
    list, name, or, selector, text,
};

/// Maximum number of addresses and ports that are shown.
const MAX_SHOWN: usize = 3;

#[rustfmt::skip]
pub(crate) const ENDPOINTS: &[Column] = &[
    NAME,
    column("Endpoints", "string", "", 0, "Addresses and ports that are ready."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const SLICE: &[Column] = &[
    NAME,
    column("AddressType", "string", "", 0, "What the addresses are."),
    column("Ports", "string", "", 0, "Ports of all its endpoints."),
    column("Endpoints", "string", "", 0, "Addresses of its endpoints."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const INGRESS: &[Column] = &[
    NAME,
    column("Class", "string", "", 0, "The class of controllers it is for."),
    column("Hosts", "string", "", 0, "Hosts it has rules for."),
    column("Address", "string", "", 0, "Where it is reached."),
    column("Ports", "string", "", 0, "Ports it is reached at."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const CLASS: &[Column] = &[
    NAME,
    column("Controller", "string", "", 0, "Who does what Ingresses of this class say."),
    column("Parameters", "string", "", 0, "An object with more about it."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const POLICY: &[Column] = &[
    NAME,
    column("Pod-Selector", "string", "", 0, "Labels of the pods it is about."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const ADDRESS: &[Column] = &[
    NAME,
    column("ParentRef", "string", "", 0, "Whose address it is."),
    AGE,
];

#[rustfmt::skip]
pub(crate) const CIDR: &[Column] = &[
    NAME,
    column("CIDRs", "string", "", 0, "Networks that Services have their addresses from."),
    AGE,
];

/// Formats the first few entries and the number of further ones.
fn first_few(all: &[String], nothing: &str) -> String {
    if all.is_empty() {
        return nothing.to_owned();
    }
    let shown = all[..all.len().min(MAX_SHOWN)].join(",");
    match all.len().saturating_sub(MAX_SHOWN) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn ready_addresses(object: &Value) -> String {
    let mut all = Vec::new();
    for subset in list(object, "/subsets") {
        let addresses = list(subset, "/addresses")
            .iter()
            .map(|address| text(address, "/ip"));
        let ports = list(subset, "/ports");
        for address in addresses {
            if ports.is_empty() {
                all.push(address.to_owned());
            }
            for port in ports {
                all.push(format!("{address}:{}", port["port"].as_i64().unwrap_or(0)));
            }
        }
    }
    first_few(&all, "<none>")
}

pub(crate) fn slice(object: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<String> = list(object, "/ports")
        .iter()
        .map(|port| match (port["port"].as_i64(), text(port, "/name")) {
            (Some(number), _) => number.to_string(),
            (None, "") => "*".to_owned(),
            (None, name) => name.to_owned(),
        })
        .collect();
    let addresses: Vec<String> = list(object, "/endpoints")
        .iter()
        .flat_map(|endpoint| list(endpoint, "/addresses"))
        .filter_map(|address| address.as_str().map(str::to_owned))
        .collect();
    vec![
        name(object),
        text(object, "/addressType").into(),
        first_few(&ports, "<unset>").into(),
        first_few(&addresses, "<unset>").into(),
        age_cell(object, now),
    ]
}

pub(crate) fn ingress(object: &Value, now: Timestamp) -> Vec<Value> {
    let hosts: Vec<String> = list(object, "/spec/rules")
        .iter()
        .map(|rule| text(rule, "/host").to_owned())
        .filter(|host| !host.is_empty())
        .collect();
    let addresses: Vec<&str> = list(object, "/status/loadBalancer/ingress")
        .iter()
        .map(|point| or(text(point, "/ip"), text(point, "/hostname")))
        .collect();
    let old = object.pointer("/metadata/annotations").map_or("", |all| {
        all["kubernetes.io/ingress.class"]
            .as_str()
            .unwrap_or_default()
    });
    let secure = !list(object, "/spec/tls").is_empty();
    vec![
        name(object),
        or(or(text(object, "/spec/ingressClassName"), old), "<none>").into(),
        first_few(&hosts, "*").into(),
        addresses.join(",").into(),
        if secure { "80, 443" } else { "80" }.into(),
        age_cell(object, now),
    ]
}

pub(crate) fn class(object: &Value, now: Timestamp) -> Vec<Value> {
    let part = |field: &str| text(object, &format!("/spec/parameters/{field}")).to_owned();
    let parameters = match (part("kind"), part("apiGroup"), part("name")) {
        (kind, _, _) if kind.is_empty() => "<none>".to_owned(),
        (kind, group, name) if group.is_empty() => format!("{kind}/{name}"),
        (kind, group, name) => format!("{kind}.{group}/{name}"),
    };
    vec![
        name(object),
        text(object, "/spec/controller").into(),
        parameters.into(),
        age_cell(object, now),
    ]
}

pub(crate) fn endpoints(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        ready_addresses(object).into(),
        age_cell(object, now),
    ]
}

pub(crate) fn policy(object: &Value, now: Timestamp) -> Vec<Value> {
    let pods = selector(object, "/spec/podSelector");
    vec![name(object), pods.into(), age_cell(object, now)]
}

pub(crate) fn address(object: &Value, now: Timestamp) -> Vec<Value> {
    let parent = ["group", "resource", "namespace", "name"]
        .map(|part| text(object, &format!("/spec/parentRef/{part}")).to_owned());
    let parent: Vec<String> = parent.into_iter().filter(|part| !part.is_empty()).collect();
    vec![name(object), parent.join("/").into(), age_cell(object, now)]
}

pub(crate) fn cidr(object: &Value, now: Timestamp) -> Vec<Value> {
    let all: Vec<&str> = list(object, "/spec/cidrs")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    vec![name(object), all.join(",").into(), age_cell(object, now)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_first_endpoints_are_shown() {
        let addresses: Vec<Value> = (1..=5)
            .map(|n| json!({"ip": format!("10.0.0.{n}")}))
            .collect();
        let object = json!({"subsets": [{"addresses": addresses, "ports": [{"port": 80}]}]});
        assert_eq!(
            ready_addresses(&object),
            "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 2 more..."
        );
        assert_eq!(ready_addresses(&json!({})), "<none>");
    }
}
