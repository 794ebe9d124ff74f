//! Access to the pod template of a Job.

use longshore_client::k8s_openapi::{
    api::{batch::v1::Job, core::v1::PodSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

/// The spec of a Job's pods.
pub(super) fn pod_spec_of(job: &mut Job) -> &mut PodSpec {
    let template = &mut job.spec.get_or_insert_default().template;
    template.spec.get_or_insert_default()
}

/// The metadata of a Job's pods.
pub(super) fn pod_metadata_of(job: &mut Job) -> &mut ObjectMeta {
    let template = &mut job.spec.get_or_insert_default().template;
    template.metadata.get_or_insert_default()
}
