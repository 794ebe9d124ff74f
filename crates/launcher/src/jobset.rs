//! The JobSet kind of the Kubernetes project of the same name.

use longshore_model::{Gvk, KindInfo, Scope};

use crate::names;

/// JobSet, in the supported version.
pub(crate) fn jobset() -> KindInfo {
    KindInfo {
        gvk: Gvk::from_api_version("jobset.x-k8s.io/v1alpha2", names::JOBSET),
        plural: "jobsets".into(),
        singular: "jobset".into(),
        short_names: Default::default(),
        categories: Default::default(),
        scope: Scope::Namespaced,
        subresources: Default::default(),
        list_kind: None,
    }
}
