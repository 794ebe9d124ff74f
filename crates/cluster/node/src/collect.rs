//! A hook that reads the volumes of a pod after its end, before they are removed.

use std::{collections::BTreeMap, fmt, path::Path};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A pod whose containers have ended.
#[derive(Debug, Clone, Copy)]
pub struct EndedPod<'a> {
    /// The pod's name, namespace, UID, labels and annotations.
    pub metadata: &'a longshore_model::ObjectMeta,
    /// The directory that contains the pod's `emptyDir` volumes, by their names.
    pub volumes: &'a Path,
}

/// Reads the volumes of pods that have ended.
pub trait CollectFiles: fmt::Debug + Send + Sync {
    /// Returns true to collect the files of a pod with these annotations.
    fn wants(&self, annotations: &BTreeMap<String, String>) -> bool;

    /// Reads the files. Called at least once before the end of the pod is reported, on a thread
    /// that may block; the pod waits for it. No container of the pod runs any more, but the pod
    /// chose all names of files and the targets of all links.
    fn collect(&self, pod: &EndedPod<'_>);
}

/// Returns true if files of a pod must be collected.
pub(crate) fn is_wanted(hook: &dyn CollectFiles, pod: &ObjectMeta) -> bool {
    pod.annotations
        .as_ref()
        .is_some_and(|annotations| hook.wants(annotations))
}
