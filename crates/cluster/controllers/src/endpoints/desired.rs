//! The parts of an EndpointSlice that come from a Service and from a pod. Pure.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

use super::{
    pod::PodFacts,
    service::{Family, Service},
};

/// The label with the name of the Service.
pub(super) const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label with the controller that manages a slice.
pub(super) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The value of the label [`MANAGED_BY`] for this controller.
pub(super) const MANAGER: &str = "endpointslice-controller.k8s.io";
/// The label of endpoints of a headless Service.
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";

/// The maximum length of a prefix of a name, including the dash.
const MAX_PREFIX_LENGTH: usize = 253;

/// The reference from an endpoint to its pod.
pub(super) fn reference(pod: &PodFacts) -> ObjectReference {
    ObjectReference {
        kind: Some("Pod".to_owned()),
        namespace: Some(pod.namespace.clone()),
        name: Some(pod.name.clone()),
        uid: Some(pod.uid.clone()),
        ..ObjectReference::default()
    }
}

/// Returns the host name of a pod if the Service is its subdomain.
pub(super) fn hostname(service: &Service, pod: &PodFacts) -> Option<String> {
    let has = !pod.hostname.is_empty() && pod.subdomain == service.key.name;
    has.then(|| pod.hostname.clone())
}

/// Returns the endpoint of a pod. `zone` is the zone of the pod's node.
pub(super) fn endpoint(
    service: &Service,
    pod: &PodFacts,
    family: Family,
    zone: Option<&str>,
) -> Endpoint {
    let ready = service.publish_not_ready || (pod.ready && !pod.terminating);
    Endpoint {
        addresses: pod.addresses_of(family).collect(),
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(pod.ready),
            terminating: Some(pod.terminating),
        }),
        target_ref: Some(reference(pod)),
        node_name: Some(pod.node.clone()).filter(|name| !name.is_empty()),
        zone: zone.filter(|zone| !zone.is_empty()).map(str::to_owned),
        hostname: hostname(service, pod),
        ..Endpoint::default()
    }
}

/// Returns the ports of a Service at a pod, without ports that the pod lacks.
pub(super) fn ports(service: &Service, pod: &PodFacts) -> Vec<EndpointPort> {
    let ports = service.ports.iter().filter_map(|port| {
        Some(EndpointPort {
            name: Some(port.name.clone()),
            port: Some(pod.port_of(port)?),
            protocol: Some(port.protocol.clone()),
            app_protocol: port.app_protocol.clone(),
        })
    });
    ports.collect()
}

/// Returns the labels of a Service's slices.
pub(super) fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.labels.clone();
    labels.remove(HEADLESS);
    if service.headless {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME.to_owned(), service.key.name.clone());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels
}

/// Returns true if the labels of a slice differ from the Service's labels. The labels that the
/// controller sets are ignored.
pub(super) fn labels_differ(slice: &EndpointSlice, service: &Service) -> bool {
    let own = |labels: &BTreeMap<String, String>| {
        let mut labels = labels.clone();
        for key in [HEADLESS, SERVICE_NAME, MANAGED_BY] {
            labels.remove(key);
        }
        labels
    };
    let labels = slice.metadata.labels.as_ref();
    labels.map(own).unwrap_or_default() != own(&service.labels)
}

/// Returns the prefix of the names of slices.
pub(super) fn prefix(name: &str) -> String {
    match name.len() < MAX_PREFIX_LENGTH {
        true => format!("{name}-"),
        false => name.to_owned(),
    }
}

/// Returns a new slice without endpoints.
pub(super) fn slice(service: &Service, family: Family, ports: Vec<EndpointPort>) -> EndpointSlice {
    let name = &service.key.name;
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(prefix(name)),
            namespace: Some(service.key.namespace.clone()),
            labels: Some(labels(service)),
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".to_owned(),
                kind: "Service".to_owned(),
                name: name.clone(),
                uid: service.uid.clone(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        address_type: family.as_str().to_owned(),
        endpoints: Some(Vec::new()),
        ports: Some(ports),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::{
        pod::NamedPort,
        service::TargetPort,
        testing::{pod, port, service},
    };

    #[test]
    fn a_terminating_pod_is_not_ready_but_may_serve() {
        let (mut service, mut one) = (service(), pod("p"));
        let conditions = |service: &Service, pod: &PodFacts| {
            let found = endpoint(service, pod, Family::V4, None).conditions;
            found.map(|found| (found.ready, found.serving, found.terminating))
        };
        let of =
            |ready, serving, terminating| Some((Some(ready), Some(serving), Some(terminating)));
        assert_eq!(conditions(&service, &one), of(true, true, false));
        one.terminating = true;
        assert_eq!(conditions(&service, &one), of(false, true, true));
        one.ready = false;
        assert_eq!(conditions(&service, &one), of(false, false, true));
        service.publish_not_ready = true;
        assert_eq!(conditions(&service, &one), of(true, false, true));
    }

    #[test]
    fn an_endpoint_names_its_pod_node_zone_and_host() {
        let (service, mut one) = (service(), pod("p"));
        one.hostname = "p-0".into();
        let found = endpoint(&service, &one, Family::V4, Some("z"));
        assert_eq!(found.addresses, [one.addresses[0].to_string()]);
        assert_eq!(found.target_ref, Some(reference(&one)));
        assert_eq!(
            (found.node_name.as_deref(), found.zone.as_deref()),
            (Some("n"), Some("z"))
        );
        assert_eq!(found.hostname, None);
        one.subdomain = "web".into();
        let found = endpoint(&service, &one, Family::V6, None);
        assert_eq!(found.hostname.as_deref(), Some("p-0"));
        assert!(found.addresses.is_empty() && found.zone.is_none());
    }

    #[test]
    fn named_target_ports_are_those_of_the_pod() {
        let (mut service, mut one) = (service(), pod("p"));
        service
            .ports
            .push(port("m", TargetPort::Name("metrics".into())));
        let numbers = |pod: &PodFacts| -> Vec<_> {
            ports(&service, pod).iter().map(|port| port.port).collect()
        };
        assert_eq!(numbers(&one), [Some(8080)]);
        let named = |protocol: &str, port| NamedPort {
            name: "metrics".into(),
            protocol: protocol.into(),
            port,
        };
        one.ports = vec![named("UDP", 1), named("TCP", 2), named("TCP", 3)];
        assert_eq!(numbers(&one), [Some(8080), Some(2)]);
    }

    #[test]
    fn slices_have_the_labels_of_their_service() {
        let mut service = service();
        let mut found = slice(&service, Family::V4, Vec::new());
        assert!(!labels_differ(&found, &service));
        let labels = found.metadata.labels.clone().unwrap_or_default();
        assert_eq!(labels["team"], "x");
        assert_eq!(labels[SERVICE_NAME], "web");
        assert!(!labels.contains_key(HEADLESS));
        service.headless = true;
        // Only the label of headless Services differs, so no update is needed.
        assert!(!labels_differ(&found, &service));
        service.labels.insert("team".into(), "y".into());
        assert!(labels_differ(&found, &service));
        found = slice(&service, Family::V4, Vec::new());
        assert_eq!(found.metadata.labels.unwrap_or_default()[HEADLESS], "");
    }
}
