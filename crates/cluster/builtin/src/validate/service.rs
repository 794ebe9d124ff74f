//! Validation of Services.

use std::collections::HashSet;

use longshore_model::CauseList;
use serde_json::Value;

use super::{
    address::network,
    field_value::{Causes, FieldValue},
    meta,
};
use crate::{
    cause::{Cause, one_of},
    json::{self, Object},
};

/// Validates a Service.
pub(crate) fn object(service: &Object, causes: &mut CauseList) {
    let Some(Value::Object(spec)) = service.get("spec") else {
        return;
    };
    one_of(
        spec,
        "type",
        "spec.type",
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
        causes,
    );
    one_of(
        spec,
        "sessionAffinity",
        "spec.sessionAffinity",
        &["ClientIP", "None"],
        causes,
    );
    let kind = json::text(spec, "type");
    let headless = json::text(spec, "clusterIP") == "None";
    if kind == "ExternalName" {
        let name = json::text(spec, "externalName");
        if name.is_empty() {
            causes.push(Cause::required("spec.externalName", ""));
        } else {
            meta::subdomain("spec.externalName", name.trim_end_matches('.'), causes);
        }
    }
    if headless && kind != "ClusterIP" {
        let detail = format!("may not be set to 'None' for {kind} services");
        causes.push(Cause::invalid("spec.clusterIPs[0]", "None", &detail));
    }
    if kind != "ExternalName" && !headless && json::items(spec, "ports").next().is_none() {
        causes.push(Cause::required("spec.ports", ""));
    }
    meta::labels("spec.selector", spec.get("selector"), causes);
    ports(spec, causes);
    for address in FieldValue::of(spec, "externalIPs", "spec").items() {
        if address.text().parse::<std::net::IpAddr>().is_err() {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            causes.push(Cause::invalid(&address.path, address.value(), detail));
        }
    }
    let outside = FieldValue::of(spec, "externalTrafficPolicy", "spec");
    if !outside.text().is_empty() {
        Causes(causes).one_of(&outside, &["Cluster", "Local"]);
    }
    let inside = FieldValue::of(spec, "internalTrafficPolicy", "spec");
    if !inside.text().is_empty() {
        Causes(causes).one_of(&inside, &["Cluster", "Local"]);
    }
    let ranges = FieldValue::of(spec, "loadBalancerSourceRanges", "spec")
        .with_path("spec.LoadBalancerSourceRanges");
    if ranges.is_set() && kind != "LoadBalancer" {
        let detail = "may only be used when `type` is 'LoadBalancer'";
        causes.push(Cause::forbidden(&ranges.path, detail));
    }
    for range in ranges.items() {
        if network(range.text().trim()).is_none() {
            let path = format!("spec.{}", range.path.trim_start_matches("spec."));
            let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            causes.push(Cause::invalid(&path, range.value(), detail));
        }
    }
}

fn ports(spec: &Object, causes: &mut CauseList) {
    let kind = json::text(spec, "type");
    let several = json::items(spec, "ports").count() > 1;
    let (mut names, mut numbers) = (HashSet::new(), HashSet::new());
    for (index, port) in json::items(spec, "ports").enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = json::text(port, "name");
        if name.is_empty() {
            if several {
                causes.push(Cause::required(&format!("{path}.name"), ""));
            }
        } else {
            meta::label(&format!("{path}.name"), name, causes);
            if !names.insert(name) {
                causes.push(Cause::duplicate(&format!("{path}.name"), name));
            }
        }
        if let Some(protocol) = port.get("appProtocol").and_then(Value::as_str) {
            meta::qualified(&format!("{path}.appProtocol"), protocol, causes);
        }
        let number = json::number(port, "port").unwrap_or_default();
        let range = "must be between 1 and 65535, inclusive";
        if !(1..=65_535).contains(&number) {
            causes.push(Cause::invalid(&format!("{path}.port"), number, range));
        }
        Causes(causes).port_or_name(&FieldValue::of(port, "targetPort", &path));
        one_of(
            port,
            "protocol",
            &format!("{path}.protocol"),
            &["SCTP", "TCP", "UDP"],
            causes,
        );
        if kind == "ClusterIP" && json::number(port, "nodePort").is_some_and(|port| port != 0) {
            let detail = "may not be used when `type` is 'ClusterIP'";
            causes.push(Cause::forbidden(&format!("{path}.nodePort"), detail));
        }
        if !numbers.insert((number, json::text(port, "protocol"))) {
            let value =
                serde_json::json!({"port": number, "protocol": json::text(port, "protocol")});
            causes.push(Cause::duplicate(&path, value));
        }
    }
}

/// Validates a change of a Service.
pub(crate) fn change(before: &Object, after: &Object, causes: &mut CauseList) {
    let (old, new) = (
        json::text(before, "spec.clusterIP"),
        json::text(after, "spec.clusterIP"),
    );
    let external = |service| json::text(service, "spec.type") == "ExternalName";
    if !old.is_empty() && old != new && !external(after) && !external(before) {
        let list = serde_json::json!([new]);
        causes.push(Cause::invalid(
            "spec.clusterIPs[0]",
            list,
            "may not change once set",
        ));
    }
    families(before, after, causes);
    let balanced = |service| json::text(service, "spec.type") == "LoadBalancer";
    let class = |service| json::at(service, "spec.loadBalancerClass").cloned();
    if balanced(before) && balanced(after) && class(before) != class(after) {
        let value = class(after).unwrap_or_default();
        let detail = "may not change once set";
        causes.push(Cause::invalid("spec.loadBalancerClass", value, detail));
    }
}

/// A second family may be added or removed; the first family cannot change.
fn families(before: &Object, after: &Object, causes: &mut CauseList) {
    let external = |service| json::text(service, "spec.type") == "ExternalName";
    let headless = |service| json::text(service, "spec.clusterIP") == "None";
    if external(before) || external(after) || headless(before) || headless(after) {
        return;
    }
    let list = |service| json::at(service, "spec.ipFamilies").and_then(serde_json::Value::as_array);
    let (Some(old), Some(new)) = (list(before), list(after)) else {
        return;
    };
    if old.is_empty() || new.is_empty() {
        return;
    }
    let is_other_set = old.len() == new.len() && old != new;
    if is_other_set || old[0] != new[0] {
        let detail = "may not change once set";
        causes.push(Cause::invalid("spec.ipFamilies[0]", new.clone(), detail));
    }
    let policy = json::text(after, "spec.ipFamilyPolicy");
    if old.len() > 1 && new.len() == 1 && policy != "SingleStack" {
        let detail = "must be set to 'SingleStack' when releasing the secondary ipFamily";
        causes.push(Cause::invalid("spec.ipFamilyPolicy", policy, detail));
    }
}
