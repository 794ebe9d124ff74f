//! Exports objects as they could be created again.

use serde_json::{Map, Value};

use crate::{cluster::Connection, error::Result, item::Item, kind::Object};

/// Metadata that clients set, not the server.
const META: [&str; 3] = ["name", "labels", "annotations"];

/// Annotations and labels that belong to one object alone.
const OWN: [&str; 9] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "kubernetes.io/metadata.name",
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
];

/// What the server sets in a spec, by kind.
const SET: [(&str, &[&str]); 5] = [
    ("Pod", &["nodeName"]),
    ("Namespace", &["finalizers"]),
    ("PersistentVolumeClaim", &["volumeName"]),
    (
        "Service",
        &["clusterIP", "clusterIPs", "healthCheckNodePort"],
    ),
    ("Job", &["selector"]),
];

impl<K: Object, C: Connection> Item<K, C> {
    /// The object as it could be created again, elsewhere or later: without its
    /// status, and without what the server has set or what belongs to this
    /// object alone, as its namespace, uid and node.
    ///
    /// # Errors
    /// As [`Item::raw`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// # use serde_json::json;
    /// # cluster.namespaces().create(&json!({"metadata": {"name": "elsewhere"}})).await?;
    /// # let maps = cluster.configmaps().in_namespace("default")?;
    /// # let map = json!({"metadata": {"name": "settings"}, "data": {"colour": "blue"}});
    /// # maps.create(&map).await?;
    /// let copy = maps.fetch("settings").await?.manifest()?;
    /// assert!(copy["metadata"].get("uid").is_none());
    /// let there = cluster.create(&copy, Some("elsewhere")).await?;
    /// assert_eq!(there.namespace(), Some("elsewhere"));
    /// # Ok(()) });
    /// ```
    pub fn manifest(&self) -> Result<Value> {
        let mut object = self.raw()?;
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|key, _| META.contains(&key.as_str()));
            forget(metadata, "labels");
            forget(metadata, "annotations");
        }
        let kind = self.kind().gvk.kind.as_ref();
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            remake(kind, spec);
        }
        if let Some(object) = object.as_object_mut() {
            object.remove("status");
        }
        Ok(object)
    }
}

/// Takes off the words of [`OWN`] from the map at `key`.
fn forget(metadata: &mut Map<String, Value>, key: &str) {
    if let Some(words) = metadata.get_mut(key).and_then(Value::as_object_mut) {
        words.retain(|word, _| !OWN.contains(&word.as_str()));
        if words.is_empty() {
            metadata.remove(key);
        }
    }
}

fn remake(kind: &str, spec: &mut Map<String, Value>) {
    let set = SET.iter().find(|(of, _)| *of == kind);
    let own_selector = spec.get("manualSelector") == Some(&Value::Bool(true));
    let headless = spec.get("clusterIP").is_some_and(|ip| ip == "None");
    for field in set.map_or(&[][..], |(_, fields)| fields) {
        let kept = match *field {
            "selector" => own_selector,
            "clusterIP" | "clusterIPs" => headless,
            _ => false,
        };
        if !kept {
            spec.remove(*field);
        }
    }
    let template = spec
        .get_mut("template")
        .and_then(|it| it.get_mut("metadata"));
    if let Some(metadata) = template.and_then(Value::as_object_mut) {
        forget(metadata, "labels");
        metadata.remove("creationTimestamp");
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        port.remove("nodePort");
    }
}
