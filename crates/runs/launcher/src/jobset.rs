//! The JobSet kind of the Kubernetes project of the same name.

use longshore_client::k8s_openapi::{
    Metadata, NamespaceResourceScope, Resource, api::batch::v1::JobTemplateSpec,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use longshore_diagnosis::names;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};

/// A JobSet, in the supported version, with the fields that a run sets.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct JobSet {
    /// The JobSet's metadata.
    pub metadata: ObjectMeta,
    /// The JobSet's spec.
    pub spec: JobSetSpec,
}

/// The spec of a [`JobSet`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobSetSpec {
    /// The Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The conditions of success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<SuccessPolicy>,
    /// The handling of failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// The Jobs.
    pub replicated_jobs: Vec<ReplicatedJob>,
    /// True to suspend the Jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// The time to keep the JobSet after its end, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// The Service of a [`JobSet`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Network {
    /// True if pods have host names.
    #[serde(rename = "enableDNSHostnames")]
    pub enable_dns_hostnames: bool,
    /// The name of the Service.
    pub subdomain: String,
    /// True if the names of pods that are not ready resolve.
    pub publish_not_ready_addresses: bool,
}

/// The conditions for the success of a [`JobSet`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SuccessPolicy {
    /// `All` or `Any` of the Jobs must succeed.
    pub operator: String,
    /// The names of the Jobs that count.
    pub target_replicated_jobs: Vec<String>,
}

/// The handling of failures of a [`JobSet`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FailurePolicy {
    /// The maximum number of restarts, each of which creates all Jobs again.
    pub max_restarts: i32,
    /// Exceptions. The first matching rule applies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<FailurePolicyRule>,
}

/// An exception of a [`FailurePolicy`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FailurePolicyRule {
    /// The name of the rule.
    pub name: String,
    /// The action.
    pub action: String,
    /// The reasons of a failed Job to which the rule applies.
    pub on_job_failure_reasons: Vec<String>,
}

impl FailurePolicy {
    /// Creates all Jobs again after a failure. Jobs end by their pod failure policy when a pod was
    /// disrupted, which does not count as a failure.
    pub(crate) fn new(max_restarts: i32) -> Self {
        let disrupted = FailurePolicyRule {
            name: "disrupted".to_owned(),
            action: "RestartJobSetAndIgnoreMaxRestarts".to_owned(),
            on_job_failure_reasons: vec!["PodFailurePolicy".to_owned()],
        };
        Self {
            max_restarts,
            rules: (max_restarts > 0)
                .then_some(disrupted)
                .into_iter()
                .collect(),
        }
    }
}

/// A Job of a [`JobSet`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReplicatedJob {
    /// The name in the JobSet.
    pub name: String,
    /// The number of Jobs to create.
    pub replicas: i32,
    /// The Job.
    pub template: JobTemplateSpec,
}

impl Resource for JobSet {
    const API_VERSION: &'static str = "jobset.x-k8s.io/v1alpha2";
    const GROUP: &'static str = "jobset.x-k8s.io";
    const KIND: &'static str = names::JOBSET;
    const VERSION: &'static str = "v1alpha2";
    const URL_PATH_SEGMENT: &'static str = "jobsets";
    type Scope = NamespaceResourceScope;
}

impl Metadata for JobSet {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Serialize for JobSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct(Self::KIND, 4)?;
        object.serialize_field("apiVersion", Self::API_VERSION)?;
        object.serialize_field("kind", Self::KIND)?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        object.end()
    }
}
