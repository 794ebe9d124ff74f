//! Exports objects as manifests that can be created again.

use serde_json::{Map, Value};

use crate::{cluster::Connection, error::Result, item::Item, kind::Object};

/// The metadata that a manifest keeps.
const KEPT_METADATA: [&str; 3] = ["name", "labels", "annotations"];

/// Annotations and labels that are only valid on the original object.
const OBJECT_KEYS: [&str; 9] = [
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

/// The fields of a spec that the server or a controller sets, by kind.
const SERVER_FIELDS: [(&str, &[&str]); 5] = [
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
    /// Returns a manifest from which the object can be created again, for example in another
    /// namespace. It omits the status, the fields that the server or a controller has set,
    /// and what is only valid for this object, such as its namespace, UID and node.
    ///
    /// # Errors
    /// The same as [`Item::raw`].
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
            metadata.retain(|key, _| KEPT_METADATA.contains(&key.as_str()));
            remove_object_keys(metadata, "labels");
            remove_object_keys(metadata, "annotations");
        }
        let kind = self.kind().gvk.kind.as_ref();
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            remove_server_fields(kind, spec);
        }
        if let Some(object) = object.as_object_mut() {
            object.remove("status");
        }
        Ok(object)
    }
}

/// Removes [`OBJECT_KEYS`] from the labels or annotations in `field`.
fn remove_object_keys(metadata: &mut Map<String, Value>, field: &str) {
    if let Some(map) = metadata.get_mut(field).and_then(Value::as_object_mut) {
        map.retain(|key, _| !OBJECT_KEYS.contains(&key.as_str()));
        if map.is_empty() {
            metadata.remove(field);
        }
    }
}

fn remove_server_fields(kind: &str, spec: &mut Map<String, Value>) {
    let entry = SERVER_FIELDS.iter().find(|(name, _)| *name == kind);
    let manual_selector = spec.get("manualSelector") == Some(&Value::Bool(true));
    let headless = spec.get("clusterIP").is_some_and(|ip| ip == "None");
    for field in entry.map_or(&[][..], |(_, fields)| fields) {
        let kept = match *field {
            "selector" => manual_selector,
            "clusterIP" | "clusterIPs" => headless,
            _ => false,
        };
        if !kept {
            spec.remove(*field);
        }
    }
    let template = spec
        .get_mut("template")
        .and_then(|template| template.get_mut("metadata"));
    if let Some(metadata) = template.and_then(Value::as_object_mut) {
        remove_object_keys(metadata, "labels");
        metadata.remove("creationTimestamp");
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        port.remove("nodePort");
    }
}
