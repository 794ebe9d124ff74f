//! Decides whether an APIService is available, apart from the request to its server.

use serde_json::{Value, json};

use super::service::Backend;

/// The condition `Available`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Availability {
    pub(super) is_available: bool,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Availability {
    pub(super) fn passed() -> Self {
        Self {
            is_available: true,
            reason: "Passed",
            message: "all checks passed".into(),
        }
    }

    /// The condition of an APIService that this server serves.
    pub(super) fn local() -> Self {
        Self {
            is_available: true,
            reason: "Local",
            message: "Local APIServices are always available".into(),
        }
    }

    pub(super) fn failed(reason: &'static str, message: String) -> Self {
        Self {
            is_available: false,
            reason,
            message,
        }
    }

    /// The conditions of an APIService with this condition set; `None` if nothing changes.
    pub(super) fn conditions(&self, object: &Value, now: &str) -> Option<Vec<Value>> {
        let conditions = object["status"]["conditions"].as_array();
        let mut conditions = conditions.cloned().unwrap_or_default();
        let status = if self.is_available { "True" } else { "False" };
        let mut condition = json!({
            "type": "Available",
            "status": status,
            "lastTransitionTime": now,
            "reason": self.reason,
            "message": self.message,
        });
        let mut known = conditions.iter_mut();
        match known.find(|known| known["type"] == "Available") {
            Some(known) => {
                if known["status"] == status {
                    condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
                }
                if *known == condition {
                    return None;
                }
                *known = condition;
            }
            None => conditions.push(condition),
        }
        Some(conditions)
    }
}

/// The state of the Service of an APIService.
pub(super) struct Evidence<'a> {
    pub(super) service: Option<&'a Value>,
    /// The EndpointSlices of the Service.
    pub(super) slices: &'a [Value],
    /// True if the Service leads to sockets, with or without EndpointSlices.
    pub(super) has_sockets: bool,
}

/// Checks the Service and its endpoints; `None` if requests can be sent to its server.
pub(super) fn check(backend: &Backend, evidence: &Evidence<'_>) -> Option<Availability> {
    let (name, namespace, port) = (&backend.name, &backend.namespace, backend.port);
    let of = format!("service/{name} in {namespace:?}");
    let Some(service) = evidence.service else {
        let message = format!("{of} is not present");
        return Some(Availability::failed("ServiceNotFound", message));
    };
    let kind = service["spec"]["type"].as_str().unwrap_or("ClusterIP");
    if kind != "ClusterIP" {
        return None;
    }
    let mut ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let Some(found) = ports.find(|found| found["port"] == port) else {
        let message = format!("{of} is not listening on port {port}");
        return Some(Availability::failed("ServicePortError", message));
    };
    let port_name = found["name"].as_str().unwrap_or_default();
    if evidence.slices.is_empty() {
        let message = format!("cannot find endpointslices for {of}");
        let missing = Availability::failed("EndpointsNotFound", message);
        return (!evidence.has_sockets).then_some(missing);
    }
    let has_endpoint = evidence
        .slices
        .iter()
        .any(|slice| has_endpoint(slice, port_name));
    (!has_endpoint).then(|| {
        let message =
            format!("endpointslices for {of} have no addresses with port name {port_name:?}");
        Availability::failed("MissingEndpoints", message)
    })
}

fn has_endpoint(slice: &Value, port_name: &str) -> bool {
    let items = |field: &str| slice[field].as_array().into_iter().flatten();
    items("endpoints").any(|endpoint| endpoint["conditions"]["ready"] != false)
        && items("ports").any(|port| {
            port["name"].as_str().unwrap_or_default() == port_name && port["port"].is_number()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(service: Option<&Value>, slices: &[Value], has_sockets: bool) -> &'static str {
        let backend = Backend {
            namespace: "n".into(),
            name: "s".into(),
            port: 443,
            bundle: Vec::new(),
            insecure: false,
        };
        let evidence = Evidence {
            service,
            slices,
            has_sockets,
        };
        check(&backend, &evidence).map_or("", |found| found.reason)
    }

    #[test]
    fn the_service_needs_its_port_and_endpoints() {
        let service = json!({"spec": {"type": "ClusterIP", "ports": [{"port": 443}]}});
        let slice = |ready: Value| {
            json!({
                "ports": [{"name": "", "port": 8443}],
                "endpoints": [{"addresses": ["127.0.0.2"], "conditions": {"ready": ready}}],
            })
        };
        assert_eq!(reason(None, &[], false), "ServiceNotFound");
        let other = json!({"spec": {"ports": [{"port": 80}]}});
        assert_eq!(reason(Some(&other), &[], false), "ServicePortError");
        assert_eq!(reason(Some(&service), &[], false), "EndpointsNotFound");
        assert_eq!(reason(Some(&service), &[], true), "");
        let unready = [slice(json!(false))];
        assert_eq!(reason(Some(&service), &unready, false), "MissingEndpoints");
        let ready = [slice(json!(false)), slice(json!(null))];
        assert_eq!(reason(Some(&service), &ready, true), "");
        let external = json!({"spec": {"type": "ExternalName"}});
        assert_eq!(reason(Some(&external), &[], false), "");
    }

    #[test]
    fn a_condition_is_written_only_if_it_changes() {
        let condition = |object: &Value, availability: &Availability, now: &str| {
            availability.conditions(object, now)
        };
        let passed = Availability::passed();
        let first = condition(&json!({}), &passed, "t1");
        let object = json!({"status": {"conditions": first}});
        assert_eq!(condition(&object, &passed, "t2"), None);
        let failed = Availability::failed("MissingEndpoints", "m".into());
        let second = condition(&object, &failed, "t3");
        assert_eq!(
            second.map(|all| all[0]["lastTransitionTime"].clone()),
            Some("t3".into())
        );
    }
}
