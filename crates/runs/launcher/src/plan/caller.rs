//! The recorded environment of the invoking shell, in a role's Job.

use longshore_client::k8s_openapi::api::batch::v1::Job;
use longshore_diagnosis::names;

use super::{
    PlanError,
    container::field,
    pod_template::{pod_metadata_of, pod_spec_of},
    resources::accelerators,
};
use crate::{caller::Caller, config::RoleSpec};

/// Adds the recorded environment of the invoking shell to a role, as a visible annotation of the
/// Job and its pods, and as a variable for the bootstrap.
pub(super) fn record(caller: &Caller, role: &RoleSpec, job: &mut Job) -> Result<(), PlanError> {
    let containers = &mut pod_spec_of(job).containers;
    let main = containers.iter_mut().find(|one| one.name == names::MAIN);
    let Some(env) = main.and_then(|main| main.env.as_mut()) else {
        return Ok(());
    };
    let is_taken = |name: &str| env.iter().any(|variable| variable.name == name);
    let text = serde_json::to_string(&caller.for_role(is_taken, accelerators(role) > 0));
    let text = text.map_err(PlanError::Config)?;
    let path = format!("metadata.annotations['{}']", names::CALLER);
    env.push(field(names::CALLER_VARIABLE, &path));
    let of_pods = pod_metadata_of(job).annotations.get_or_insert_default();
    of_pods.insert(names::CALLER.to_owned(), text.clone());
    let of_job = job.metadata.annotations.get_or_insert_default();
    of_job.insert(names::CALLER.to_owned(), text);
    Ok(())
}
