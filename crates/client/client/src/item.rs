//! Items: immutable snapshots of objects. A part is parsed when it is read. The methods of
//! [`Item`] that send requests are in the modules of their subjects.

use std::{borrow::Cow, fmt, sync::Arc};

use bytes::Bytes;
use longshore_model::{KindInfo, ObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    cluster::{Cluster, Connection},
    error::{Error, Result},
    kind::{KindOf, Object},
};
use longshore_snapshots::Snapshot;

/// An immutable snapshot of one version of an object. Cheap to clone. The text is a slice of
/// the response, and parts are parsed when they are read.
///
/// Two items are equal if they are the same version of the same object.
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
/// // Single fields, as any type that fits. Nothing else is parsed.
/// let policy: Option<String> = pod.field(&["spec", "restartPolicy"])?;
/// assert_eq!(policy.as_deref(), Some("Always"));
/// let phase: String = pod.status_field(&["phase"])?;
/// assert_eq!(phase, "Pending");
/// // Larger parts.
/// assert_eq!(pod.spec()?["containers"][0]["image"], "busybox");
/// assert_eq!(pod.raw()?["kind"], "Pod");
/// // The whole object, as the type of its kind.
/// let object: k8s_openapi::api::core::v1::Pod = pod.object()?;
/// assert_eq!(object.metadata.name.as_deref(), Some("web"));
/// let any: serde_json::Value = pod.typed()?;
/// assert_eq!(any["metadata"]["name"], "web");
///
/// // Checks of the whole text, and of the metadata.
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
    /// Reads the response to a request for one object.
    pub(crate) fn read(
        cluster: Cluster,
        kind: KindOf<K>,
        body: &Bytes,
        request: &str,
    ) -> Result<Self> {
        let what = format!("the response to {request}");
        let snapshot = Snapshot::parse(body, &what)?;
        if snapshot.name().is_empty() {
            return Err(Error::decode(
                what,
                "it is not an object: it has no metadata.name",
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

    /// Converts the item to another connection and another type for the same kind.
    pub(crate) fn rebind<L: Object, D>(&self, kind: KindOf<L>, cluster: D) -> Item<L, D> {
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

    /// Checks that the whole text is valid JSON. The other methods only check the parts that
    /// they read.
    ///
    /// # Errors
    /// [`Error::Decode`] contains the item, the problem and its position.
    pub fn check(&self) -> Result<()> {
        Ok(self.snapshot.check(|| self.described())?)
    }

    /// The object's name; empty if the text cannot be read.
    #[must_use]
    pub fn name(&self) -> &str {
        self.snapshot.name()
    }

    /// The object's namespace; `None` for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.snapshot.namespace()
    }

    /// The object's UID. Objects that reuse a name have different UIDs.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.snapshot.uid()
    }

    /// The `resourceVersion` of this snapshot, an opaque string.
    #[must_use]
    pub fn version(&self) -> &str {
        self.snapshot.version()
    }

    /// The metadata, parsed at the first call. Parts that do not conform to the API are
    /// omitted; [`Item::checked_meta`] returns an error instead.
    #[must_use]
    pub fn meta(&self) -> &ObjectMeta {
        self.snapshot.meta(|| self.described())
    }

    /// The metadata, parsed at each call.
    ///
    /// # Errors
    /// [`Error::Decode`] if a part does not conform to the API.
    pub fn checked_meta(&self) -> Result<ObjectMeta> {
        Ok(self.snapshot.checked_meta(|| self.described())?)
    }

    /// The object's JSON text as the server sent it. Items of lists may lack `apiVersion` and
    /// `kind`.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        self.snapshot.bytes()
    }

    /// Parses the whole object, with `apiVersion` and `kind`.
    ///
    /// # Errors
    /// [`Error::Decode`] for a text that a [`Value`] cannot represent, such as a number out of
    /// range.
    pub fn raw(&self) -> Result<Value> {
        self.parse(&self.text_with_type())
    }

    /// Parses the whole object as the type of its kind: k8s-openapi's `Pod` for an item of
    /// pods, a [`Value`] for an item of [`Any`](crate::kinds::Any). [`Item::field`] parses a
    /// single field.
    ///
    /// # Errors
    /// [`Error::Decode`] if the object does not fit the type.
    pub fn object(&self) -> Result<K> {
        self.parse(&self.text_with_type())
    }

    /// The text with `apiVersion` and `kind`. Inserts them if they are missing, as in items
    /// of lists.
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
        self.snapshot.check_readable()?;
        serde_json::from_slice(text).map_err(|error| self.misfit(self.described(), error))
    }

    /// Returns the error for a part of the object that does not fit its type.
    fn misfit(&self, what: String, error: serde_json::Error) -> Error {
        let gvk = &self.kind.gvk;
        if gvk.group.is_empty() && gvk.kind == "Secret" {
            // The parser's message could quote a value.
            return Error::decode(what, "it does not fit its type");
        }
        Error::decode(what, error)
    }

    /// Parses the object as any type, for example one with only some of the fields, or the
    /// type of another version of the kind.
    ///
    /// # Errors
    /// [`Error::Decode`] if the object does not fit the type.
    pub fn typed<T: DeserializeOwned>(&self) -> Result<T> {
        self.parse(self.bytes())
    }

    /// Parses the spec; an empty object if the kind has none.
    ///
    /// # Errors
    /// The same as [`Item::raw`].
    pub fn spec(&self) -> Result<Value> {
        Ok(self
            .field(&["spec"])?
            .unwrap_or_else(|| Value::Object(serde_json::Map::new())))
    }

    /// Parses one field, `None` if it is absent or `null`. Nothing else is parsed.
    ///
    /// # Errors
    /// [`Error::Decode`] if the field does not fit the type.
    pub fn field<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Option<T>> {
        let what = || format!("{} of {}", path.join("."), self.described());
        self.snapshot.check_readable()?;
        let text = self
            .snapshot
            .part(path)
            .map_err(|error| Error::decode(what(), error))?;
        text.map(serde_json::from_slice)
            .transpose()
            .map_err(|error| self.misfit(what(), error))
    }

    /// Parses one field of the status. The path is relative to the status.
    ///
    /// # Errors
    /// [`Error::Status`] if the field is absent, and the errors of [`Item::field`].
    pub fn status_field<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T> {
        let full: Vec<&str> = std::iter::once("status")
            .chain(path.iter().copied())
            .collect();
        self.field(&full)?
            .ok_or_else(|| self.lacks(&full.join(".")))
    }

    /// Returns the error for an absent field of the status.
    pub(crate) fn lacks(&self, field: &str) -> Error {
        Error::Status {
            kind: self.kind.gvk.kind.to_string(),
            name: self.name().to_owned(),
            field: field.to_owned(),
        }
    }

    /// The object's kind: its group, version, names and scope.
    #[must_use]
    pub fn kind(&self) -> &KindInfo {
        &self.kind
    }

    /// The cluster that the item was read from.
    #[must_use]
    pub fn cluster(&self) -> &C {
        &self.cluster
    }

    /// The path of the object in the API.
    #[must_use]
    pub fn link(&self) -> String {
        format!(
            "{}/{}",
            self.kind.collection_path(self.namespace()),
            self.name()
        )
    }

    /// The object's name in messages: `pods namespace/name`.
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
