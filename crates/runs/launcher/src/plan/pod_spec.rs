//! The pods of a role: their settings, volumes and containers.

use longshore_client::k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, HostPathVolumeSource, LocalObjectReference, PodSpec, SecretVolumeSource,
    Volume,
};
use longshore_diagnosis::names;

use super::{PlanError, Planner, bundle_secret_name, error::int32};
use crate::{config::RoleSpec, store::Delivery};

/// The volume with the run's Secret.
pub(super) const CONFIG_VOLUME: &str = "config";
/// The volume with the bundle, unless the pod downloads it.
pub(super) const BUNDLE_VOLUME: &str = "bundle";

impl Planner<'_> {
    /// The spec of a role's pods, except `affinity` and the template, which the user wrote in
    /// Kubernetes' notation.
    pub(super) fn pod_spec(&self, role: &RoleSpec) -> Result<PodSpec, PlanError> {
        let pods = &role.pods;
        let grace = pods.termination_grace.map(|grace| grace.as_secs());
        let grace = grace.map(|grace| int32("termination_grace", grace));
        let pull_secrets = self.spec.image_pull_secrets.iter();
        let pull_secrets = pull_secrets.map(|name| LocalObjectReference { name: name.clone() });
        let own_volumes = pods.volumes.iter().map(|(volume, _)| volume.clone());
        Ok(PodSpec {
            restart_policy: Some("Never".to_owned()),
            // With the subdomain, the Service resolves the host names of an Indexed Job's pods:
            // <job>-<index>.<service>.
            subdomain: self.spec.has_peers().then(|| self.run.to_string()),
            enable_service_links: Some(false),
            automount_service_account_token: self.spec.service_account.is_none().then_some(false),
            service_account_name: self.spec.service_account.clone(),
            image_pull_secrets: unless_empty(pull_secrets.collect()),
            host_network: pods.host_network.then_some(true),
            // With the default policy, pods in the node's network use the node's DNS, which does
            // not know the names of other pods.
            dns_policy: pods
                .host_network
                .then(|| "ClusterFirstWithHostNet".to_owned()),
            node_selector: Some(pods.node_selector.clone()).filter(|labels| !labels.is_empty()),
            tolerations: unless_empty(pods.tolerations.clone()),
            priority_class_name: pods.priority_class.clone(),
            termination_grace_period_seconds: grace.transpose()?.map(i64::from),
            init_containers: unless_empty(self.init_containers(role)),
            containers: vec![self.main_container(role)],
            volumes: Some(
                self.volumes()
                    .chain(own_volumes)
                    .chain(self.data_volumes(role))
                    .collect(),
            ),
            ..PodSpec::default()
        })
    }

    fn volumes(&self) -> impl Iterator<Item = Volume> {
        let home = Volume {
            name: names::HOME_VOLUME.to_owned(),
            empty_dir: Some(EmptyDirVolumeSource::default()),
            ..Volume::default()
        };
        let config = secret_volume(CONFIG_VOLUME, self.run.to_string());
        [home, config].into_iter().chain(self.bundle_volume())
    }

    /// The volume of the bundle, unless the pod downloads it.
    pub(super) fn bundle_volume(&self) -> Option<Volume> {
        let bundle = self.bundle?;
        match &bundle.delivery {
            Delivery::Secret(_) => {
                let secret = bundle_secret_name(&bundle.sha256);
                Some(secret_volume(BUNDLE_VOLUME, secret))
            }
            Delivery::Folder { root } => Some(Volume {
                name: BUNDLE_VOLUME.to_owned(),
                host_path: Some(HostPathVolumeSource {
                    path: root.display().to_string(),
                    type_: Some("Directory".to_owned()),
                }),
                ..Volume::default()
            }),
            Delivery::Url(_) => None,
        }
    }
}

fn secret_volume(name: &str, secret: String) -> Volume {
    Volume {
        name: name.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// A list for a field that is omitted if it is empty.
pub(super) fn unless_empty<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}
