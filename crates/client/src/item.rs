//! Items: immutable snapshots of objects. A part is parsed when it is read; requests
//! are in the modules of their subjects.

use std::{borrow::Cow, fmt, sync::Arc};

use bytes::Bytes;
use longshore_model::{KindInfo, ObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    cluster::{Cluster, Connection},
    data::Snapshot,
    error::{Error, Result},
    kind::{KindOf, Object},
};

/// One version of one object. Cheap to clone; its text is a slice of the
/// response it came in, and parts are parsed when they are asked for.
///
/// Two items are equal when they are the same version of the same object.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// # use serde_json::json;
/// # let pods = cluster.pods().in_namespace("default")?;
/// # let containers = json!([{"name": "main", "image": "busybox"}]);
/// # let web = json!({"metadata": {"name": "web"}, "spec": {"containers": containers}});
/// # pods.create(&web).await?;
/// let pod = pods.fetch("web").await?;
/// assert_eq!((pod.name(), pod.namespace()), ("web", Some("default")));
/// assert_eq!(pod.kind().plural, "pods");
/// assert_eq!(pod.link(), "/api/v1/namespaces/default/pods/web");
/// assert!(pod.meta().creation_timestamp.is_some());
/// println!("{} at version {}", pod.uid(), pod.version());
/// assert_eq!(pod.cluster().default_namespace(), "default");
///
/// // Single fields, of any type that fits; nothing else is parsed.
/// let policy: Option<String> = pod.field(&["spec", "restartPolicy"])?;
/// assert_eq!(policy.as_deref(), Some("Always"));
/// let phase: String = pod.status_field(&["phase"])?;
/// assert_eq!(phase, "Pending");
/// // Larger parts.
/// assert_eq!(pod.spec()?["containers"][0]["image"], "busybox");
/// assert_eq!(pod.raw()?["kind"], "Pod");
/// // The whole object, of the type of its kind.
/// let object: k8s_openapi::api::core::v1::Pod = pod.object()?;
/// assert_eq!(object.metadata.name.as_deref(), Some("web"));
/// let any: serde_json::Value = pod.typed()?;
/// assert_eq!(any["metadata"]["name"], "web");
///
/// // Whether all of it, and the metadata, can be read.
/// pod.check()?;
/// assert_eq!(pod.checked_meta()?.uid, pod.uid());
/// println!("{} bytes", pod.bytes().len());
/// # Ok(()) });
/// ```
pub struct Item<K: Object, C = Cluster> {
    snapshot: Arc<Snapshot>,
    kind: KindOf<K>,
    cluster: C,
}

impl<K: Object> Item<K> {
    /// Reads a response that is one object.
    pub(crate) fn read(
        cluster: Cluster,
        kind: KindOf<K>,
        body: &Bytes,
        request: &str,
    ) -> Result<Self> {
        let what = format!("the answer to {request}");
        let snapshot = Snapshot::whole(body, &what)?;
        if snapshot.name().is_empty() {
            return Err(Error::decode(
                what,
                "it is no object: metadata.name is missing",
            ));
        }
        Ok(Self::new(cluster, kind, Arc::new(snapshot)))
    }
}

impl<K: Object, C: Connection> Item<K, C> {
    pub(crate) fn new(cluster: C, kind: KindOf<K>, snapshot: Arc<Snapshot>) -> Self {
        Self {
            snapshot,
            kind,
            cluster,
        }
    }

    /// The same item from another connection, read into another type.
    pub(crate) fn moved<L: Object, D>(&self, kind: KindOf<L>, cluster: D) -> Item<L, D> {
        Item {
            snapshot: self.snapshot.clone(),
            kind,
            cluster,
        }
    }

    pub(crate) fn marker(&self) -> &KindOf<K> {
        &self.kind
    }

    pub(crate) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Reads the whole text once, to see whether all of it is sound: the rest
    /// of this type's functions look at no more than they need.
    ///
    /// # Errors
    /// [`Error::Decode`] names the item and says what is wrong, and where.
    pub fn check(&self) -> Result<()> {
        self.snapshot.check(|| self.described())
    }

    /// The object's name; empty when the text cannot be read.
    #[must_use]
    pub fn name(&self) -> &str {
        self.snapshot.name()
    }

    /// Its namespace; `None` for objects of the whole cluster.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.snapshot.namespace()
    }

    /// Unique over time, also when the name is used again.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.snapshot.uid()
    }

    /// This snapshot's resourceVersion: opaque, to be compared for equality.
    #[must_use]
    pub fn version(&self) -> &str {
        self.snapshot.version()
    }

    /// The metadata, parsed on the first call. A part that is not what the
    /// API promises is left out; [`Item::checked_meta`] reports it instead.
    #[must_use]
    pub fn meta(&self) -> &ObjectMeta {
        self.snapshot.meta(|| self.described())
    }

    /// The metadata, parsed anew.
    ///
    /// # Errors
    /// [`Error::Decode`] when a part is not what the API promises.
    pub fn checked_meta(&self) -> Result<ObjectMeta> {
        self.snapshot.checked_meta(|| self.described())
    }

    /// The object's JSON text as it came. Items of lists may lack
    /// `apiVersion` and `kind`.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        self.snapshot.bytes()
    }

    /// The whole object as a value, with `apiVersion` and `kind`.
    ///
    /// # Errors
    /// [`Error::Decode`] for a text that cannot be a value, such as a number
    /// out of range.
    pub fn raw(&self) -> Result<Value> {
        self.parse(&self.text_with_type())
    }

    /// The object as the type of its kind: a `Pod` of k8s-openapi for an item of pods,
    /// a [`Value`] for an item of [`Any`](crate::kinds::Any). All of it is parsed, at
    /// each call; [`Item::field`] parses a single field.
    ///
    /// # Errors
    /// [`Error::Decode`] when the type does not fit.
    pub fn object(&self) -> Result<K> {
        self.parse(&self.text_with_type())
    }

    /// The text with `apiVersion` and `kind`, which items of lists may lack.
    fn text_with_type(&self) -> Cow<'_, [u8]> {
        let text = self.bytes();
        let lacks = |key| matches!(self.snapshot.part(&[key]), Ok(None));
        let (lacks_version, lacks_kind) = (lacks("apiVersion"), lacks("kind"));
        let members = text.trim_ascii_start().strip_prefix(b"{");
        let Some(members) = members.filter(|_| lacks_version || lacks_kind) else {
            return Cow::Borrowed(text);
        };
        let mut typed = b"{".to_vec();
        let mut add = |key: &str, value: &str| {
            let value = Value::from(value);
            typed.extend_from_slice(format!("\"{key}\":{value},").as_bytes());
        };
        if lacks_version {
            let versions = &self.cluster.as_ref().shared.versions;
            add("apiVersion", &versions.api_version(&self.kind));
        }
        if lacks_kind {
            add("kind", &self.kind.gvk.kind);
        }
        typed.extend_from_slice(members);
        Cow::Owned(typed)
    }

    fn parse<T: DeserializeOwned>(&self, text: &[u8]) -> Result<T> {
        self.snapshot.intact()?;
        serde_json::from_slice(text).map_err(|error| self.misfit(self.described(), error))
    }

    /// The error for a part of the object that does not fit its type.
    fn misfit(&self, what: String, error: serde_json::Error) -> Error {
        let gvk = &self.kind.gvk;
        if gvk.group.is_empty() && gvk.kind == "Secret" {
            // The parser's message could quote a value.
            return Error::decode(what, "it does not fit its type");
        }
        Error::decode(what, error)
    }

    /// The object as any type that serde reads: one that has only the fields that are
    /// needed, or one of another version of the kind.
    ///
    /// # Errors
    /// [`Error::Decode`] when the type does not fit.
    pub fn typed<T: DeserializeOwned>(&self) -> Result<T> {
        self.parse(self.bytes())
    }

    /// A copy of the desired state; empty when the kind has none.
    ///
    /// # Errors
    /// As [`Item::raw`].
    pub fn spec(&self) -> Result<Value> {
        Ok(self
            .field(&["spec"])?
            .unwrap_or_else(|| Value::Object(serde_json::Map::new())))
    }

    /// One field by its path; `None` when it is absent or `null`. Nothing
    /// else is parsed.
    ///
    /// # Errors
    /// [`Error::Decode`] when the type does not fit.
    pub fn field<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Option<T>> {
        let what = || format!("{} of {}", path.join("."), self.described());
        self.snapshot.intact()?;
        let text = self
            .snapshot
            .part(path)
            .map_err(|fault| Error::decode(what(), fault))?;
        text.map(serde_json::from_slice)
            .transpose()
            .map_err(|error| self.misfit(what(), error))
    }

    /// One field of the status.
    ///
    /// # Errors
    /// [`Error::Status`] when it is absent, else as [`Item::field`].
    pub fn status_field<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T> {
        let full: Vec<&str> = std::iter::once("status")
            .chain(path.iter().copied())
            .collect();
        self.field(&full)?
            .ok_or_else(|| self.lacks(&full.join(".")))
    }

    pub(crate) fn lacks(&self, field: &str) -> Error {
        Error::Status {
            kind: self.kind.gvk.kind.to_string(),
            name: self.name().to_owned(),
            field: field.to_owned(),
        }
    }

    /// The kind's type and place in the API.
    #[must_use]
    pub fn kind(&self) -> &KindInfo {
        &self.kind
    }

    /// The cluster it came from.
    #[must_use]
    pub fn cluster(&self) -> &C {
        &self.cluster
    }

    /// Its path in the API.
    #[must_use]
    pub fn link(&self) -> String {
        format!(
            "{}/{}",
            self.kind.collection_path(self.namespace()),
            self.name()
        )
    }

    /// `pods namespace/name`, for messages.
    pub(crate) fn described(&self) -> String {
        match self.namespace() {
            Some(namespace) => format!("{} {namespace}/{}", self.kind.plural, self.name()),
            None => format!("{} {}", self.kind.plural, self.name()),
        }
    }
}

impl<K: Object, C: Clone> Clone for Item<K, C> {
    fn clone(&self) -> Self {
        Self {
            snapshot: self.snapshot.clone(),
            kind: self.kind.clone(),
            cluster: self.cluster.clone(),
        }
    }
}

impl<K: Object, C: Connection> PartialEq for Item<K, C> {
    fn eq(&self, other: &Self) -> bool {
        self.uid() == other.uid()
            && self.version() == other.version()
            && self.kind.gvk == other.kind.gvk
    }
}

impl<K: Object, C: Connection> Eq for Item<K, C> {}

impl<K: Object, C: Connection> fmt::Debug for Item<K, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Item({} @ {})", self.described(), self.version())
    }
}
