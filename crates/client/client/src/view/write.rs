//! Creates and changes objects.

use http::Method;
use longshore_model::PatchKind;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{View, prepare::as_json};
use crate::{
    error::{Error, Result},
    item::Item,
    kind::{Data, Object},
    options::Patch,
    transport::Call,
};

/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::{DeleteOptions, Patch};
/// use serde_json::json;
///
/// let maps = cluster.configmaps().in_namespace("default")?.strict().field_manager("painter");
/// let made = maps.create(&json!({"metadata": {"name": "a"}, "data": {"colour": "red"}})).await?;
/// let mut object = made.raw()?;
/// object["data"]["colour"] = "blue".into();
/// let replaced = maps.replace("a", &object).await?;
/// assert_eq!(replaced.data()?["colour"], "blue");
/// // The resource version in the data is now outdated.
/// assert!(maps.replace("a", &object).await.unwrap_err().is_conflict());
///
/// let patched = maps.patch("a", &Patch::merge(json!({"data": {"colour": null}}))).await?;
/// assert!(patched.data()?.is_empty());
/// let wanted = json!({"metadata": {"name": "b"}, "data": {"shape": "round"}});
/// maps.apply(&wanted, "painter", false).await?;
/// // A strict view rejects a misspelled field.
/// let wrong = json!({"metadata": {"name": "c"}, "date": {}});
/// assert_eq!(maps.create(&wrong).await.unwrap_err().code(), Some(400));
///
/// maps.delete("a", &DeleteOptions::default()).await?;
/// maps.delete_all(&DeleteOptions::background()).await?;
/// assert!(maps.list().await?.items.is_empty());
/// # Ok(()) });
/// ```
impl<K: Object> View<K> {
    /// Creates an object. `apiVersion` and `kind` may be omitted. A namespaced kind
    /// requires the namespace of the view or of the data.
    ///
    /// # Errors
    /// [`Error::is_already_exists`]; [`Error::Namespace`] if the namespaces of view and
    /// data differ or both are missing; [`Error::Invalid`] for data of another kind, before
    /// any request.
    pub async fn create<Form>(&self, data: &impl Data<K, Form>) -> Result<Item<K>> {
        let (view, data) = self.prepare(data, None)?;
        let call = Call::new(Method::POST, view.collection_path())
            .queries(self.writing.query())
            .json(&data)?;
        view.written(&call).await
    }

    /// Replaces an object. With `metadata.resourceVersion` in the data, replaces only that
    /// version.
    ///
    /// # Errors
    /// [`Error::is_conflict`] if the object has changed since; otherwise as
    /// [`View::create`].
    pub async fn replace<Form>(&self, name: &str, data: &impl Data<K, Form>) -> Result<Item<K>> {
        self.put(name, "", data).await
    }

    /// Replaces only the status of an object.
    ///
    /// # Errors
    /// The same as [`View::replace`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// use longshore_client::Patch;
    /// # let spec = serde_json::json!({"containers": [{"name": "main", "image": "busybox"}]});
    /// # let pod = serde_json::json!({"metadata": {"name": "web"}, "spec": spec});
    /// # let pods = cluster.pods().in_namespace("default")?;
    /// # pods.create(&pod).await?;
    /// let mut object = pods.fetch("web").await?.raw()?;
    /// object["status"]["message"] = "the image is on its way".into();
    /// let pod = pods.replace_status("web", &object).await?;
    /// assert_eq!(pod.message()?, "the image is on its way");
    ///
    /// let failed = Patch::merge(serde_json::json!({"status": {"phase": "Failed"}}));
    /// let pod = pods.patch_status("web", &failed).await?;
    /// assert_eq!(pod.phase()?.as_str(), "Failed");
    /// # Ok(()) });
    /// ```
    pub async fn replace_status<Form>(
        &self,
        name: &str,
        data: &impl Data<K, Form>,
    ) -> Result<Item<K>> {
        self.put(name, "/status", data).await
    }

    pub(super) async fn put(
        &self,
        name: &str,
        subresource: &str,
        data: &impl Serialize,
    ) -> Result<Item<K>> {
        let (view, data) = self.prepare(data, Some(name))?;
        let path = format!("{}{subresource}", view.object_path(name)?);
        let call = Call::new(Method::PUT, path)
            .queries(self.writing.query())
            .json(&data)?;
        view.written(&call).await
    }

    /// Patches an object. With [`Patch::apply`], creates it if it does not exist.
    ///
    /// # Errors
    /// The server rejects the request; [`Error::is_conflict`] names the fields and their
    /// managers.
    pub async fn patch(&self, name: &str, patch: &Patch) -> Result<Item<K>> {
        self.patch_at(name, "", patch).await
    }

    /// Applies an object on the server, as with [`Patch::apply`]. The data contain the
    /// name.
    ///
    /// # Errors
    /// The same as [`View::patch`]; [`Error::Invalid`] for data without a name, before
    /// any request.
    pub async fn apply<Form>(
        &self,
        data: &impl Data<K, Form>,
        manager: &str,
        force: bool,
    ) -> Result<Item<K>> {
        let mut data = as_json(data)?;
        let name = data["metadata"]["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            return Err(Error::Invalid(
                "the object has no metadata.name: what is applied needs one".to_owned(),
            ));
        }
        let name = name.to_owned();
        // The server rejects managed fields in an apply. An object that was read has them.
        if let Some(metadata) = data["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        self.patch(&name, &Patch::apply(data, manager, force)).await
    }

    /// Patches only the status of an object.
    ///
    /// # Errors
    /// The same as [`View::patch`].
    pub async fn patch_status(&self, name: &str, patch: &Patch) -> Result<Item<K>> {
        self.patch_at(name, "/status", patch).await
    }

    async fn patch_at(&self, name: &str, sub: &str, patch: &Patch) -> Result<Item<K>> {
        let (mut view, mut body) = (self.clone(), patch.body.clone());
        if patch.kind == PatchKind::Apply {
            (view, body) = self.prepare(&body, Some(name))?;
        }
        let path = format!("{}{sub}", view.object_path(name)?);
        let mut call = Call::new(Method::PATCH, path)
            .queries(patch.query(&self.writing))
            .json(&body)?;
        call.content_type = patch.kind.media_type();
        view.written(&call).await
    }

    async fn written(&self, call: &Call) -> Result<Item<K>> {
        let body = self.cluster().bytes(call).await?;
        self.item(&body, &call.name())
    }
}

/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::{DeleteOptions, Patch};
/// use serde_json::json;
///
/// # let pods = cluster.pods().in_namespace("default")?;
/// # let containers = json!([{"name": "main", "image": "busybox"}]);
/// # let web = json!({"metadata": {"name": "web"}, "spec": {"containers": containers}});
/// # pods.create(&web).await?;
/// let first = pods.fetch("web").await?;
/// let labels = json!({"metadata": {"labels": {"app": "web"}}});
/// let second = first.patch(&Patch::merge(labels)).await?;
/// let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
/// let third = second.patch_status(&Patch::merge(status)).await?;
/// assert!(third.holds("Ready")?);
///
/// // A snapshot does not change.
/// assert!(!second.holds("Ready")? && first.labels().is_empty());
/// assert_eq!(first.fetch().await?, third);
/// assert_ne!(first, third);
///
/// // A watch can start at its version.
/// let mut changes = second.watch().await?;
/// let change = changes.next(None).await?;
/// assert_eq!(change.item(), Some(&third));
///
/// // Only this version is replaced.
/// let mut data = third.raw()?;
/// data["metadata"]["labels"]["app"] = "shop".into();
/// let fourth = third.replace(&data).await?;
/// assert_eq!(fourth.labels().get("app"), Some("shop"));
/// data["metadata"]["resourceVersion"] = "".into();
/// assert!(third.replace(&data).await.unwrap_err().is_conflict());
///
/// third.delete(&DeleteOptions::default()).await?;
/// assert!(third.fetch().await.is_err_and(|error| error.is_not_found()));
/// # Ok(()) });
/// ```
impl<K: Object> Item<K> {
    /// Patches the object and returns the new version.
    ///
    /// # Errors
    /// The server rejects the request.
    pub async fn patch(&self, patch: &Patch) -> Result<Self> {
        self.view().patch(self.name(), patch).await
    }

    /// Replaces the object, if it still has this version, and returns the new version. With
    /// `metadata.resourceVersion` in the data, it must have that version.
    ///
    /// # Errors
    /// [`Error::is_conflict`] if the object has changed since; [`Error::Invalid`] for the data of
    /// another object, before any request.
    pub async fn replace<Form>(&self, data: &impl Data<K, Form>) -> Result<Self> {
        let mut data = as_json(data)?;
        if !data["metadata"].is_object() {
            data["metadata"] = Value::Object(Map::new());
        }
        let metadata = &mut data["metadata"];
        if metadata["resourceVersion"]
            .as_str()
            .is_none_or(str::is_empty)
        {
            metadata["resourceVersion"] = self.version().into();
        }
        // If the object was created again with the same name, the UID differs.
        if metadata["uid"].as_str().is_none_or(str::is_empty) {
            metadata["uid"] = self.uid().into();
        }
        self.view().put(self.name(), "", &data).await
    }

    /// Patches the status of the object and returns the new version.
    ///
    /// # Errors
    /// The server rejects the request.
    pub async fn patch_status(&self, patch: &Patch) -> Result<Self> {
        self.view().patch_status(self.name(), patch).await
    }
}
