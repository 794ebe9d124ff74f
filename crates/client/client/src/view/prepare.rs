//! The options of writes, and the data as they are sent.

use serde::Serialize;
use serde_json::{Map, Value};

use super::View;
use crate::{
    error::{Error, Result},
    kind::Object,
};

impl<K: Object> View<K> {
    /// Makes all writes of the view dry runs: the server checks them and returns the
    /// result, but stores nothing.
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

    /// Records the writes of the view under this manager in `managedFields`. The default is
    /// the user agent.
    #[must_use]
    pub fn field_manager(mut self, name: &str) -> Self {
        self.writing.manager = Some(name.to_owned());
        self
    }

    /// Rejects fields that the server does not know, and duplicate fields. By default, the
    /// server drops them.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.writing.strict = true;
        self
    }

    pub(super) fn needs_namespace(&self) -> Error {
        Error::Namespace(format!(
            "{} need a namespace: name one in the data, or take the view with in_namespace()",
            self.kind().plural
        ))
    }

    /// Returns the data as they are sent, and the view with their namespace.
    pub(super) fn prepare(
        &self,
        data: &impl Serialize,
        name: Option<&str>,
    ) -> Result<(Self, Value)> {
        self.check_selectors()?;
        let info = self.kind();
        let mut data = as_json(data)?;
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
                    "the namespace {own:?} in the object contradicts {of_view:?}: omit one of them"
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

pub(super) fn as_json(data: &impl Serialize) -> Result<Value> {
    serde_json::to_value(data)
        .map_err(|error| Error::Invalid(format!("the data cannot be written as JSON: {error}")))
}

/// Sets a text if it is absent. Another value is an error.
fn fill(object: &mut Map<String, Value>, key: &str, text: &str) -> Result<()> {
    match object.get(key) {
        None | Some(Value::Null) => {
            object.insert(key.to_owned(), text.into());
            Ok(())
        }
        Some(Value::String(there)) if there == text => Ok(()),
        Some(other) => Err(Error::Invalid(format!(
            "{key}: expected {text:?}, found {other}"
        ))),
    }
}
