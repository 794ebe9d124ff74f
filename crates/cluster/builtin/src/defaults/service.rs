//! Defaults of Services.

use serde_json::{Value, json};

use crate::json::{self, Object};

/// Default session affinity timeout of `ClientIP`, in seconds.
const AFFINITY_TIMEOUT_SECONDS: i64 = 10_800;

/// Sets an empty load balancer status.
pub(crate) fn on_create(service: &mut Object) {
    service.insert("status".into(), json!({"loadBalancer": {}}));
}

/// Keeps the addresses if an update omits them.
pub(crate) fn on_update(before: &Object, service: &mut Object) {
    let Some(Value::Object(old)) = before.get("spec") else {
        return;
    };
    let spec = json::child(service, "spec");
    let external = json::text(spec, "type") == "ExternalName";
    for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if !external && !spec.contains_key(name) {
            json::copy(old, spec, name);
        }
    }
    let exposed = |spec: &Object| matches!(json::text(spec, "type"), "NodePort" | "LoadBalancer");
    let old_ports: Vec<&Object> = json::items(old, "ports").collect();
    let keeps = exposed(spec);
    for port in json::items_mut(spec, "ports") {
        let same = |old: &&&Object| old.get("port") == port.get("port");
        let Some(old) = old_ports.iter().find(same) else {
            continue;
        };
        if keeps && !port.contains_key("nodePort") {
            json::copy(old, port, "nodePort");
        } else if !keeps && port.get("nodePort") == old.get("nodePort") {
            port.remove("nodePort");
        }
    }
    let was_balanced = json::text(old, "type") == "LoadBalancer";
    // Drop fields that the new type of the Service does not need, unless the
    // update changes them.
    let loses = |field: &str, needed: bool| !needed && old.contains_key(field);
    let balanced = json::text(spec, "type") == "LoadBalancer";
    let local = balanced && json::text(spec, "externalTrafficPolicy") == "Local";
    for (field, needed) in [
        ("clusterIP", !external),
        ("clusterIPs", !external),
        ("ipFamilies", !external),
        ("ipFamilyPolicy", !external),
        ("externalTrafficPolicy", keeps),
        ("allocateLoadBalancerNodePorts", balanced),
        ("healthCheckNodePort", local),
        ("loadBalancerClass", balanced),
    ] {
        if loses(field, needed) && spec.get(field) == old.get(field) {
            spec.remove(field);
        }
    }
    if was_balanced && !balanced {
        service.insert("status".into(), json!({"loadBalancer": {}}));
    }
}

/// Sets the default IP mode of load balancer addresses.
pub(crate) fn on_status(service: &mut Object) {
    let status = json::child(json::child(service, "status"), "loadBalancer");
    for ingress in json::items_mut(status, "ingress") {
        if !json::text(ingress, "ip").is_empty() {
            json::default_text(ingress, "ipMode", "VIP");
        }
    }
}

/// Sets the defaults of a Service.
pub(crate) fn fill(service: &mut Object) {
    let spec = json::child(service, "spec");
    json::default_text(spec, "type", "ClusterIP");
    json::default_text(spec, "sessionAffinity", "None");
    if json::text(spec, "sessionAffinity") == "None" {
        spec.remove("sessionAffinityConfig");
    }
    if json::text(spec, "sessionAffinity") == "ClientIP" {
        let config = json::child(json::child(spec, "sessionAffinityConfig"), "clientIP");
        json::default(config, "timeoutSeconds", AFFINITY_TIMEOUT_SECONDS);
    }
    let kind = json::text(spec, "type").to_owned();
    for port in json::items_mut(spec, "ports") {
        json::default_text(port, "protocol", "TCP");
        if let Some(number) = port.get("port").cloned() {
            // Zero and the empty name count as unset.
            if let Some(target) = port.get("targetPort")
                && (*target == json!(0) || *target == json!(""))
            {
                port.remove("targetPort");
            }
            json::default(port, "targetPort", number);
        }
    }
    if kind != "ExternalName" {
        json::default_text(spec, "internalTrafficPolicy", "Cluster");
        json::default(spec, "ipFamilies", json!(["IPv4"]));
        json::default_text(spec, "ipFamilyPolicy", "SingleStack");
        match json::text(spec, "clusterIP") {
            "" => {}
            address => {
                let list = json!([address]);
                json::default(spec, "clusterIPs", list);
            }
        }
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        json::default_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        json::default(spec, "allocateLoadBalancerNodePorts", true);
    }
    json::child(json::child(service, "status"), "loadBalancer");
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_service_gets_its_defaults() {
        let mut service = json!({"spec": {"ports": [{"port": 80}]}})
            .as_object()
            .unwrap()
            .clone();
        fill(&mut service);
        let expected = json!({
            "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
        });
        assert_eq!(service["spec"], expected);
        let filled = service.clone();
        fill(&mut service);
        assert_eq!(service, filled);
    }
}
