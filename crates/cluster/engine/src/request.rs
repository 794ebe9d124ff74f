//! Requests to the engine and their results.

use std::sync::Arc;

use longshore_builtin::cause::Cause;
use longshore_model::{FieldSelector, KindInfo, LabelSelector, PatchKind};
use serde_json::Value;

use crate::{Error, Object};

/// Identifies an object by kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The kind.
    pub kind: Arc<KindInfo>,
    /// The namespace; `None` for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

/// The part of an object that a write changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Subresource {
    /// The object without its status.
    #[default]
    None,
    /// Only the status.
    Status,
    /// Only the number of replicas, as a `Scale` of autoscaling/v1.
    Scale,
    /// The finalizers in a namespace's spec, which no other subresource can
    /// change.
    Finalize,
    /// The conditions of a certificate signing request, including its approval.
    Approval,
    /// The ephemeral containers of a pod.
    EphemeralContainers,
    /// The CPU and memory of a pod and its containers.
    Resize,
}

/// The handling of fields that the kind does not have (`fieldValidation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Drop unknown fields.
    Ignore,
    /// Drop unknown fields and return a warning.
    #[default]
    Warn,
    /// Reject the request.
    Strict,
}

/// Options of creates, updates and patches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WriteOptions {
    /// Process the request without storing anything.
    pub dry_run: bool,
    /// The name of the field manager.
    pub field_manager: Option<String>,
    /// The client's user agent.
    pub user_agent: Option<String>,
    /// Server-side apply: take over fields of other managers.
    pub force: bool,
    /// The handling of unknown fields.
    pub field_validation: FieldValidation,
    /// The error if an update or patch would create the object; `None` if it may create it.
    pub create_refusal: Option<Box<crate::Error>>,
    /// The text of a JSON patch. Its tests compare the text of strings and numbers.
    pub patch_text: Option<Arc<str>>,
}

/// Creates an object.
#[derive(Debug, Clone)]
pub struct Create {
    /// The kind.
    pub kind: Arc<KindInfo>,
    /// The namespace of the request.
    pub namespace: Option<String>,
    /// The object in the request.
    pub object: Value,
    /// Options.
    pub options: WriteOptions,
}

/// Replaces an object or its status.
#[derive(Debug, Clone)]
pub struct Update {
    /// The object to replace.
    pub target: Target,
    /// The part to replace.
    pub subresource: Subresource,
    /// The object in the request.
    pub object: Value,
    /// Options.
    pub options: WriteOptions,
}

/// Patches an object or its status.
#[derive(Debug, Clone)]
pub struct Patch {
    /// The object to patch.
    pub target: Target,
    /// The part to patch.
    pub subresource: Subresource,
    /// The type of the patch.
    pub kind: PatchKind,
    /// The patch.
    pub body: Value,
    /// Options.
    pub options: WriteOptions,
}

/// The result of a write.
#[derive(Debug, Clone)]
pub struct Written {
    /// The new state of the object.
    pub object: Arc<Object>,
    /// True if this write created the object.
    pub created: bool,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// The treatment of dependents by a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// Delete them after the object.
    Background,
    /// Delete them before the object.
    Foreground,
    /// Keep them.
    Orphan,
}

/// Options of a delete, as in `DeleteOptions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// The treatment of dependents; `None` for the default of the kind.
    pub propagation: Option<Propagation>,
    /// The deprecated form of `propagation`.
    pub orphan_dependents: Option<bool>,
    /// The grace period in seconds.
    pub grace_seconds: Option<i64>,
    /// Precondition: the object has this uid.
    pub uid: Option<String>,
    /// Precondition: the object has this resource version.
    pub version: Option<String>,
    /// Process the request without storing anything.
    pub dry_run: bool,
}

/// Deletes an object.
#[derive(Debug, Clone)]
pub struct Delete {
    /// The object to delete.
    pub target: Target,
    /// Options.
    pub options: DeleteOptions,
}

/// The result of a delete.
#[derive(Debug, Clone)]
pub enum Deleted {
    /// The object was deleted: its last state, with the resource version of the
    /// deletion.
    Gone(Arc<Object>),
    /// The object has a deletion timestamp and waits for its grace period or
    /// finalizers.
    Pending(Arc<Object>),
}

impl Deleted {
    /// The object, deleted or not.
    #[must_use]
    pub fn object(&self) -> &Arc<Object> {
        match self {
            Self::Gone(object) | Self::Pending(object) => object,
        }
    }
}

/// Deletes all matching objects.
#[derive(Debug, Clone)]
pub struct DeleteCollection {
    /// The objects to delete; with a limit, the objects of one page.
    pub list: ListRequest,
    /// Options of each delete.
    pub options: DeleteOptions,
}

/// Assigns a pod to a node.
#[derive(Debug, Clone, Default)]
pub struct Bind {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// Precondition: the pod has this uid.
    pub uid: Option<String>,
    /// Precondition: the pod has this resource version.
    pub version: Option<String>,
    /// The node's name.
    pub node: String,
    /// Annotations to set on the pod.
    pub annotations: std::collections::BTreeMap<String, String>,
    /// Labels to set on the pod.
    pub labels: std::collections::BTreeMap<String, String>,
    /// Process the request without storing anything.
    pub dry_run: bool,
}

/// Deletes a pod if its PodDisruptionBudget allows it.
#[derive(Debug, Clone, Default)]
pub struct Evict {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// Options of the delete.
    pub options: DeleteOptions,
}

/// The revision of the state that a read requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadVersion {
    /// The newest revision.
    #[default]
    Latest,
    /// Any available revision.
    Any,
    /// This revision or a newer one.
    AtLeast(u64),
    /// Exactly this revision.
    Exact(u64),
}

/// Lists objects.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// The kind.
    pub kind: Arc<KindInfo>,
    /// The namespace; `None` for all.
    pub namespace: Option<String>,
    /// The label selector.
    pub labels: LabelSelector,
    /// The field selector.
    pub fields: FieldSelector,
    /// The maximum number of objects.
    pub limit: Option<usize>,
    /// The `continue` token of the previous page.
    pub cursor: Option<String>,
    /// The revision of the state.
    pub version: ReadVersion,
}

impl ListRequest {
    /// A list of all objects of a kind at the newest revision.
    #[must_use]
    pub fn of(kind: Arc<KindInfo>) -> Self {
        Self {
            kind,
            namespace: None,
            labels: LabelSelector::everything(),
            fields: FieldSelector::everything(),
            limit: None,
            cursor: None,
            version: ReadVersion::Latest,
        }
    }
}

/// A page of a list.
#[derive(Debug, Clone)]
pub struct Page {
    /// The objects, sorted by namespace and name.
    pub items: Vec<Arc<Object>>,
    /// The revision of the state.
    pub revision: u64,
    /// The token for the next page, if there is one.
    pub cursor: Option<String>,
    /// The number of further objects; unknown if selectors are used.
    pub remaining: Option<u64>,
}

/// The position at which a watch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchStart {
    /// At the newest revision, with the state reported as `Added` events.
    Latest,
    /// After this revision.
    After(u64),
}

/// Watches objects.
#[derive(Debug, Clone)]
pub struct WatchRequest {
    /// The kind.
    pub kind: Arc<KindInfo>,
    /// The namespace; `None` for all.
    pub namespace: Option<String>,
    /// The label selector.
    pub labels: LabelSelector,
    /// The field selector.
    pub fields: FieldSelector,
    /// The position at which to start.
    pub since: WatchStart,
    /// Set to send the state first and mark its end (`sendInitialEvents=true`). `since` is then a
    /// lower bound.
    pub initial_events: bool,
    /// True if the client accepts bookmarks. Otherwise the end of the initial events is not marked.
    pub bookmarks: bool,
}

impl WatchRequest {
    /// A watch of all objects of a kind.
    #[must_use]
    pub fn of(kind: Arc<KindInfo>, since: WatchStart) -> Self {
        Self {
            kind,
            namespace: None,
            labels: LabelSelector::everything(),
            fields: FieldSelector::everything(),
            since,
            initial_events: false,
            bookmarks: false,
        }
    }
}

/// An event of a watch.
#[derive(Debug, Clone)]
pub enum WatchEvent {
    /// The object was created, or matches the selectors now.
    Added(Arc<Object>),
    /// The object was changed.
    Modified(Arc<Object>),
    /// The object was deleted, or no longer matches the selectors: its last
    /// matching state, with the resource version of the change.
    Deleted(Arc<Object>),
    /// An object changed that may match the selector: the receiver evaluates the terms of
    /// [`ConvertedFields`](crate::ConvertedFields) on both states. Such a watch has no other events
    /// of objects.
    Unfiltered {
        /// The state before, with the resource version of the change, if the
        /// object existed and matched the other terms.
        before: Option<Arc<Object>>,
        /// The state after, if the object exists and matches the other terms.
        after: Option<Arc<Object>>,
    },
    /// All events up to this revision have been sent.
    Bookmark(u64),
    /// All initial events have been sent; they show the state at this revision.
    InitialEventsEnd(u64),
}

impl DeleteOptions {
    /// Decodes a `DeleteOptions` body.
    ///
    /// # Errors
    /// Fails if a field has the wrong type (400) or a policy is unknown (422).
    ///
    /// ```
    /// use longshore_engine::{DeleteOptions, Propagation};
    /// let body = serde_json::json!({"propagationPolicy": "Foreground", "gracePeriodSeconds": 0});
    /// let options = DeleteOptions::from_body(&body).unwrap();
    /// assert_eq!(options.propagation, Some(Propagation::Foreground));
    /// assert_eq!(options.grace_seconds, Some(0));
    /// ```
    pub fn from_body(body: &Value) -> Result<Self, Error> {
        let wrong = |field: &str| {
            Error::BadRequest(format!(
                "DeleteOptions cannot be read: {field} has another type"
            ))
        };
        let text = |value: &Value, field| match value {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(wrong(field)),
        };
        let propagation = match &body["propagationPolicy"] {
            Value::Null => None,
            Value::String(policy) => Some(Propagation::from_word(policy)?),
            _ => return Err(wrong("propagationPolicy")),
        };
        let mut options = Self {
            propagation,
            ..Self::default()
        };
        options.orphan_dependents = match &body["orphanDependents"] {
            Value::Null => None,
            Value::Bool(orphan) => Some(*orphan),
            _ => return Err(wrong("orphanDependents")),
        };
        options.grace_seconds = match &body["gracePeriodSeconds"] {
            Value::Null => None,
            value => Some(value.as_i64().ok_or_else(|| wrong("gracePeriodSeconds"))?),
        };
        options.uid = text(&body["preconditions"]["uid"], "preconditions.uid")?;
        options.version = text(
            &body["preconditions"]["resourceVersion"],
            "preconditions.resourceVersion",
        )?;
        options.dry_run = match &body["dryRun"] {
            Value::Null => false,
            Value::Array(values) => dry_run(values.iter().map(Value::as_str))?,
            _ => return Err(wrong("dryRun")),
        };
        Ok(options)
    }
}

fn dry_run<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Result<bool, Error> {
    let mut dry_run = false;
    for value in values {
        if value != Some("All") {
            return Err(options_invalid(Cause::not_supported(
                "dryRun",
                value.unwrap_or_default(),
                &["All"],
            )));
        }
        dry_run = true;
    }
    Ok(dry_run)
}

pub(crate) fn options_invalid(cause: longshore_model::StatusCause) -> Error {
    let subject = crate::Subject {
        group: "meta.k8s.io".into(),
        resource: "deleteoptions".into(),
        kind: "DeleteOptions".into(),
        name: "".into(),
    };
    Error::Invalid {
        subject,
        causes: vec![cause],
    }
}

impl Propagation {
    /// Parses a propagation policy.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the policy is unknown.
    pub fn from_word(word: &str) -> Result<Self, Error> {
        match word {
            "Background" => Ok(Self::Background),
            "Foreground" => Ok(Self::Foreground),
            "Orphan" => Ok(Self::Orphan),
            _ => Err(options_invalid(Cause::not_supported(
                "propagationPolicy",
                word,
                &["Foreground", "Background", "Orphan", "nil"],
            ))),
        }
    }

    /// The name of the policy.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}
