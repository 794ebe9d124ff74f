//! Options of requests: patches, deletes and logs.

use jiff::Timestamp;
use longshore_model::PatchKind;
use serde_json::{Value, json};

/// A change to an object, in one of the four formats of the API.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::Patch;
/// use serde_json::json;
/// let maps = cluster.configmaps().in_namespace("default")?;
/// # maps.create(&json!({"metadata": {"name": "a"}})).await?;
/// maps.patch("a", &Patch::merge(json!({"data": {"colour": "red", "shape": "round"}}))).await?;
/// maps.patch("a", &Patch::strategic(json!({"data": {"shape": null}}))).await?;
/// // Only if the color is red.
/// let repaint = json!([
///     {"op": "test", "path": "/data/colour", "value": "red"},
///     {"op": "replace", "path": "/data/colour", "value": "blue"},
/// ]);
/// maps.patch("a", &Patch::json(repaint)).await?;
/// let owned = Patch::apply(json!({"data": {"size": "9"}}), "my-tool", false);
/// let map = maps.patch("a", &owned).await?;
/// assert_eq!(map.raw()?["data"], json!({"colour": "blue", "size": "9"}));
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
pub struct Patch {
    pub(crate) kind: PatchKind,
    pub(crate) body: Value,
    pub(crate) manager: Option<String>,
    pub(crate) force: bool,
}

impl Patch {
    fn new(kind: PatchKind, body: Value) -> Self {
        Self {
            kind,
            body,
            manager: None,
            force: false,
        }
    }

    /// A JSON merge patch; `null` deletes (RFC 7386).
    #[must_use]
    pub fn merge(body: Value) -> Self {
        Self::new(PatchKind::Merge, body)
    }

    /// A strategic merge patch: lists of objects are merged by their key.
    #[must_use]
    pub fn strategic(body: Value) -> Self {
        Self::new(PatchKind::Strategic, body)
    }

    /// A JSON patch: a list of operations (RFC 6902).
    #[must_use]
    pub fn json(operations: Value) -> Self {
        Self::new(PatchKind::Json, operations)
    }

    /// Server-side apply: the fields that `manager` applies and then owns. `force` takes over
    /// fields of other managers; without it, they are a conflict. `apiVersion`, `kind` and
    /// `metadata.name` are added from the request.
    #[must_use]
    pub fn apply(body: Value, manager: &str, force: bool) -> Self {
        Self {
            manager: Some(manager.to_owned()),
            force,
            ..Self::new(PatchKind::Apply, body)
        }
    }

    /// The query of the patch for a view with these write options. The patch's manager overrides
    /// the view's.
    pub(crate) fn query(&self, writing: &Writing) -> Vec<(String, String)> {
        let mut writing = writing.clone();
        writing.manager = self.manager.clone().or(writing.manager);
        let mut query = writing.query();
        if self.kind == PatchKind::Apply && self.force {
            query.push(("force".to_owned(), "true".to_owned()));
        }
        query
    }
}

/// The write options of a view.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writing {
    pub(crate) dry_run: bool,
    pub(crate) strict: bool,
    pub(crate) manager: Option<String>,
}

impl Writing {
    /// The query of a write.
    pub(crate) fn query(&self) -> Vec<(String, String)> {
        let all = self
            .dry_run
            .then(|| ("dryRun".to_owned(), "All".to_owned()));
        let mut query: Vec<_> = all.into_iter().collect();
        if self.strict {
            query.push(("fieldValidation".to_owned(), "Strict".to_owned()));
        }
        if let Some(manager) = &self.manager {
            query.push(("fieldManager".to_owned(), manager.clone()));
        }
        query
    }
}

/// The treatment of objects that a deleted object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after it.
    Background,
    /// They are deleted before it.
    Foreground,
    /// They are kept.
    Orphan,
}

/// Options of a delete. The server defines the defaults.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::DeleteOptions;
/// let maps = cluster.configmaps().in_namespace("default")?;
/// let map = maps.create(&serde_json::json!({"metadata": {"name": "a"}})).await?;
///
/// // Does not delete another object with this name.
/// let other = DeleteOptions { uid: Some("7c9e".to_owned()), ..DeleteOptions::default() };
/// assert!(maps.delete("a", &other).await.unwrap_err().is_conflict());
/// let this = DeleteOptions { uid: Some(map.uid().to_owned()), ..DeleteOptions::background() };
/// maps.delete("a", &this).await?;
/// assert!(maps.find("a").await?.is_none());
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// The treatment of owned objects.
    pub propagation: Option<Propagation>,
    /// The grace period in seconds; 0 deletes immediately.
    pub grace_seconds: Option<u32>,
    /// Delete only the object with this uid.
    pub uid: Option<String>,
    /// Delete only this resource version.
    pub version: Option<String>,
}

impl DeleteOptions {
    /// Deletes owned objects after it, regardless of the kind's default.
    #[must_use]
    pub fn background() -> Self {
        Self {
            propagation: Some(Propagation::Background),
            ..Self::default()
        }
    }

    /// The body of the request. With a body, servers ignore the query of a delete.
    pub(crate) fn body(&self, writing: &Writing) -> Value {
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if writing.dry_run {
            body["dryRun"] = json!(["All"]);
        }
        if let Some(propagation) = self.propagation {
            body["propagationPolicy"] = match propagation {
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
                Propagation::Orphan => "Orphan",
            }
            .into();
        }
        if let Some(seconds) = self.grace_seconds {
            body["gracePeriodSeconds"] = seconds.into();
        }
        if let Some(uid) = &self.uid {
            body["preconditions"]["uid"] = uid.as_str().into();
        }
        if let Some(version) = &self.version {
            body["preconditions"]["resourceVersion"] = version.as_str().into();
        }
        body
    }
}

/// The requested part of a container's log. The default is everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The container; required if the pod has several.
    pub container: Option<String>,
    /// Follow the log until the container terminates.
    pub follow: bool,
    /// Read the log of the previous instance of the container.
    pub previous: bool,
    /// Only this number of lines from the end.
    pub tail_lines: Option<u64>,
    /// Only lines of the last seconds.
    pub since_seconds: Option<u64>,
    /// Only lines after this time.
    pub since_time: Option<Timestamp>,
    /// Begin each line with its time.
    pub timestamps: bool,
    /// The maximum number of bytes.
    pub limit_bytes: Option<u64>,
    /// The UID of the pod. The embedded cluster also returns the log of a deleted pod with this
    /// UID, if it keeps it. Other clusters ignore the UID.
    pub uid: Option<String>,
}

impl LogOptions {
    pub(crate) fn query(&self) -> Vec<(String, String)> {
        let mut query = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            query.extend(value.map(|value| (name.to_owned(), value)));
        };
        let yes = |set: bool| set.then(|| "true".to_owned());
        add("container", self.container.clone());
        add("follow", yes(self.follow));
        add("previous", yes(self.previous));
        add("tailLines", self.tail_lines.map(|n| n.to_string()));
        add("sinceSeconds", self.since_seconds.map(|n| n.to_string()));
        add(
            "sinceTime",
            self.since_time.map(longshore_model::time::seconds),
        );
        add("timestamps", yes(self.timestamps));
        add("limitBytes", self.limit_bytes.map(|n| n.to_string()));
        add("uid", self.uid.clone());
        query
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delete_options_say_only_what_was_asked() {
        assert_eq!(
            DeleteOptions::default().body(&Writing::default()),
            json!({"apiVersion": "v1", "kind": "DeleteOptions"})
        );
        let options = DeleteOptions {
            propagation: Some(Propagation::Foreground),
            grace_seconds: Some(0),
            uid: Some("u".into()),
            version: Some("7".into()),
        };
        assert_eq!(
            options.body(&Writing::default()),
            json!({
                "apiVersion": "v1", "kind": "DeleteOptions",
                "propagationPolicy": "Foreground", "gracePeriodSeconds": 0,
                "preconditions": {"uid": "u", "resourceVersion": "7"},
            })
        );
    }

    #[test]
    fn log_options_become_the_query() {
        let options = LogOptions {
            follow: true,
            tail_lines: Some(3),
            ..LogOptions::default()
        };
        let query = options.query();
        assert_eq!(
            query,
            [
                ("follow".into(), "true".into()),
                ("tailLines".into(), "3".into())
            ]
        );
    }
}
