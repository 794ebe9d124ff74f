//! Pods of workloads for the unit tests.
#![allow(clippy::unwrap_used)]

use longshore_client::LabelSelector;

use super::kind::Meta;
use crate::key::Key;
pub(crate) use crate::pod_facts::testing::{now, pod};

/// The identity of the workload `web`.
pub(crate) fn meta() -> Meta {
    Meta {
        key: Key::new("a", "web"),
        uid: "s1".into(),
        version: "1".into(),
        generation: 1,
        deleting: false,
        annotations: [].into(),
        selector: LabelSelector::exactly([("app", "web")]).unwrap(),
        match_labels: [("app".into(), "web".into())].into(),
    }
}
