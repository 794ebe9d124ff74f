//! The settings in Kubernetes' notation: the pod template and `affinity` of a role.

use std::collections::BTreeMap;

use longshore_client::k8s_openapi::api::{batch::v1::Job, core::v1::PodSpec};
use longshore_diagnosis::names;
use longshore_model::Gvk;
use longshore_schema::{registry, strategic, unknown_fields};
use serde_json::{Map, json};

use super::{
    PlanError, field_types,
    pod_template::{pod_metadata_of, pod_spec_of},
};
use crate::config::RoleSpec;

/// Merges the role's template over the template of its Job, like `kubectl patch`. The container
/// with the command is named `main`.
///
/// The merge takes place in JSON. The result is read into a [`Job`] only if this type has all of
/// its fields, so that nothing is lost. The schema for this check describes the same version of
/// Kubernetes.
pub(super) fn merge(role: &RoleSpec, mut planned: Job) -> Result<Job, PlanError> {
    // All other fields are generated.
    if role.pods.template.is_none() && role.pods.affinity.is_none() {
        return Ok(planned);
    }
    let wrong = |problem: String| PlanError::Pod {
        role: role.name.clone(),
        problem,
    };
    let kind = Gvk::from_api_version("batch/v1", "Job");
    let root = registry().root(&kind);
    let root = root.ok_or_else(|| wrong("the schema of Jobs is missing".to_owned()))?;
    let ours = pod_metadata_of(&mut planned).labels.clone();
    let ours = ours.unwrap_or_default();
    check_command(role).map_err(wrong)?;
    let mut merged = serde_json::to_value(&planned).map_err(PlanError::Json)?;
    if let Some(affinity) = &role.pods.affinity {
        merged["spec"]["template"]["spec"]["affinity"] = affinity.clone();
    }
    if let Some(template) = &role.pods.template {
        let patch = Map::from_iter([("spec".to_owned(), json!({"template": template}))]);
        merged =
            strategic::merge(root, merged, &patch).map_err(|error| wrong(error.to_string()))?;
    }
    let unknown = unknown_fields(&kind, &merged);
    if !unknown.is_empty() {
        return Err(wrong(unknown.join(", ")));
    }
    field_types::check(root, &mut merged).map_err(wrong)?;
    // Parses from bytes, like the client, so that the code that parses a Job is compiled only once.
    let text = merged.to_string();
    let mut merged: Job =
        serde_json::from_slice(text.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    check_run(&mut merged, &ours).map_err(wrong)?;
    give_code_to_command(role, pod_spec_of(&mut merged));
    Ok(merged)
}

/// Runs the container that fetches the code with the user, the group and the image of the command,
/// unless the template sets them, because the command writes to the folder of the code.
fn give_code_to_command(role: &RoleSpec, pod: &mut PodSpec) {
    let mut containers = pod.containers.iter();
    let main = containers.find(|container| container.name == names::MAIN);
    let mut inits = pod.init_containers.iter_mut().flatten();
    let fetch = inits.find(|container| container.name == names::FETCH);
    let (Some(main), Some(fetch)) = (main, fetch) else {
        return;
    };
    // The image can also set a user.
    if fetch.image.as_ref() == Some(&role.image) {
        fetch.image.clone_from(&main.image);
        fetch.image_pull_policy.clone_from(&main.image_pull_policy);
    }
    let Some(wanted) = &main.security_context else {
        return;
    };
    if wanted.run_as_user.is_some() || wanted.run_as_group.is_some() {
        let own = fetch.security_context.get_or_insert_default();
        own.run_as_user = own.run_as_user.or(wanted.run_as_user);
        own.run_as_group = own.run_as_group.or(wanted.run_as_group);
    }
}

/// Rejects a template whose `command` or `args` would replace the run's command.
fn check_command(role: &RoleSpec) -> Result<(), String> {
    let containers = role.pods.template.as_ref();
    let containers = containers.and_then(|template| template["spec"]["containers"].as_array());
    let main = containers.into_iter().flatten();
    let mut main = main.filter(|container| container["name"] == names::MAIN);
    let replaced = main.find_map(|container| {
        let keys = ["command", "args"].into_iter();
        keys.map(|key| (key, &container[key]))
            .find(|(_, value)| !value.is_null())
    });
    match replaced {
        Some((key, _)) => Err(format!(
            "the template sets `{key}` of the container {:?}, which would replace the command {:?} of the run: remove it from the template, or give its words as the command",
            names::MAIN,
            role.command.join(" ")
        )),
        None => Ok(()),
    }
}

/// Rejects a template that changes settings that the run needs.
fn check_run(merged: &mut Job, ours: &BTreeMap<String, String>) -> Result<(), String> {
    // These labels identify the run's pods.
    let labels = pod_metadata_of(merged).labels.get_or_insert_default();
    for key in [names::MANAGED_BY, names::RUN, names::ROLE, names::SWEEP] {
        if labels.get(key) != ours.get(key) {
            return Err(format!("the label {key} is reserved for the run"));
        }
    }
    let mut containers = pod_spec_of(merged).containers.iter();
    match containers.any(|container| container.name == names::MAIN) {
        true => Ok(()),
        false => Err(format!(
            "the container {:?} must stay: it runs the command",
            names::MAIN
        )),
    }
}
