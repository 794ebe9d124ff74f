//! Audit events, as lines of JSON.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use longshore_model::{Status, time::micros};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    bodies::Copied,
    level::{Level, Stage},
};
use crate::{authorization::Attributes, user::User};

/// The data that are known when a request arrives.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) level: Level,
    pub(super) omits_managed_fields: bool,
    pub(super) uri: String,
    pub(super) user: Arc<User>,
    pub(super) sources: Vec<String>,
    pub(super) user_agent: String,
    pub(super) attributes: Attributes,
    /// The version of the API group, for resources.
    pub(super) version: String,
    pub(super) received: Timestamp,
}

/// An event of one stage.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) head: Arc<Head>,
    pub(super) stage: Stage,
    pub(super) at: Timestamp,
    pub(super) impersonated: Option<Arc<User>>,
    pub(super) status: Option<Status>,
    pub(super) annotations: BTreeMap<String, String>,
    /// The object that the request contains.
    pub(super) request: Option<Copied>,
    pub(super) response: Option<Copied>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    kind: &'static str,
    api_version: &'static str,
    level: Level,
    #[serde(rename = "auditID")]
    id: &'a str,
    stage: Stage,
    #[serde(rename = "requestURI")]
    uri: &'a str,
    verb: &'a str,
    user: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    impersonated_user: Option<Value>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "<[_]>::is_empty")]
    sources: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    user_agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ref: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_object: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_object: Option<Value>,
    request_received_timestamp: String,
    stage_timestamp: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<String, String>,
}

impl Event {
    /// The approximate size of the event in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        let bodies = [&self.request, &self.response].into_iter().flatten();
        let bodies: usize = bodies.map(Copied::size).sum();
        bodies
            .saturating_add(self.head.uri.len())
            .saturating_add(1024)
    }

    /// Appends the event as one line.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let head = &*self.head;
        let request = self.request.as_ref().and_then(Copied::value);
        let object_ref = object_ref(head, request.as_ref());
        let body = |value: Option<Value>, from: Level| {
            let mut value = value.filter(|_| head.level >= from)?;
            if head.omits_managed_fields {
                remove_managed_fields(&mut value);
            }
            Some(value)
        };
        let response = self.response.as_ref().and_then(Copied::value);
        let line = Line {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: head.level,
            id: &head.id,
            stage: self.stage,
            uri: &head.uri,
            verb: &head.attributes.verb,
            user: head.user.info(),
            impersonated_user: self.impersonated.as_ref().map(|user| user.info()),
            sources: &head.sources,
            user_agent: &head.user_agent,
            object_ref,
            response_status: self.status.as_ref().map(status),
            request_object: body(request, Level::Request),
            response_object: body(response, Level::RequestResponse),
            request_received_timestamp: micros(head.received),
            stage_timestamp: micros(self.at),
            annotations: &self.annotations,
        };
        let start = out.len();
        if serde_json::to_writer(&mut *out, &line).is_err() {
            out.truncate(start);
            return;
        }
        out.push(b'\n');
    }
}

/// The object of a request. Parts that the path does not contain are taken from the object in the
/// request.
fn object_ref(head: &Head, object: Option<&Value>) -> Option<Map<String, Value>> {
    let of = &head.attributes;
    if of.path.is_some() {
        return None;
    }
    let sent = |field: &str| object.and_then(|object| object["metadata"][field].as_str());
    let or = |known: &str, field: &str| match known {
        "" => sent(field).unwrap_or_default().to_owned(),
        known => known.to_owned(),
    };
    let mut fields = Map::new();
    for (name, value) in [
        ("resource", of.resource.clone()),
        ("namespace", or(&of.namespace, "namespace")),
        ("name", or(&of.name, "name")),
        ("uid", or("", "uid")),
        ("apiGroup", of.group.clone()),
        ("apiVersion", head.version.clone()),
        ("resourceVersion", or("", "resourceVersion")),
        ("subresource", of.subresource.clone()),
    ] {
        if !value.is_empty() {
            fields.insert(name.to_owned(), value.into());
        }
    }
    Some(fields)
}

/// A status without its kind.
fn status(status: &Status) -> Value {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
        fields.retain(|_, value| value.as_str() != Some(""));
    }
    value
}

/// Removes the managed fields of an object, of the items of a list, and of the rows of a table.
fn remove_managed_fields(value: &mut Value) {
    let remove = |object: &mut Value| {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    };
    remove(value);
    for list in ["items", "rows"] {
        let items = value.get_mut(list).and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            remove(item);
            if let Some(object) = item.get_mut("object") {
                remove(object);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_are_removed_everywhere() {
        let object = || json!({"metadata": {"name": "a", "managedFields": []}});
        let mut one = object();
        let mut list = json!({"items": [object(), 1], "rows": [{"object": object()}]});
        remove_managed_fields(&mut one);
        remove_managed_fields(&mut list);
        let bare = json!({"metadata": {"name": "a"}});
        assert_eq!(one, bare);
        assert_eq!(
            list,
            json!({"items": [bare, 1], "rows": [{"object": bare}]})
        );
    }
}
