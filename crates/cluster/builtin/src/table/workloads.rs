//! Table rows of workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets,
//! ReplicationControllers, CronJobs and PodTemplates.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Column, age_cell,
    columns::{AGE, NAME, column},
    count, duration, joined, labels, list, name, or, selector, text, time_at,
};

#[rustfmt::skip]
mod shared {
    use super::{Column, column};
    pub(crate) const CONTAINERS: Column = column("Containers", "string", "", 1, "Names of the containers.");
    pub(crate) const IMAGES: Column = column("Images", "string", "", 1, "Images of the containers.");
    pub(crate) const SELECTOR: Column = column("Selector", "string", "", 1, "Labels of the pods.");
}
use shared::{CONTAINERS, IMAGES, SELECTOR};

#[rustfmt::skip]
pub(crate) const DEPLOYMENT: &[Column] = &[
    NAME,
    column("Ready", "string", "", 0, "Pods that are ready, of those that should be."),
    column("Up-to-date", "string", "", 0, "Pods of the newest template."),
    column("Available", "string", "", 0, "Pods that have been ready for long enough."),
    AGE, CONTAINERS, IMAGES, SELECTOR,
];

#[rustfmt::skip]
pub(crate) const REPLICAS: &[Column] = &[
    NAME,
    column("Desired", "integer", "", 0, "How many pods there should be."),
    column("Current", "integer", "", 0, "How many pods there are."),
    column("Ready", "integer", "", 0, "How many pods are ready."),
    AGE, CONTAINERS, IMAGES, SELECTOR,
];

#[rustfmt::skip]
pub(crate) const STATEFUL_SET: &[Column] = &[
    NAME,
    column("Ready", "string", "", 0, "Pods that are ready, of those that should be."),
    AGE, CONTAINERS, IMAGES,
];

#[rustfmt::skip]
pub(crate) const DAEMON_SET: &[Column] = &[
    NAME,
    column("Desired", "integer", "", 0, "Nodes that should run the pod."),
    column("Current", "integer", "", 0, "Nodes that run the pod."),
    column("Ready", "integer", "", 0, "Nodes whose pod is ready."),
    column("Up-to-date", "integer", "", 0, "Nodes whose pod is of the newest template."),
    column("Available", "integer", "", 0, "Nodes whose pod has been ready for long enough."),
    column("Node Selector", "string", "", 0, "Labels of the nodes."),
    AGE, CONTAINERS, IMAGES, SELECTOR,
];

#[rustfmt::skip]
pub(crate) const CRON_JOB: &[Column] = &[
    NAME,
    column("Schedule", "string", "", 0, "When jobs are made, as cron writes it."),
    column("Timezone", "string", "", 0, "The time zone of the schedule."),
    column("Suspend", "boolean", "", 0, "Whether no more jobs are made."),
    column("Active", "integer", "", 0, "Jobs that are running."),
    column("Last Schedule", "string", "", 0, "How long ago the last job was made."),
    AGE, CONTAINERS, IMAGES, SELECTOR,
];

#[rustfmt::skip]
pub(crate) const TEMPLATE: &[Column] = &[
    NAME,
    column("Containers", "string", "", 0, "Names of the containers."),
    column("Images", "string", "", 0, "Images of the containers."),
    column("Pod Labels", "string", "", 0, "Labels of the pods."),
];

#[rustfmt::skip]
pub(crate) const REVISION: &[Column] = &[
    NAME,
    column("Controller", "string", "", 0, "Whose revision it is."),
    column("Revision", "string", "", 0, "Its number."),
    AGE,
];

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// Returns the names and images of a template's containers.
fn containers(object: &Value, template: &str) -> [Value; 2] {
    let containers = list(object, &format!("{template}/spec/containers"));
    ["/name", "/image"].map(|pointer| joined(containers, pointer, ",").into())
}

/// Formats ready and desired pods.
fn ready(object: &Value) -> Value {
    let ready = number(object, "/status/readyReplicas");
    format!("{ready}/{}", number(object, "/spec/replicas")).into()
}

/// Returns the row of a kind with a pod template: name, the cells of the kind, age, containers,
/// images and selector.
fn row(
    object: &Value,
    now: Timestamp,
    own: impl IntoIterator<Item = Value>,
    template: &str,
    selector: Option<String>,
) -> Vec<Value> {
    let mut cells = vec![name(object)];
    cells.extend(own);
    cells.push(age_cell(object, now));
    cells.extend(containers(object, template));
    cells.extend(selector.map(Value::from));
    cells
}

pub(crate) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let own = [
        ready(object),
        number(object, "/status/updatedReplicas").into(),
        number(object, "/status/availableReplicas").into(),
    ];
    let selector = selector(object, "/spec/selector");
    row(object, now, own, "/spec/template", Some(selector))
}

fn replicas(object: &Value, now: Timestamp, selector: String) -> Vec<Value> {
    let own = [
        "/spec/replicas",
        "/status/replicas",
        "/status/readyReplicas",
    ];
    let own = own.map(|pointer| number(object, pointer).into());
    row(object, now, own, "/spec/template", Some(selector))
}

pub(crate) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    row(object, now, [ready(object)], "/spec/template", None)
}

pub(crate) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let counts = [
        "/status/desiredNumberScheduled",
        "/status/currentNumberScheduled",
        "/status/numberReady",
        "/status/updatedNumberScheduled",
        "/status/numberAvailable",
    ];
    let nodes = labels(object, "/spec/template/spec/nodeSelector");
    let own = counts.map(|pointer| number(object, pointer).into());
    let own = own.into_iter().chain([nodes.into()]);
    let selector = selector(object, "/spec/selector");
    row(object, now, own, "/spec/template", Some(selector))
}

pub(crate) fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let suspended = object.pointer("/spec/suspend") == Some(&json!(true));
    let last = time_at(object, "/status/lastScheduleTime");
    let last = last.map_or_else(
        || "<none>".to_owned(),
        |last| duration::age(Some(last), now),
    );
    let own = [
        text(object, "/spec/schedule").into(),
        or(text(object, "/spec/timeZone"), "<none>").into(),
        if suspended { "True" } else { "False" }.into(),
        count(object, "/status/active").into(),
        last.into(),
    ];
    let selector = selector(object, "/spec/jobTemplate/spec/selector");
    let template = "/spec/jobTemplate/spec/template";
    row(object, now, own, template, Some(selector))
}

pub(crate) fn template(object: &Value, _: Timestamp) -> Vec<Value> {
    let [names, images] = containers(object, "/template");
    vec![
        name(object),
        names,
        images,
        labels(object, "/template/metadata/labels").into(),
    ]
}

pub(crate) fn revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owner = list(object, "/metadata/ownerReferences")
        .iter()
        .find(|owner| owner["controller"] == true);
    let controller = owner.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let group = text(owner, "/apiVersion")
                .split_once('/')
                .map_or("", |(group, _)| group);
            let kind = text(owner, "/kind").to_lowercase();
            let dot = if group.is_empty() { "" } else { "." };
            format!("{kind}{dot}{group}/{}", text(owner, "/name"))
        },
    );
    vec![
        name(object),
        controller.into(),
        number(object, "/revision").into(),
        age_cell(object, now),
    ]
}

pub(crate) fn replica_set(set: &Value, now: Timestamp) -> Vec<Value> {
    replicas(set, now, selector(set, "/spec/selector"))
}

pub(crate) fn replication_controller(controller: &Value, now: Timestamp) -> Vec<Value> {
    replicas(controller, now, labels(controller, "/spec/selector"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_and_a_cron_job() {
        let now = Timestamp::UNIX_EPOCH;
        let object = json!({
            "metadata": {"name": "d"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}},
                "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
            "status": {"readyReplicas": 1, "updatedReplicas": 2},
        });
        assert_eq!(
            Value::from(deployment(&object, now)),
            json!(["d", "1/2", 2, 0, "<unknown>", "c", "i", "a=b"])
        );
        let object =
            json!({"metadata": {"name": "c"}, "spec": {"schedule": "@daily", "suspend": true}});
        assert_eq!(
            Value::from(cron_job(&object, now)[..6].to_vec()),
            json!(["c", "@daily", "<none>", "True", 0, "<none>"])
        );
    }
}
