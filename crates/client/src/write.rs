//! Views: how to make, change and delete objects.

use http::Method;
use longshore_model::PatchKind;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    error::{Error, Result},
    item::Item,
    kinds::Kind,
    options::{DeleteOptions, Patch},
    transport::Call,
    view::View,
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
/// // By now the data are of an old version.
/// assert!(maps.replace("a", &object).await.unwrap_err().is_conflict());
///
/// let patched = maps.patch("a", &Patch::merge(json!({"data": {"colour": null}}))).await?;
/// assert!(patched.data()?.is_empty());
/// let wanted = json!({"metadata": {"name": "b"}, "data": {"shape": "round"}});
/// maps.apply(&wanted, "painter", false).await?;
/// // A strict view does not let a slip of the pen pass.
/// let wrong = json!({"metadata": {"name": "c"}, "date": {}});
/// assert_eq!(maps.create(&wrong).await.unwrap_err().code(), Some(400));
///
/// maps.delete("a", &DeleteOptions::default()).await?;
/// maps.delete_all(&DeleteOptions::background()).await?;
/// assert!(maps.list().await?.items.is_empty());
/// # Ok(()) });
/// ```
impl<K: Kind> View<K> {
    /// What is written through this view is checked and answered as if it
    /// were, but nothing is kept.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let maps = cluster.configmaps().in_namespace("default")?;
    /// let data = serde_json::json!({"metadata": {"name": "a"}, "data": {"x": "1"}});
    /// maps.clone().dry_run().create(&data).await?;
    /// assert!(maps.find("a").await?.is_none());
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.writing.dry_run = true;
        self
    }

    /// What is written through this view is recorded under the manager's name
    /// in `managedFields`; without it, under the user agent's.
    #[must_use]
    pub fn field_manager(mut self, name: &str) -> Self {
        self.writing.manager = Some(name.to_owned());
        self
    }

    /// Fields that the server does not know, and fields named twice, are
    /// refused, where they would be dropped.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.writing.strict = true;
        self
    }

    /// Makes an object. `apiVersion` and `kind` may be left out; a namespaced
    /// kind needs the view's namespace or the data's.
    ///
    /// # Errors
    /// [`Error::is_already_exists`]; [`Error::Namespace`] when both
    /// namespaces are there and differ, or none is; [`Error::Invalid`] for
    /// data of another kind, before any request.
    pub async fn create(&self, data: &impl Serialize) -> Result<Item<K>> {
        let (view, data) = self.prepare(data, None)?;
        let call = Call::new(Method::POST, view.collection_path())
            .queries(self.writing.query())
            .json(&data)?;
        view.written(&call).await
    }

    /// Replaces an object. With `metadata.resourceVersion` in the data, only
    /// that version.
    ///
    /// # Errors
    /// [`Error::is_conflict`] when the object has changed since, else as
    /// [`View::create`].
    pub async fn replace(&self, name: &str, data: &impl Serialize) -> Result<Item<K>> {
        self.put(name, "", data).await
    }

    /// Replaces an object's status and nothing else.
    ///
    /// # Errors
    /// As [`View::replace`].
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
    pub async fn replace_status(&self, name: &str, data: &impl Serialize) -> Result<Item<K>> {
        self.put(name, "/status", data).await
    }

    async fn put(&self, name: &str, sub: &str, data: &impl Serialize) -> Result<Item<K>> {
        let (view, data) = self.prepare(data, Some(name))?;
        let path = format!("{}{sub}", view.object_path(name)?);
        let call = Call::new(Method::PUT, path)
            .queries(self.writing.query())
            .json(&data)?;
        view.written(&call).await
    }

    /// Changes an object; with [`Patch::apply`], makes it when it is absent.
    ///
    /// # Errors
    /// As the server refuses; [`Error::is_conflict`] names the fields and
    /// their managers.
    pub async fn patch(&self, name: &str, patch: &Patch) -> Result<Item<K>> {
        self.patch_at(name, "", patch).await
    }

    /// Applies an object, server-side: as [`Patch::apply`], under the name in the
    /// data.
    ///
    /// # Errors
    /// As [`View::patch`]; [`Error::Invalid`] for data without a name, before
    /// any request.
    pub async fn apply(&self, data: &Value, manager: &str, force: bool) -> Result<Item<K>> {
        let name = data["metadata"]["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            return Err(Error::Invalid(
                "the object has no metadata.name: what is applied needs one".to_owned(),
            ));
        }
        self.patch(name, &Patch::apply(data.clone(), manager, force))
            .await
    }

    /// Changes an object's status and nothing else.
    ///
    /// # Errors
    /// As [`View::patch`].
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

    /// Changes an object as a function says: reads it, lets `change` change it,
    /// and replaces that version; when somebody else was faster, again, from
    /// the newer version.
    ///
    /// # Errors
    /// As `change`, [`View::fetch`] and [`View::replace`]; a conflict after
    /// [`Timing::retries`](crate::Timing::retries) tries.
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// let maps = cluster.configmaps().in_namespace("default")?;
    /// # maps.create(&serde_json::json!({"metadata": {"name": "counter"}})).await?;
    /// let counter = maps
    ///     .update("counter", |object| {
    ///         let count = object["data"]["count"].as_str().and_then(|count| count.parse().ok());
    ///         object["data"]["count"] = (count.unwrap_or(0) + 1).to_string().into();
    ///         Ok(())
    ///     })
    ///     .await?;
    /// assert_eq!(counter.data()?["count"], "1");
    /// # Ok(()) });
    /// ```
    pub async fn update(
        &self,
        name: &str,
        mut change: impl FnMut(&mut Value) -> Result<()> + Send,
    ) -> Result<Item<K>> {
        let timing = self.cluster().transport.timing();
        let mut attempt = 0;
        loop {
            let mut object = self.fetch(name).await?.raw()?;
            change(&mut object)?;
            match self.replace(name, &object).await {
                Err(error) if error.is_conflict() && attempt < timing.retries => {
                    tokio::time::sleep(timing.backoff().wait(attempt) / 10).await;
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn written(&self, call: &Call) -> Result<Item<K>> {
        let body = self.cluster().bytes(call).await?;
        self.item(&body, &call.name())
    }

    /// Deletes an object. That it is gone already is no error, nor that a
    /// namespace is on its way already.
    ///
    /// # Errors
    /// [`Error::is_conflict`] when the options ask for another uid or
    /// version.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<()> {
        let options_sent = options.body(&self.writing);
        let call = Call::new(Method::DELETE, self.object_path(name)?).json(&options_sent)?;
        match self.cluster().bytes(&call).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) if error.is_conflict() && self.may_be_terminating(options) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn may_be_terminating(&self, options: &DeleteOptions) -> bool {
        let gvk = &self.kind().gvk;
        let conditional = options.uid.is_some() || options.version.is_some();
        gvk.group.is_empty() && gvk.kind == "Namespace" && !conditional
    }

    /// Deletes every object of the view.
    ///
    /// # Errors
    /// [`Error::Namespace`] for a namespaced kind without a namespace: the
    /// API deletes in one namespace at a time.
    pub async fn delete_all(&self, options: &DeleteOptions) -> Result<()> {
        if self.kind().is_namespaced() && self.namespace().is_none() {
            return Err(self.needs_namespace());
        }
        let mut call = self.selection();
        call.method = Method::DELETE;
        self.cluster()
            .bytes(&call.json(&options.body(&self.writing))?)
            .await
            .map(|_| ())
    }

    fn needs_namespace(&self) -> Error {
        Error::Namespace(format!(
            "{} need a namespace: name one in the data, or take the view with in_namespace()",
            self.kind().plural
        ))
    }

    /// The data as it is to be sent, and the view in its namespace.
    fn prepare(&self, data: &impl Serialize, name: Option<&str>) -> Result<(Self, Value)> {
        let info = self.kind();
        let mut data = serde_json::to_value(data).map_err(|error| {
            Error::Invalid(format!("the data cannot be written as JSON: {error}"))
        })?;
        let Value::Object(object) = &mut data else {
            return Err(Error::Invalid(format!(
                "a {} must be a JSON object",
                info.gvk.kind
            )));
        };
        fill(object, "apiVersion", &info.api_version())?;
        fill(object, "kind", &info.gvk.kind)?;
        let metadata = object
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
        }
        let Value::Object(metadata) = metadata else {
            return Err(Error::Invalid("metadata must be a JSON object".to_owned()));
        };
        if let Some(name) = name {
            fill(metadata, "name", name)?;
        }
        let own = metadata
            .get("namespace")
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty());
        let view = match (own, self.namespace()) {
            (Some(own), Some(of_view)) if own != of_view => {
                return Err(Error::Namespace(format!(
                    "the data's namespace {own:?} contradicts {of_view:?}: leave one out"
                )));
            }
            (Some(own), None) => self.clone().in_namespace(own)?,
            (None, None) if info.is_namespaced() => return Err(self.needs_namespace()),
            _ => self.clone(),
        };
        if let Some(namespace) = view.namespace() {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        Ok((view, data))
    }
}

/// Fills a text in where it is absent; another one there is refused.
fn fill(object: &mut Map<String, Value>, key: &str, text: &str) -> Result<()> {
    match object.get(key) {
        None | Some(Value::Null) => {
            object.insert(key.to_owned(), text.into());
            Ok(())
        }
        Some(Value::String(there)) if there == text => Ok(()),
        Some(other) => Err(Error::Invalid(format!(
            "the data's {key} is {other}, but {text:?} is meant"
        ))),
    }
}
