//! The fields of a pod that the controllers of workloads read. These controllers decode each pod
//! that changes, and decoding all fields would take several times as long.

use k8s_openapi::api::core::v1::{Affinity, ContainerState, PodCondition};
use longshore_model::ObjectMeta;
use serde::Deserialize;

/// The fields of a pod that the controllers of workloads read.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct PodFields {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: Option<Spec>,
    pub(crate) status: Option<Status>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    pub(crate) affinity: Option<Affinity>,
    pub(crate) init_containers: Option<Vec<InitContainer>>,
    pub(crate) node_name: Option<String>,
    pub(crate) volumes: Option<Vec<Volume>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitContainer {
    pub(crate) name: String,
    pub(crate) restart_policy: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Volume {
    pub(crate) name: String,
    pub(crate) persistent_volume_claim: Option<Claim>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Claim {
    pub(crate) claim_name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    pub(crate) conditions: Option<Vec<PodCondition>>,
    pub(crate) container_statuses: Option<Vec<ContainerStatus>>,
    pub(crate) init_container_statuses: Option<Vec<ContainerStatus>>,
    pub(crate) phase: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerStatus {
    pub(crate) name: String,
    pub(crate) restart_count: i32,
    pub(crate) state: Option<ContainerState>,
}

impl Status {
    /// Returns the condition Ready if it is True.
    pub(crate) fn ready(&self) -> Option<&PodCondition> {
        let mut conditions = self.conditions.iter().flatten();
        conditions.find(|one| one.type_ == "Ready" && one.status == "True")
    }
}
