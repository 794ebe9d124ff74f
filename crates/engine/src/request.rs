//! What can be asked of the engine, and what it answers.

use std::sync::Arc;

use longshore_model::{FieldSelector, KindInfo, LabelSelector, PatchKind};
use serde_json::Value;

use crate::{Error, Object, cause::Cause};

/// One object: its kind, namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its kind.
    pub kind: Arc<KindInfo>,
    /// Its namespace; `None` for kinds of the whole cluster.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// The part of an object a write is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Subresource {
    /// The object; its status is left as it is.
    #[default]
    None,
    /// The status alone.
    Status,
    /// The number of replicas alone, as a `Scale` of autoscaling/v1.
    Scale,
    /// A namespace with the finalizers in its spec, which go no other way.
    Finalize,
    /// The conditions of a certificate request, its approval among them.
    Approval,
}

/// What to do about fields the kind does not have (`fieldValidation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Drop them.
    Ignore,
    /// Drop them and say so.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

/// Options of creates, updates and patches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Do everything, keep nothing.
    pub dry_run: bool,
    /// Who writes, by name.
    pub field_manager: Option<String>,
    /// The client's user agent.
    pub user_agent: Option<String>,
    /// Server-side apply: take over fields of other managers.
    pub force: bool,
    /// What to do about unknown fields.
    pub field_validation: FieldValidation,
}

/// Makes a new object.
#[derive(Debug, Clone)]
pub struct Create {
    /// Its kind.
    pub kind: Arc<KindInfo>,
    /// The namespace of the request.
    pub namespace: Option<String>,
    /// The object as sent.
    pub object: Value,
    /// Options.
    pub options: WriteOptions,
}

/// Replaces an object or its status.
#[derive(Debug, Clone)]
pub struct Update {
    /// Which object.
    pub target: Target,
    /// Which part.
    pub subresource: Subresource,
    /// The object as sent.
    pub object: Value,
    /// Options.
    pub options: WriteOptions,
}

/// Patches an object or its status.
#[derive(Debug, Clone)]
pub struct Patch {
    /// Which object.
    pub target: Target,
    /// Which part.
    pub subresource: Subresource,
    /// How to read the body.
    pub kind: PatchKind,
    /// The patch.
    pub body: Value,
    /// Options.
    pub options: WriteOptions,
}

/// What a write made.
#[derive(Debug, Clone)]
pub struct Written {
    /// The object as it is now.
    pub object: Arc<Object>,
    /// Whether it was made by this write.
    pub created: bool,
    /// What to warn the client of.
    pub warnings: Vec<String>,
}

/// What becomes of dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They go after the object.
    Background,
    /// The object waits for them.
    Foreground,
    /// They stay.
    Orphan,
}

/// Options of a delete, as in `DeleteOptions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// What becomes of dependents; the kind's default when `None`.
    pub propagation: Option<Propagation>,
    /// The old form of `propagation`.
    pub orphan_dependents: Option<bool>,
    /// Seconds of grace.
    pub grace_seconds: Option<i64>,
    /// Only if the object has this uid.
    pub uid: Option<String>,
    /// Only if the object has this version.
    pub version: Option<String>,
    /// Do everything, keep nothing.
    pub dry_run: bool,
}

/// Deletes an object.
#[derive(Debug, Clone)]
pub struct Delete {
    /// Which object.
    pub target: Target,
    /// Options.
    pub options: DeleteOptions,
}

/// What a delete did.
#[derive(Debug, Clone)]
pub enum Deleted {
    /// The object is gone; its last state, with the deletion's version.
    Gone(Arc<Object>),
    /// The object has a deletion timestamp and waits for grace or finalizers.
    Pending(Arc<Object>),
}

impl Deleted {
    /// The object, gone or not.
    #[must_use]
    pub fn object(&self) -> &Arc<Object> {
        match self {
            Self::Gone(object) | Self::Pending(object) => object,
        }
    }
}

/// Deletes every object that matches.
#[derive(Debug, Clone)]
pub struct DeleteCollection {
    /// Which; with a limit, those of one page.
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
    /// Only if the pod has this uid.
    pub uid: Option<String>,
    /// The node's name.
    pub node: String,
    /// Annotations to set on the pod.
    pub annotations: std::collections::BTreeMap<String, String>,
    /// Do everything, keep nothing.
    pub dry_run: bool,
}

/// Deletes a pod if its PodDisruptionBudget allows that.
#[derive(Debug, Clone, Default)]
pub struct Evict {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// Options of the delete.
    pub options: DeleteOptions,
}

/// Which version of the state a read wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadVersion {
    /// The newest.
    #[default]
    Latest,
    /// Any version that is available.
    Any,
    /// None older than this.
    AtLeast(u64),
    /// Exactly this.
    Exact(u64),
}

/// Lists objects.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Their kind.
    pub kind: Arc<KindInfo>,
    /// Their namespace; all when `None`.
    pub namespace: Option<String>,
    /// Which, by labels.
    pub labels: LabelSelector,
    /// Which, by fields.
    pub fields: FieldSelector,
    /// At most so many.
    pub limit: Option<usize>,
    /// Where to continue: the `continue` token of the page before.
    pub cursor: Option<String>,
    /// Which version of the state.
    pub version: ReadVersion,
}

impl ListRequest {
    /// Everything of a kind, newest state.
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

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Page {
    /// The objects, by namespace and name.
    pub items: Vec<Arc<Object>>,
    /// The version of the state they are of.
    pub revision: u64,
    /// The token for the next page, if there is one.
    pub cursor: Option<String>,
    /// How many follow; not known with selectors.
    pub remaining: Option<u64>,
}

/// Where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchStart {
    /// At the newest state, reported as `Added` events.
    Latest,
    /// After this version.
    After(u64),
}

/// Watches objects.
#[derive(Debug, Clone)]
pub struct WatchRequest {
    /// Their kind.
    pub kind: Arc<KindInfo>,
    /// Their namespace; all when `None`.
    pub namespace: Option<String>,
    /// Which, by labels.
    pub labels: LabelSelector,
    /// Which, by fields.
    pub fields: FieldSelector,
    /// From where.
    pub since: WatchStart,
    /// Whether the state comes first and its end is marked
    /// (`sendInitialEvents=true`); `since` is then a lower bound.
    pub initial_events: bool,
    /// Whether the client understands bookmarks; without, the end of the
    /// initial events is not marked.
    pub bookmarks: bool,
}

impl WatchRequest {
    /// Everything of a kind.
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

/// What a watch reports.
#[derive(Debug, Clone)]
pub enum WatchEvent {
    /// New, or newly selected.
    Added(Arc<Object>),
    /// Changed.
    Modified(Arc<Object>),
    /// Gone, or no longer selected: the last selected state with the version
    /// of the change.
    Deleted(Arc<Object>),
    /// All events up to this version have been sent.
    Bookmark(u64),
    /// The initial events have been sent; the state was of this version.
    InitialEventsEnd(u64),
}

impl DeleteOptions {
    /// Reads a `DeleteOptions` body.
    ///
    /// # Errors
    /// A field of another type (400) or an unknown policy (422).
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
    /// The policy a word names.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another word.
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

    /// The policy's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}
