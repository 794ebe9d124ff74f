//! Pod settings other than image and command, and the user's pod template.

use longshore_model::Gvk;
use longshore_schema::{registry, strategic, unknown_fields};
use serde_json::{Map, Value, json};

use super::PlanError;
use crate::{
    caller::Caller,
    config::{Input, PodSpec, RoleSpec},
    names,
};

/// Adds the settings of the pod.
pub(super) fn of_pod(pods: &PodSpec, pod: &mut Map<String, Value>) {
    let mut put = |field: &str, value: Option<Value>| {
        pod.extend(value.map(|value| (field.to_owned(), value)));
    };
    let some = |value: &Vec<Value>| (!value.is_empty()).then(|| json!(value));
    put(
        "nodeSelector",
        (!pods.node_selector.is_empty()).then(|| json!(pods.node_selector)),
    );
    put("tolerations", some(&pods.tolerations));
    put("affinity", pods.affinity.clone());
    put(
        "priorityClassName",
        pods.priority_class.as_ref().map(|class| json!(class)),
    );
    let grace = pods.termination_grace.map(|grace| json!(grace.as_secs()));
    put("terminationGracePeriodSeconds", grace);
}

/// Adds the settings of the main container, and the pod's volumes.
pub(super) fn of_container(pods: &PodSpec, main: &mut Value, volumes: &mut Vec<Value>) {
    if let Some(env) = main["env"].as_array_mut() {
        env.extend(pods.env.iter().cloned());
    }
    if !pods.env_from.is_empty() {
        main["envFrom"] = json!(pods.env_from);
    }
    for (volume, mount) in &pods.volumes {
        volumes.push(volume.clone());
        if let Some(mounts) = main["volumeMounts"].as_array_mut() {
            mounts.push(mount.clone());
        }
    }
}

/// Configures standard input of the main container.
pub(super) fn input(input: Input, main: &mut Value) {
    match input {
        Input::None => {}
        // The first client that attaches writes the whole input and closes it.
        Input::Piped => {
            main["stdin"] = json!(true);
            main["stdinOnce"] = json!(true);
        }
        // It stays open after a lost connection, for a second client.
        Input::Terminal => {
            main["stdin"] = json!(true);
            main["tty"] = json!(true);
        }
    }
}

/// Adds the recorded environment of the caller to a role: as a visible annotation of the Job
/// and its pods, and as a variable for the bootstrap.
pub(super) fn add_caller(
    caller: &Caller,
    role: &RoleSpec,
    job: &mut Value,
) -> Result<(), PlanError> {
    let template = &mut job["spec"]["template"];
    let containers = template["spec"]["containers"].as_array_mut();
    let main = containers
        .into_iter()
        .flatten()
        .find(|container| container["name"] == names::MAIN);
    let Some(env) = main.and_then(|main| main["env"].as_array_mut()) else {
        return Ok(());
    };
    let taken: Vec<String> = env
        .iter()
        .filter_map(|variable| variable["name"].as_str().map(str::to_owned))
        .collect();
    let is_taken = |name: &str| taken.iter().any(|taken| taken == name);
    let text = serde_json::to_string(&caller.for_role(is_taken, super::accelerators(role) > 0));
    let text = text.map_err(PlanError::Config)?;
    let path = format!("metadata.annotations['{}']", names::CALLER);
    env.push(super::field(names::CALLER_VARIABLE, &path));
    template["metadata"]["annotations"][names::CALLER] = json!(text);
    job["metadata"]["annotations"][names::CALLER] = json!(text);
    Ok(())
}

fn job() -> Gvk {
    Gvk::from_api_version("batch/v1", "Job")
}

/// Merges the role's template over that of its Job, like `kubectl patch`. The container with
/// the command is named `main`.
pub(super) fn merge(role: &RoleSpec, planned: Value) -> Result<Value, PlanError> {
    let (Some(template), Some(root)) = (&role.pods.template, registry().root(&job())) else {
        return Ok(planned);
    };
    let ours = planned["spec"]["template"]["metadata"]["labels"].clone();
    let mut patch = Map::new();
    patch.insert("spec".into(), json!({"template": template}));
    let merged = strategic::merge(root, planned, &patch);
    let mut merged = merged.map_err(|error| wrong(role, error.to_string()))?;
    let labels = &mut merged["spec"]["template"]["metadata"]["labels"];
    // These labels identify the run's pods.
    for key in [names::MANAGED_BY, names::RUN, names::ROLE] {
        if labels[key] != ours[key] {
            let problem = format!("the label {key} is reserved for the run");
            return Err(wrong(role, problem));
        }
    }
    let containers = merged["spec"]["template"]["spec"]["containers"].as_array();
    let is_there =
        |name: &str| containers.is_some_and(|all| all.iter().any(|one| one["name"] == name));
    if !is_there(names::MAIN) {
        let problem = format!(
            "the container {:?} must stay: it runs the command",
            names::MAIN
        );
        return Err(wrong(role, problem));
    }
    Ok(merged)
}

/// Rejects unknown fields, which a server would silently drop.
pub(super) fn check(role: &RoleSpec, planned: Value) -> Result<Value, PlanError> {
    // Everything else is generated.
    if role.pods.template.is_none() && role.pods.affinity.is_none() {
        return Ok(planned);
    }
    let unknown = unknown_fields(&job(), &planned);
    match unknown.is_empty() {
        true => Ok(planned),
        false => Err(wrong(role, unknown.join(", "))),
    }
}

fn wrong(role: &RoleSpec, problem: String) -> PlanError {
    PlanError::Pod {
        role: role.name.clone(),
        problem,
    }
}
