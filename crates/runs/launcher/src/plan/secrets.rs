//! The Secrets of a run: the configuration of its pods, and its bundle.

use std::collections::BTreeMap;

use longshore_client::k8s_openapi::{
    ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use longshore_diagnosis::names;

use super::{PlanError, Planner, resources::accelerators};
use crate::{
    config::{Restarts, RoleSpec},
    pod::{self, Download, PodBundle, PodConfig, PodRole},
    store::{self, BundleInfo, Delivery},
};

/// The file of the bundle within its Secret.
const BUNDLE_FILE: &str = "bundle.tar.gz";

/// The name of the Secret that carries a bundle.
#[must_use]
pub fn bundle_secret_name(sha256: &str) -> String {
    format!("longshore-bundle-{}", sha256.get(..20).unwrap_or(sha256))
}

fn secret(metadata: ObjectMeta, file: &str, content: Vec<u8>) -> Secret {
    Secret {
        metadata,
        type_: Some("Opaque".to_owned()),
        immutable: Some(true),
        data: Some([(file.to_owned(), ByteString(content))].into()),
        ..Secret::default()
    }
}

impl Planner<'_> {
    /// The Secret with the configuration of the pods.
    pub(super) fn config(&self) -> Result<Secret, PlanError> {
        let config = PodConfig {
            run: self.run.to_string(),
            roles: self.pod_roles(),
            peer_timeout: self.spec.peer_timeout.as_secs(),
            bundle: self.bundle.map(pod_bundle),
            scheduled: self.is_scheduled(),
            data: self.pod_data(),
            data_cache_limit: self.spec.data_cache.as_ref().map(|cache| cache.limit),
            sweep: self.spec.sweep.as_ref().map(|spec| spec.sweep.clone()),
            restarts: self.pod_restarts(),
            idle: self.spec.idle,
        };
        let text = serde_json::to_vec(&config).map_err(PlanError::Config)?;
        let metadata = ObjectMeta {
            name: Some(self.run.to_string()),
            namespace: Some(self.namespace.to_owned()),
            labels: Some(self.labels(None)),
            ..ObjectMeta::default()
        };
        Ok(secret(metadata, pod::FILE, text))
    }

    /// The roles with the addresses of their tasks.
    fn pod_roles(&self) -> Vec<PodRole> {
        // A name that resolves without a Service.
        let is_alone = !self.spec.has_peers();
        let mut port = self.spec.port;
        let mut next_port = || {
            let this = port;
            port = port.saturating_add(1);
            this
        };
        let mut planned = |role: &RoleSpec| {
            let job = self.spec.workload.job(self.run, &role.name);
            // Each task of a sweep is the only task of a job.
            let count = if is_alone { 1 } else { role.count };
            let tasks = (0..count).map(|index| {
                let host = match is_alone {
                    true => "localhost".to_owned(),
                    false => self.run.host(&job, index),
                };
                format!("{host}:{}", next_port())
            });
            PodRole {
                name: role.name.clone(),
                tasks: tasks.collect(),
                env: role.env.clone(),
                accelerators: accelerators(role),
                service: role.service,
                grace: Restarts::grace(role).as_secs(),
                links: role.links(),
            }
        };
        self.spec.roles.iter().map(&mut planned).collect()
    }

    /// The Secret with the bundle, unless it is in a store.
    pub(super) fn bundle_secret(&self) -> Option<Secret> {
        let bundle = self.bundle?;
        let Delivery::Secret(bytes) = &bundle.delivery else {
            return None;
        };
        let text = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let metadata = ObjectMeta {
            name: Some(bundle_secret_name(&bundle.sha256)),
            namespace: Some(self.namespace.to_owned()),
            labels: Some(text(names::MANAGED_BY, names::LONGSHORE)),
            annotations: Some(text(names::BUNDLE, &bundle.sha256)),
            ..ObjectMeta::default()
        };
        Some(secret(metadata, BUNDLE_FILE, bytes.to_vec()))
    }
}

/// The location of the bundle for the pods.
fn pod_bundle(bundle: &BundleInfo) -> PodBundle {
    PodBundle {
        sha256: bundle.sha256.clone(),
        file: match bundle.delivery {
            Delivery::Secret(_) | Delivery::Url(_) => BUNDLE_FILE.to_owned(),
            Delivery::Folder { .. } => store::address(&bundle.sha256),
        },
        download: match &bundle.delivery {
            Delivery::Url(url) => Some(Download {
                url: url.clone(),
                size: bundle.size,
            }),
            Delivery::Secret(_) | Delivery::Folder { .. } => None,
        },
    }
}
