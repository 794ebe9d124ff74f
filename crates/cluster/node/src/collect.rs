//! A hook that reads the volumes of a pod when it has ended, before they are removed.

use std::{collections::BTreeMap, fmt, path::Path};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A pod whose containers have ended.
#[derive(Debug, Clone, Copy)]
pub struct EndedPod<'a> {
    /// Its name, namespace, UID, labels and annotations.
    pub metadata: &'a longshore_model::ObjectMeta,
    /// The directory of its `emptyDir` volumes, each with the name of the volume.
    pub volumes: &'a Path,
}

/// Reads the volumes of pods that have ended.
pub trait CollectFiles: fmt::Debug + Send + Sync {
    /// Whether files of a pod with these annotations are to be collected.
    fn wants(&self, annotations: &BTreeMap<String, String>) -> bool;

    /// Reads the files. Called before the end of the pod is reported, at least once, on a thread
    /// that may block; the pod waits for it. No container of the pod runs any more, but the pod
    /// chose all names of files, and the targets of all links.
    fn collect(&self, pod: &EndedPod<'_>);
}

/// Whether files of a pod are to be collected.
pub(crate) fn is_wanted(hook: &dyn CollectFiles, pod: &ObjectMeta) -> bool {
    pod.annotations
        .as_ref()
        .is_some_and(|annotations| hook.wants(annotations))
}
