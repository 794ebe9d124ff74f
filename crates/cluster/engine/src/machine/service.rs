//! Allocates cluster IPs and node ports of Services. Each is used by at most one Service.

use std::{collections::HashSet, net::Ipv4Addr, sync::Arc};

use longshore_builtin::{cause::Cause, json as js};
use longshore_model::{KindInfo, network};
use serde_json::{Value, json};

use super::{JsonObject, Transaction};
use crate::{Error, Object, Subject, kinds::KindId};

const FIRST_CLUSTER_IP: u32 = u32::from_be_bytes(network::FIRST_CLUSTER_IP.octets());
const LAST_CLUSTER_IP: u32 = u32::from_be_bytes(network::LAST_CLUSTER_IP.octets());
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// Allocates the addresses and ports that the type of a Service requires and the Service lacks.
pub(super) fn allocate(
    tx: &Transaction<'_>,
    kind: KindId,
    info: &KindInfo,
    service: &mut JsonObject,
    before: Option<&JsonObject>,
) -> Result<(), Error> {
    let subject = Subject::new(info, js::text(service, "metadata.name"));
    let invalid = |cause| Error::Invalid {
        subject: subject.clone(),
        causes: vec![cause],
    };
    if js::text(service, "spec.type") == "ExternalName" {
        return Ok(());
    }
    let own = js::text(service, "spec.clusterIP").to_owned();
    let had = before
        .map(|before| js::text(before, "spec.clusterIP"))
        .unwrap_or_default();
    if own.is_empty() || own != had {
        let rules = tx.rules(kind);
        let used: HashSet<String> = tx
            .state()
            .table(kind)
            .objects
            .values()
            .filter_map(|other| other.field(rules, "spec.clusterIP").map(Into::into))
            .collect();
        let address =
            allocate_cluster_ip(&own, js::text(service, "metadata.uid"), &used).map_err(invalid)?;
        let spec = js::child(service, "spec");
        spec.insert("clusterIPs".into(), json!([address]));
        spec.insert("clusterIP".into(), address.into());
    }
    if matches!(js::text(service, "spec.type"), "NodePort" | "LoadBalancer") {
        allocate_node_ports(tx, kind, service).map_err(invalid)?;
    }
    Ok(())
}

fn allocate_cluster_ip(
    asked: &str,
    uid: &str,
    used: &HashSet<String>,
) -> Result<String, longshore_model::StatusCause> {
    let invalid = |why: &str| {
        let problem = format!("failed to allocate IP {asked}: {why}");
        Err(Cause::invalid("spec.clusterIPs", json!([asked]), &problem))
    };
    match asked {
        "" => {}
        "None" => return Ok(asked.to_owned()),
        _ => {
            return match asked.parse::<Ipv4Addr>() {
                Ok(ip) if !(FIRST_CLUSTER_IP..=LAST_CLUSTER_IP).contains(&u32::from(ip)) => {
                    invalid(&format!(
                        "the provided IP is not in the valid range. The range of valid IPs is {}",
                        network::SERVICE_CIDR
                    ))
                }
                Ok(_) if used.contains(asked) => invalid("provided IP is already allocated"),
                Ok(_) => Ok(asked.to_owned()),
                Err(_) => invalid("it is not a valid IP"),
            };
        }
    }
    // Start at a hash of the uid, so that a released address is not reused
    // soon.
    let size = LAST_CLUSTER_IP - FIRST_CLUSTER_IP + 1;
    let hash = uid.bytes().fold(0x811c_9dc5_u32, |h, b| {
        (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
    });
    let start = hash % size;
    (0..size)
        .map(|step| Ipv4Addr::from(FIRST_CLUSTER_IP + (start + step) % size).to_string())
        .find(|address| !used.contains(address))
        .ok_or_else(|| {
            Cause::invalid(
                "spec.clusterIPs",
                json!([]),
                "failed to allocate a serviceIP: range is full",
            )
        })
}

fn allocate_node_ports(
    tx: &Transaction<'_>,
    kind: KindId,
    service: &mut JsonObject,
) -> Result<(), longshore_model::StatusCause> {
    let uid = js::text(service, "metadata.uid").to_owned();
    let ports = |object: &JsonObject| -> Vec<i64> {
        let spec = object.get("spec").and_then(Value::as_object);
        let ports = spec.into_iter().flat_map(|spec| js::items(spec, "ports"));
        ports
            .filter_map(|port| js::number(port, "nodePort"))
            .chain(js::number(object, "spec.healthCheckNodePort"))
            .filter(|port| *port != 0)
            .collect()
    };
    let rules = tx.rules(kind);
    let has_ports = |other: &&Arc<Object>| {
        let of_type = other.field(rules, "spec.type").unwrap_or_default();
        other.uid() != uid && matches!(&*of_type, "NodePort" | "LoadBalancer")
    };
    let mut used: HashSet<i64> = tx
        .state()
        .table(kind)
        .objects
        .values()
        .filter(has_ports)
        .flat_map(|other| ports(&other.map()))
        .collect();
    for (index, asked) in ports(service).into_iter().enumerate() {
        if !used.insert(asked) {
            return Err(Cause::invalid(
                &format!("spec.ports[{index}].nodePort"),
                asked,
                "provided port is already allocated",
            ));
        }
    }
    for (index, asked) in ports(service).into_iter().enumerate() {
        if !NODE_PORTS.contains(&asked) {
            return Err(Cause::invalid(
                &format!("spec.ports[{index}].nodePort"),
                asked,
                "provided port is not in the valid range. The range of valid ports is 30000-32767",
            ));
        }
    }
    let mut free = NODE_PORTS.filter(|port| !used.contains(port));
    for port in js::items_mut(js::child(service, "spec"), "ports") {
        if js::number(port, "nodePort").unwrap_or_default() == 0
            && let Some(free) = free.next()
        {
            port.insert("nodePort".into(), free.into());
        }
    }
    let spec = js::child(service, "spec");
    let checked = js::text(spec, "type") == "LoadBalancer"
        && js::text(spec, "externalTrafficPolicy") == "Local";
    if checked
        && js::number(spec, "healthCheckNodePort").unwrap_or_default() == 0
        && let Some(free) = free.next()
    {
        spec.insert("healthCheckNodePort".into(), free.into());
    }
    Ok(())
}
