//! Validation of Endpoints and EndpointSlices.

use std::{collections::HashSet, net::IpAddr};

use longshore_model::{CauseList, StatusCause, network};

use super::{
    field_value::{Causes, FieldValue},
    meta,
};
use crate::{
    cause::Cause,
    json::{self, Object},
};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// Returns true for the endpoints of the API server itself, which may publish a loopback address if
/// it listens on no other address.
fn is_api_server(object: &Object) -> bool {
    let field = |path| json::text(object, path);
    (field("metadata.namespace"), field("metadata.name")) == ("default", "kubernetes")
}

/// Returns true if an address belongs to a pod. A pod may have the address of the machine.
fn is_pod(address: &FieldValue<'_>) -> bool {
    address.get("targetRef").get("kind").text() == "Pod"
}

/// Requires an address that is reachable from other machines.
fn require_reachable(at: &FieldValue<'_>, may_be_loopback: bool, causes: &mut Causes<'_>) {
    let Ok(address) = at.text().parse::<IpAddr>() else {
        let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        return causes.invalid(at, detail);
    };
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    if address.is_unspecified() {
        let detail = format!("may not be unspecified ({address})");
        causes.invalid(at, &detail);
    }
    // Pods of the embedded cluster have loopback addresses.
    let is_pod = matches!(address, IpAddr::V4(address) if network::is_pod_address(address));
    if address.is_loopback() && !is_pod && !may_be_loopback {
        causes.invalid(
            at,
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        );
    }
    if link_local {
        causes.invalid(
            at,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        );
    }
    if address.is_multicast() {
        causes.invalid(
            at,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        );
    }
}

pub(crate) fn endpoints(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let is_api_server = is_api_server(object);
    for subset in FieldValue::field(object, "subsets").items() {
        let lists = ["addresses", "notReadyAddresses"].map(|list| subset.get(list));
        if lists.iter().all(|list| list.len() == 0) {
            causes.required(&subset, "must specify `addresses` or `notReadyAddresses`");
        }
        for address in lists.iter().flat_map(FieldValue::items) {
            if address.get("ip").text().parse::<IpAddr>().is_err() {
                causes.invalid(&address.get("ip"), "must be a valid IP address");
            }
            let may_be_loopback = is_api_server || is_pod(&address);
            require_reachable(&address.get("ip"), may_be_loopback, causes);
            if address.get("hostname").is_set() {
                causes.label(&address.get("hostname"));
            }
            if address.get("nodeName").is_set() {
                causes.subdomain(&address.get("nodeName"));
            }
        }
        let ports = subset.get("ports");
        for port in ports.items() {
            if !port.get("name").text().is_empty() {
                causes.label(&port.get("name"));
            } else if ports.len() > 1 {
                causes.required(&port.get("name"), "");
            }
            causes.port(&port.get("port"));
            if port.get("protocol").is_set() {
                causes.one_of(&port.get("protocol"), PROTOCOLS);
            } else {
                causes.required(&port.get("protocol"), "");
            }
        }
    }
}

pub(crate) fn slice(object: &Object, causes: &mut CauseList) {
    let causes = &mut Causes(causes);
    let kind = FieldValue::field(object, "addressType");
    if kind.text().is_empty() {
        causes.required(&kind, "");
    } else {
        causes.one_of(&kind, &["FQDN", "IPv4", "IPv6"]);
    }
    let endpoints = FieldValue::field(object, "endpoints");
    if endpoints.len() > 1000 {
        causes.0.push(too_many(&endpoints, 1000));
    }
    for endpoint in endpoints.items() {
        let may_be_loopback = is_api_server(object) || is_pod(&endpoint);
        slice_endpoint(&endpoint, kind.text(), may_be_loopback, causes);
    }
    let mut names = HashSet::new();
    for port in FieldValue::field(object, "ports").items() {
        let name = port.get("name");
        if !name.text().is_empty() {
            meta::label(&name.path, name.text(), causes.0);
        }
        if !names.insert(name.text()) {
            causes.0.push(Cause::duplicate(&name.path, name.text()));
        }
        causes.one_of(&port.get("protocol"), PROTOCOLS);
        if port.get("port").is_set() {
            causes.port(&port.get("port"));
        }
    }
}

fn slice_endpoint(
    endpoint: &FieldValue<'_>,
    kind: &str,
    may_be_loopback: bool,
    causes: &mut Causes<'_>,
) {
    let addresses = endpoint.get("addresses");
    if addresses.len() == 0 {
        causes.required(&addresses, "");
    } else if addresses.len() > 100 {
        causes.0.push(too_many(&addresses, 100));
    }
    for address in addresses.items() {
        match kind {
            "IPv4" | "IPv6" => match address.text().parse::<IpAddr>() {
                Ok(parsed) if parsed.is_ipv4() == (kind == "IPv4") => {
                    require_reachable(&address, may_be_loopback, causes);
                }
                Ok(_) => {
                    // The error refers to the list, not to the address.
                    let of_list = address.clone().with_path(addresses.path.clone());
                    causes.invalid(&of_list, &format!("must be an {kind} address"));
                    require_reachable(&address, may_be_loopback, causes);
                }
                Err(_) => {
                    let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
                    causes.invalid(&address, detail);
                }
            },
            "FQDN" => causes.subdomain(&address),
            _ => {}
        }
    }
    if endpoint.get("nodeName").is_set() {
        causes.subdomain(&endpoint.get("nodeName"));
    }
    if endpoint.get("hostname").is_set() {
        causes.label(&endpoint.get("hostname"));
    }
}

fn too_many(at: &FieldValue<'_>, limit: usize) -> StatusCause {
    let message = format!("Too many: {}: must have at most {limit} items", at.len());
    Cause::plain(&at.path, "FieldValueTooMany", message)
}
