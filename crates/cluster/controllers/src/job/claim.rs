//! Decides which pods a Job adopts and releases. Pure.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::LabelSelector};
use longshore_client::LabelSelector as Selector;
use longshore_model::selector::StructuredSelector;

use super::facts::PodFacts;

/// The pods whose owner changes.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Claims {
    /// The pods without a controller that the Job selects.
    pub(super) adopt: Vec<Arc<PodFacts>>,
    /// The pods that the Job owns and does not select.
    pub(super) release: Vec<Arc<PodFacts>>,
}

impl Claims {
    /// Returns true if no owner changes.
    pub(super) fn is_empty(&self) -> bool {
        self.adopt.is_empty() && self.release.is_empty()
    }
}

/// Returns true if the selector of a Job matches the labels of a pod. A Job without a selector
/// selects no pods.
pub(super) fn selects(job: &Job, labels: &BTreeMap<String, String>) -> bool {
    let selector = job.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some_and(|selector| matches(selector, labels))
}

fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let mut required = selector.match_labels.iter().flatten();
    if !required.all(|(key, value)| labels.get(key) == Some(value)) {
        return false;
    }
    if selector.match_expressions.iter().flatten().next().is_none() {
        return selector.match_labels.is_some();
    }
    let value = serde_json::to_value(selector).ok();
    let structured = value.and_then(|value| serde_json::from_value(value).ok());
    let parsed = structured.map(|one: StructuredSelector| Selector::try_from(one));
    parsed.is_some_and(|parsed| parsed.is_ok_and(|parsed| parsed.matches(labels)))
}

/// Decides about the Job's own pods and the pods without a controller. As in Kubernetes, a Job in
/// deletion does not adopt or release pods.
pub(super) fn claim(job: &Job, owned: &[Arc<PodFacts>], orphans: &[Arc<PodFacts>]) -> Claims {
    if job.metadata.deletion_timestamp.is_some() {
        return Claims::default();
    }
    let has_selector = job
        .spec
        .as_ref()
        .is_some_and(|spec| spec.selector.is_some());
    let adopt = orphans.iter().filter(|pod| !pod.deleting);
    let release = owned.iter().filter(|pod| !selects(job, &pod.labels));
    Claims {
        adopt: adopt.cloned().collect(),
        release: match has_selector {
            true => release.cloned().collect(),
            false => Vec::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::{Value, json};

    use super::*;
    use crate::job::testing::{job, running};

    fn labelled(name: &str, labels: Value) -> Arc<PodFacts> {
        Arc::new(PodFacts {
            labels: serde_json::from_value(labels).unwrap(),
            ..running(name)
        })
    }

    #[test]
    fn selectors_of_both_forms() {
        let labels = |value: Value| serde_json::from_value(value).unwrap();
        let with = |selector: Value| job(json!({"selector": selector}), json!({}));
        let by_label = with(json!({"matchLabels": {"app": "a"}}));
        assert!(selects(&by_label, &labels(json!({"app": "a", "x": "y"}))));
        assert!(!selects(&by_label, &labels(json!({"app": "b"}))));
        let expression = json!({"key": "app", "operator": "In", "values": ["a", "b"]});
        let by_expression = with(json!({"matchExpressions": [expression]}));
        assert!(selects(&by_expression, &labels(json!({"app": "b"}))));
        assert!(!selects(&by_expression, &labels(json!({}))));
        assert!(!selects(&job(json!({}), json!({})), &labels(json!({}))));
    }

    #[test]
    fn pods_are_adopted_and_released() {
        let selector = json!({"matchLabels": {"app": "a"}});
        let mut job = job(json!({"selector": selector}), json!({}));
        let owned = [
            labelled("kept", json!({"app": "a"})),
            labelled("released", json!({"app": "b"})),
        ];
        let mut orphans = ["adopted", "gone"].map(|name| labelled(name, json!({"app": "a"})));
        Arc::make_mut(&mut orphans[1]).deleting = true;
        let names = |pods: Vec<Arc<PodFacts>>| -> Vec<String> {
            pods.iter().map(|pod| pod.name.clone()).collect()
        };
        let claims = claim(&job, &owned, &orphans);
        assert_eq!(names(claims.adopt), ["adopted"]);
        assert_eq!(names(claims.release), ["released"]);
        job.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert!(claim(&job, &owned, &orphans).is_empty());
    }
}
