//! Rules of Services.

use std::collections::HashSet;

use longshore_model::StatusCause;
use serde_json::Value;

use super::{Cause, cause::one_of, meta};
use crate::json::{self, Object};

/// What is wrong with a Service.
pub(super) fn object(service: &Object, causes: &mut Vec<StatusCause>) {
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
}

fn ports(spec: &Object, causes: &mut Vec<StatusCause>) {
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
        let number = json::number(port, "port").unwrap_or_default();
        let range = "must be between 1 and 65535, inclusive";
        if !(1..=65_535).contains(&number) {
            causes.push(Cause::invalid(&format!("{path}.port"), number, range));
        }
        if let Some(target) = port.get("targetPort").and_then(Value::as_i64)
            && !(1..=65_535).contains(&target)
        {
            causes.push(Cause::invalid(&format!("{path}.targetPort"), target, range));
        }
        one_of(
            port,
            "protocol",
            &format!("{path}.protocol"),
            &["SCTP", "TCP", "UDP"],
            causes,
        );
        if !numbers.insert((number, json::text(port, "protocol"))) {
            let value =
                serde_json::json!({"port": number, "protocol": json::text(port, "protocol")});
            causes.push(Cause::duplicate(&path, value));
        }
    }
}

/// What is wrong with a change.
pub(super) fn change(before: &Object, after: &Object, causes: &mut Vec<StatusCause>) {
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
}
