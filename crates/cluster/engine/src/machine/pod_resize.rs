//! The admission plugin PodResize: a pod cannot be resized beyond the capacity of its node.

use longshore_builtin::json as js;
use longshore_model::{
    KindInfo, StatusCause,
    quantity::{Amount, Amounts},
    resources::PodResources,
};
use serde::Deserialize as _;
use serde_json::Value;

use super::JsonObject;
use crate::{Error, Subject, state::State};

const OS_LABEL: &str = "kubernetes.io/os";

/// Checks a resized pod against its node (403). The messages equal Kubernetes'.
pub(super) fn check(
    state: &State,
    info: &KindInfo,
    pod: &JsonObject,
    before: &JsonObject,
) -> Result<(), Error> {
    let name = js::text(pod, "spec.nodeName");
    if name.is_empty() || pod.get("spec") == before.get("spec") {
        return Ok(());
    }
    let refuse = |reason: String, cause: Option<&str>| {
        let cause = cause.map(|cause| StatusCause {
            reason: cause.to_owned(),
            message: String::new(),
            field: String::new(),
        });
        Err(Error::Forbidden {
            subject: Subject::new(info, js::text(pod, "metadata.name")),
            reason,
            causes: cause.into_iter().collect(),
        })
    };
    let nodes = state.kinds.builtin_id("", "Node");
    let node = nodes.and_then(|id| state.table(id).objects.get(name));
    let Some(node) = node.map(|node| node.map()) else {
        return refuse(format!("node {name:?} not found"), None);
    };
    let labels = js::at(&node, "metadata.labels");
    let os = labels.and_then(|labels| labels.get(OS_LABEL)?.as_str());
    if let Some(os) = os.filter(|os| *os != "linux") {
        let reason =
            format!("pod resize is only supported on linux nodes, node {name:?} is {os:?}");
        return refuse(reason, Some("UnsupportedPlatform"));
    }
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let requests = PodResources::deserialize(spec)
        .unwrap_or_default()
        .requests_with_overhead();
    let allocatable = js::at(&node, "status.allocatable").unwrap_or(&Value::Null);
    let allocatable = Amounts::deserialize(allocatable).unwrap_or_default();
    let amount = |of: &Amounts, name| of.get(name).copied().unwrap_or(Amount::ZERO);
    let mut missing = Vec::new();
    for (name, number) in [
        ("cpu", Amount::thousandths as fn(Amount) -> i64),
        ("memory", Amount::whole),
    ] {
        let (requested, allocatable) = (amount(&requests, name), amount(&allocatable, name));
        if requested > allocatable {
            let (requested, allocatable) = (number(requested), number(allocatable));
            missing.push(format!(
                "{name}, requested: {requested}, allocatable: {allocatable}"
            ));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let reason = format!(
        "node didn't have enough allocatable resources: {}",
        missing.join("; ")
    );
    refuse(reason, Some("NodeCapacity"))
}
