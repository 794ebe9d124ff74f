//! The headless Service that resolves the host names of tasks.

use longshore_client::k8s_openapi::{
    api::core::v1::{Service, ServicePort, ServiceSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use longshore_diagnosis::names;

use super::Planner;

impl Planner<'_> {
    pub(super) fn service(&self) -> Service {
        let selector = (names::RUN.to_owned(), self.run.to_string());
        let port = ServicePort {
            name: Some("first".to_owned()),
            port: self.spec.port.into(),
            protocol: Some("TCP".to_owned()),
            ..ServicePort::default()
        };
        Service {
            metadata: ObjectMeta {
                name: Some(self.run.to_string()),
                namespace: Some(self.namespace.to_owned()),
                labels: Some(self.labels(None)),
                ..ObjectMeta::default()
            },
            spec: Some(ServiceSpec {
                cluster_ip: Some("None".to_owned()),
                // Peers look for each other before they are ready.
                publish_not_ready_addresses: Some(true),
                selector: Some([selector].into()),
                ports: Some(vec![port]),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        }
    }
}
