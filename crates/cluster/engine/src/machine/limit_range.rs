//! LimitRanges: default requests and limits of containers, and their bounds, enforced like
//! Kubernetes' admission plugin LimitRanger.

use std::collections::{BTreeMap, BTreeSet};

use longshore_builtin::json as js;
use longshore_model::{
    KindInfo,
    quantity::{Amount, Amounts},
    resources::{PodResources, Requirements},
};
use serde::Deserialize;
use serde_json::Value;

use super::JsonObject;
use crate::{Error, Subject, state::State};

/// The annotation that lists the defaults that were set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// A LimitRange.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Range {
    spec: Spec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Spec {
    limits: Option<Vec<Limit>>,
}

/// The limits for one type of object.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Limit {
    r#type: String,
    min: Option<Amounts>,
    max: Option<Amounts>,
    default: Option<BTreeMap<String, Value>>,
    default_request: Option<BTreeMap<String, Value>>,
    max_limit_request_ratio: Option<Amounts>,
}

/// The limits of each LimitRange of a namespace.
fn ranges(state: &State, namespace: &str) -> Vec<Vec<Limit>> {
    let objects = state.in_namespace("", "LimitRange", namespace);
    let ranges = objects.filter_map(|object| Range::deserialize(&object.map()).ok());
    ranges
        .map(|range| range.spec.limits.unwrap_or_default())
        .collect()
}

/// Sets the default requests and limits of the containers of a new pod.
pub(super) fn apply_defaults(state: &State, pod: &mut JsonObject) {
    for limits in ranges(state, js::text(pod, "metadata.namespace")) {
        let of_containers = || limits.iter().filter(|limit| limit.r#type == "Container");
        let collect = |of: fn(&Limit) -> &Option<BTreeMap<String, Value>>| {
            let amounts = of_containers().filter_map(|limit| of(limit).as_ref());
            amounts.flatten().collect::<BTreeMap<&String, &Value>>()
        };
        let defaults = collect(|limit| &limit.default);
        let requests = collect(|limit| &limit.default_request);
        let mut set = Vec::new();
        for (list, what) in [
            ("containers", "container"),
            ("initContainers", "init container"),
        ] {
            for container in js::items_mut(js::child(pod, "spec"), list) {
                let name = js::text(container, "name").to_owned();
                for (field, amounts, word) in [
                    ("requests", &requests, "request"),
                    ("limits", &defaults, "limit"),
                ] {
                    let names = fill(container, field, amounts);
                    if !names.is_empty() {
                        set.push(format!("{} {word} for {what} {name}", names.join(", ")));
                    }
                }
            }
        }
        if !set.is_empty() {
            let text = format!("LimitRanger plugin set: {}", set.join("; "));
            let annotations = js::child(js::child(pod, "metadata"), "annotations");
            annotations.insert(ANNOTATION.to_owned(), text.into());
        }
    }
}

/// Sets missing amounts of a container, and returns their names.
fn fill(
    container: &mut JsonObject,
    field: &str,
    amounts: &BTreeMap<&String, &Value>,
) -> Vec<String> {
    if amounts.is_empty() {
        return Vec::new();
    }
    let own = js::child(js::child(container, "resources"), field);
    let mut set = Vec::new();
    for (name, amount) in amounts {
        if !own.contains_key(*name) {
            own.insert((*name).clone(), (*amount).clone());
            set.push((*name).clone());
        }
    }
    set
}

/// Checks a new pod, or a new or changed claim, against the limits (403).
pub(super) fn check(
    state: &State,
    info: &KindInfo,
    object: &JsonObject,
    before: Option<&JsonObject>,
) -> Result<(), Error> {
    let is_pod = match &*info.gvk.kind {
        // The resources of a pod change only by a resize.
        "Pod" if before.is_none() => true,
        "PersistentVolumeClaim" => false,
        _ => return Ok(()),
    };
    match info.gvk.group.is_empty() {
        true => enforce(state, info, object, before, is_pod),
        false => Ok(()),
    }
}

/// Checks a resized pod against the limits (403).
pub(super) fn check_resize(
    state: &State,
    info: &KindInfo,
    pod: &JsonObject,
    before: &JsonObject,
) -> Result<(), Error> {
    enforce(state, info, pod, Some(before), true)
}

fn enforce(
    state: &State,
    info: &KindInfo,
    object: &JsonObject,
    before: Option<&JsonObject>,
    is_pod: bool,
) -> Result<(), Error> {
    let is_deleting = |object| js::at(object, "metadata.deletionTimestamp").is_some();
    if before.is_some_and(is_deleting) {
        return Ok(());
    }
    for limits in ranges(state, js::text(object, "metadata.namespace")) {
        let problems = match is_pod {
            true => of_pod(&limits, object),
            false => of_claim(&limits, object),
        };
        let reason = match &*problems {
            [] => continue,
            [one] => one.clone(),
            _ => format!("[{}]", problems.join(", ")),
        };
        return Err(Error::Forbidden {
            subject: Subject::new(info, js::text(object, "metadata.name")),
            reason,
            causes: Vec::new(),
        });
    }
    Ok(())
}

/// Describes the violations of limits by a pod. Equal problems are listed once.
fn of_pod(limits: &[Limit], pod: &JsonObject) -> Vec<String> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let spec = PodResources::deserialize(spec).unwrap_or_default();
    let mut problems = Problems::default();
    for limit in limits {
        match &*limit.r#type {
            "Container" => {
                for container in spec.all_containers() {
                    problems.check(limit, &container.resources);
                }
            }
            "Pod" => {
                let total = Requirements {
                    requests: spec.requests(),
                    limits: spec.limits(),
                };
                problems.check(limit, &total);
            }
            _ => {}
        }
    }
    problems.list
}

/// Describes the violations of limits by a claim.
fn of_claim(limits: &[Limit], claim: &JsonObject) -> Vec<String> {
    let resources = js::at(claim, "spec.resources").unwrap_or(&Value::Null);
    let resources = Requirements::deserialize(resources).unwrap_or_default();
    // The limits of a claim do not count.
    let resources = Requirements {
        limits: Amounts::new(),
        ..resources
    };
    let mut problems = Problems::default();
    let limits = limits.iter();
    for limit in limits.filter(|limit| limit.r#type == "PersistentVolumeClaim") {
        for (name, bound) in limit.min.iter().flatten() {
            problems.min(&limit.r#type, name, *bound, &resources);
        }
        for (name, bound) in limit.max.iter().flatten() {
            let start = format!("maximum {name} usage per {} is {bound}", limit.r#type);
            match resources.requests.get(name) {
                None => problems.add(format!("{start}.  No request is specified")),
                Some(request) if request > bound => {
                    problems.add(format!("{start}, but request is {request}"));
                }
                Some(_) => {}
            }
        }
    }
    problems.list
}

/// The violations found. The messages equal Kubernetes'.
#[derive(Default)]
struct Problems {
    list: Vec<String>,
    known: BTreeSet<String>,
}

impl Problems {
    fn add(&mut self, problem: String) {
        if self.known.insert(problem.clone()) {
            self.list.push(problem);
        }
    }

    fn check(&mut self, limit: &Limit, resources: &Requirements) {
        let what = &limit.r#type;
        for (name, bound) in limit.min.iter().flatten() {
            self.min(what, name, *bound, resources);
        }
        for (name, bound) in limit.max.iter().flatten() {
            self.max(what, name, *bound, resources);
        }
        for (name, bound) in limit.max_limit_request_ratio.iter().flatten() {
            self.ratio(what, name, *bound, resources);
        }
    }

    fn min(&mut self, what: &str, name: &str, bound: Amount, resources: &Requirements) {
        let start = format!("minimum {name} usage per {what} is {bound}");
        let limit = resources.limits.get(name);
        match (resources.requests.get(name), limit) {
            (None, _) => self.add(format!("{start}.  No request is specified")),
            (Some(request), _) if *request < bound => {
                self.add(format!("{start}, but request is {request}"));
            }
            (_, Some(limit)) if *limit < bound => {
                self.add(format!("{start}, but limit is {limit}"));
            }
            _ => {}
        }
    }

    fn max(&mut self, what: &str, name: &str, bound: Amount, resources: &Requirements) {
        let start = format!("maximum {name} usage per {what} is {bound}");
        let request = resources.requests.get(name);
        match (resources.limits.get(name), request) {
            (None, _) => self.add(format!("{start}.  No limit is specified")),
            (Some(limit), _) if *limit > bound => {
                self.add(format!("{start}, but limit is {limit}"));
            }
            (_, Some(request)) if *request > bound => {
                self.add(format!("{start}, but request is {request}"));
            }
            _ => {}
        }
    }

    fn ratio(&mut self, what: &str, name: &str, bound: Amount, resources: &Requirements) {
        let start = format!("{name} max limit to request ratio per {what} is {bound}");
        let given = |amounts: &Amounts| {
            let amount = amounts.get(name).copied();
            amount.filter(|amount| !amount.is_zero())
        };
        match (given(&resources.requests), given(&resources.limits)) {
            (None, _) => self.add(format!(
                "{start}, but no request is specified or request is 0"
            )),
            (_, None) => self.add(format!("{start}, but no limit is specified or limit is 0")),
            (Some(request), Some(limit)) => {
                let ratio = limit.ratio(request);
                if ratio > bound.ratio(Amount::of(1)) {
                    self.add(format!("{start}, but provided ratio is {ratio:.6}"));
                }
            }
        }
    }
}
