//! Defaults of Deployments, ReplicaSets, StatefulSets, DaemonSets and
//! ReplicationControllers.

use serde_json::{Value, json};

use super::{pod, volume};
use crate::json::{self, Object};

/// The annotation with the template generation of a DaemonSet.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn template(spec: &mut Object) {
    pod::fill_spec(json::child(json::child(spec, "template"), "spec"));
}

/// Sets the parameters of a rolling update if the strategy is a rolling update.
fn rolling_update(spec: &mut Object, field: &str, defaults: &[(&str, Value)]) {
    let strategy = json::child(spec, field);
    json::default_text(strategy, "type", "RollingUpdate");
    if json::text(strategy, "type") == "RollingUpdate" {
        let rolling = json::child(strategy, "rollingUpdate");
        for (name, value) in defaults {
            json::default(rolling, name, value.clone());
        }
    }
}

pub(crate) fn deployment(object: &mut Object) {
    let spec = json::child(object, "spec");
    json::default(spec, "replicas", 1);
    let quarter = [("maxSurge", json!("25%")), ("maxUnavailable", json!("25%"))];
    rolling_update(spec, "strategy", &quarter);
    json::default(spec, "revisionHistoryLimit", 10);
    json::default(spec, "progressDeadlineSeconds", 600);
    template(spec);
}

pub(crate) fn replica_set(object: &mut Object) {
    let spec = json::child(object, "spec");
    json::default(spec, "replicas", 1);
    template(spec);
}

pub(crate) fn daemon_set(object: &mut Object) {
    let spec = json::child(object, "spec");
    let one = [("maxSurge", json!(0)), ("maxUnavailable", json!(1))];
    rolling_update(spec, "updateStrategy", &one);
    json::default(spec, "revisionHistoryLimit", 10);
    template(spec);
}

/// Sets the template generation: 1 for the first template, incremented by every
/// change.
pub(crate) fn set_template_generation(before: Option<&Object>, set: &mut Object) {
    let number = |set: &Object| -> Option<i64> {
        let annotations = set.get("metadata")?.get("annotations")?;
        annotations.get(TEMPLATE_GENERATION)?.as_str()?.parse().ok()
    };
    let generation = match before {
        None => 1,
        Some(before) => {
            let changed = json::at(before, "spec.template") != json::at(set, "spec.template");
            number(before).unwrap_or(1).saturating_add(changed.into())
        }
    };
    json::child(json::child(set, "metadata"), "annotations")
        .insert(TEMPLATE_GENERATION.into(), generation.to_string().into());
}

pub(crate) fn stateful_set(object: &mut Object) {
    let spec = json::child(object, "spec");
    json::default_text(spec, "podManagementPolicy", "OrderedReady");
    let rolling = [("partition", json!(0)), ("maxUnavailable", json!(1))];
    rolling_update(spec, "updateStrategy", &rolling);
    let retention = json::child(spec, "persistentVolumeClaimRetentionPolicy");
    json::default_text(retention, "whenDeleted", "Retain");
    json::default_text(retention, "whenScaled", "Retain");
    json::default(spec, "replicas", 1);
    json::default(spec, "revisionHistoryLimit", 10);
    for claim in json::items_mut(spec, "volumeClaimTemplates") {
        claim.insert("apiVersion".into(), "v1".into());
        claim.insert("kind".into(), "PersistentVolumeClaim".into());
        volume::claim(claim);
    }
    template(spec);
}

/// Copies selector and labels from the template if they are missing.
pub(crate) fn replication_controller(object: &mut Object) {
    if let Some(Value::Object(labels)) = json::at(object, "spec.template.metadata.labels").cloned()
    {
        let is_empty = |value: Option<&Value>| {
            value
                .and_then(Value::as_object)
                .is_none_or(|fields| fields.is_empty())
        };
        if is_empty(json::at(object, "spec.selector")) {
            json::child(object, "spec").insert("selector".into(), labels.clone().into());
        }
        if is_empty(json::at(object, "metadata.labels")) {
            json::child(object, "metadata").insert("labels".into(), labels.into());
        }
    }
    let spec = json::child(object, "spec");
    json::default(spec, "replicas", 1);
    if spec.contains_key("template") {
        template(spec);
    }
}

pub(crate) fn cron_job(object: &mut Object) {
    let spec = json::child(object, "spec");
    json::default_text(spec, "concurrencyPolicy", "Allow");
    json::default(spec, "suspend", false);
    json::default(spec, "successfulJobsHistoryLimit", 3);
    json::default(spec, "failedJobsHistoryLimit", 1);
    let job = json::child(json::child(spec, "jobTemplate"), "spec");
    template(job);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn rule_32_only_rolling_updates_get_rolling_update_parameters() {
        let mut rolling = object(json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}}));
        deployment(&mut rolling);
        assert_eq!(
            rolling["spec"]["strategy"],
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": "25%"}})
        );
        let mut recreate = object(json!({"spec": {"strategy": {"type": "Recreate"}}}));
        deployment(&mut recreate);
        assert_eq!(recreate["spec"]["strategy"], json!({"type": "Recreate"}));
    }

    #[test]
    fn rule_32_a_replication_controller_selects_its_template_labels() {
        let mut controller =
            object(json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}));
        replication_controller(&mut controller);
        assert_eq!(controller["spec"]["selector"], json!({"a": "b"}));
        assert_eq!(controller["metadata"]["labels"], json!({"a": "b"}));
    }

    #[test]
    fn daemon_sets_track_the_template_generation() {
        let mut first = object(json!({"spec": {"template": {"a": 1}}}));
        set_template_generation(None, &mut first);
        let mut second = object(json!({"spec": {"template": {"a": 2}}}));
        set_template_generation(Some(&first), &mut second);
        assert_eq!(second["metadata"]["annotations"][TEMPLATE_GENERATION], "2");
    }
}
