//! The desired number of pods of the controllers that own the selected pods.

use std::{collections::HashSet, sync::Arc};

use longshore_client::{Cluster, Error};
use longshore_model::meta::OwnerReference;
use serde::Deserialize;

use super::pod::PodFacts;
use crate::caches::Caches;

/// The sum of the controllers' desired pods.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scale {
    pub(super) pods: i32,
    /// True if some pods have no controller.
    pub(super) has_unmanaged: bool,
}

/// The reason why the scale is unknown.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("found no controllers for pod {0:?}")]
    NoController(String),
    #[error("{0} does not implement the scale subresource")]
    NoScale(String),
    #[error(transparent)]
    Request(#[from] Error),
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    spec: RawSpec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawSpec {
    replicas: Option<i32>,
}

/// Reads the desired pods of all controllers of the pods.
pub(super) struct Reader {
    pub(super) cluster: Cluster,
    pub(super) caches: Arc<Caches>,
}

impl Reader {
    /// Returns the sum of the desired pods of the pods' controllers. Each controller
    /// counts once.
    pub(super) async fn of(&self, namespace: &str, pods: &[PodFacts]) -> Result<Scale, Problem> {
        let mut scale = Scale::default();
        let (mut known, mut counted) = (HashSet::new(), HashSet::new());
        for pod in pods {
            let Some(owner) = &pod.owner else {
                scale.has_unmanaged = true;
                continue;
            };
            if !known.insert(owner.uid.clone()) {
                continue;
            }
            let found = self.of_owner(namespace, owner).await?;
            let missing = || Problem::NoController(pod.key.name.clone());
            let (uid, pods) = found.ok_or_else(missing)?;
            // Two ReplicaSets of one Deployment count once.
            if counted.insert(uid) {
                scale.pods = scale.pods.saturating_add(pods);
            }
        }
        Ok(scale)
    }

    /// Returns the UID of a controller and its desired pods.
    async fn of_owner(
        &self,
        namespace: &str,
        owner: &OwnerReference,
    ) -> Result<Option<(String, i32)>, Problem> {
        let group = owner
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        let cached = match (group, &*owner.kind) {
            ("", "ReplicationController") | ("apps", "ReplicaSet" | "StatefulSet") => {
                self.cached(namespace, group, owner)?
            }
            _ => return self.requested(namespace, owner).await,
        };
        let Some((replicas, parent)) = cached else {
            return Ok(None);
        };
        match parent.filter(|parent| parent.kind == "Deployment") {
            Some(deployment) if owner.kind == "ReplicaSet" => {
                let found = self.cached(namespace, "apps", &deployment)?;
                Ok(found.map(|(replicas, _)| (deployment.uid, replicas)))
            }
            _ => Ok(Some((owner.uid.clone(), replicas))),
        }
    }

    /// Returns the replicas of a controller in the caches, and its own controller.
    fn cached(
        &self,
        namespace: &str,
        group: &str,
        owner: &OwnerReference,
    ) -> Result<Option<(i32, Option<OwnerReference>)>, Error> {
        let cache = self.caches.of(group, &owner.kind);
        let item = cache.and_then(|(_, cache)| cache.get(Some(namespace), &owner.name));
        let Some(item) = item.filter(|item| item.uid() == owner.uid) else {
            return Ok(None);
        };
        let raw: Raw = item.typed()?;
        let parent = item.meta().controller().cloned();
        Ok(Some((raw.spec.replicas.unwrap_or(1), parent)))
    }

    /// Returns the replicas of a controller of another kind, from its subresource `scale`.
    async fn requested(
        &self,
        namespace: &str,
        owner: &OwnerReference,
    ) -> Result<Option<(String, i32)>, Problem> {
        let view = self
            .cluster
            .kind_in(&owner.api_version, &owner.kind)
            .await?;
        let view = view.in_namespace(namespace)?;
        let is_scalable = view.kind().has_subresource("scale");
        match view.scale(&owner.name).await {
            Ok(scale) => {
                let replicas = i32::try_from(scale.wanted).unwrap_or(i32::MAX);
                Ok(Some((owner.uid.clone(), replicas)))
            }
            Err(error) if error.is_not_found() && is_scalable => Ok(None),
            Err(error) if error.is_not_found() => Err(Problem::NoScale(view.kind().qualified())),
            Err(error) => Err(error.into()),
        }
    }
}
