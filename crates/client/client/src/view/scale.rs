//! The number of replicas: the `scale` subresource.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::View;
use crate::{error::Result, item::Item, kind::Object, transport::Call};

/// The desired and the current number of replicas of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// The desired number.
    pub wanted: u32,
    /// The number that the controller last observed.
    pub observed: u32,
    /// The label selector of the pods in text form; empty if the kind has none.
    pub selector: String,
    /// The resource version of the object.
    pub version: String,
}

#[derive(Deserialize)]
struct Raw {
    metadata: RawMeta,
    #[serde(default)]
    spec: RawSpec,
    #[serde(default)]
    status: RawStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMeta {
    #[serde(default)]
    resource_version: String,
}

#[derive(Deserialize, Default)]
struct RawSpec {
    #[serde(default)]
    replicas: u32,
}

#[derive(Deserialize, Default)]
struct RawStatus {
    #[serde(default)]
    replicas: u32,
    #[serde(default)]
    selector: String,
}

impl<K: Object> View<K> {
    /// Reads the desired and the current number of replicas of an object.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) if the object does not exist or its kind
    /// has no replicas.
    pub async fn scale(&self, name: &str) -> Result<Scale> {
        self.scaled(&Call::get(self.scale_path(name)?)).await
    }

    /// Sets the desired number of replicas. Does not wait until they exist; use
    /// [`View::wait`] for that.
    ///
    /// # Errors
    /// The same as [`View::scale`].
    ///
    /// ```
    /// # longshore_embedded::example(async |cluster| {
    /// # use serde_json::json;
    /// # let labels = json!({"app": "web"});
    /// # let pod = json!({"containers": [{"name": "main", "image": "busybox"}]});
    /// # let template = json!({"metadata": {"labels": labels}, "spec": pod});
    /// # let spec = json!({"selector": {"matchLabels": labels}, "template": template});
    /// let web = cluster.deployments().in_namespace("default")?;
    /// # web.create(&json!({"metadata": {"name": "web"}, "spec": spec})).await?;
    /// assert_eq!(web.set_scale("web", 3).await?.wanted, 3);
    ///
    /// let scale = web.scale("web").await?;
    /// // The controller has not observed the change yet.
    /// assert_eq!((scale.wanted, scale.observed), (3, 0));
    /// assert_eq!(scale.selector, "app=web");
    ///
    /// let item = web.fetch("web").await?;
    /// assert_eq!(item.version(), scale.version);
    /// item.set_scale(0).await?;
    /// assert_eq!(item.scale().await?.wanted, 0);
    /// # Ok(()) });
    /// ```
    pub async fn set_scale(&self, name: &str, replicas: u32) -> Result<Scale> {
        let mut call = Call::new(Method::PATCH, self.scale_path(name)?)
            .queries(self.writing.query())
            .json(&json!({"spec": {"replicas": replicas}}))?;
        call.content_type = longshore_model::PatchKind::Merge.media_type();
        self.scaled(&call).await
    }

    fn scale_path(&self, name: &str) -> Result<String> {
        Ok(format!("{}/scale", self.object_path(name)?))
    }

    async fn scaled(&self, call: &Call) -> Result<Scale> {
        let raw: Raw = self.cluster().json(call).await?;
        Ok(Scale {
            wanted: raw.spec.replicas,
            observed: raw.status.replicas,
            selector: raw.status.selector,
            version: raw.metadata.resource_version,
        })
    }
}

impl<K: Object> Item<K> {
    /// Like [`View::scale`], for this object. Requests the current scale.
    ///
    /// # Errors
    /// The same as [`View::scale`].
    pub async fn scale(&self) -> Result<Scale> {
        self.view().scale(self.name()).await
    }

    /// Like [`View::set_scale`], for this object.
    ///
    /// # Errors
    /// The same as [`View::scale`].
    pub async fn set_scale(&self, replicas: u32) -> Result<Scale> {
        self.view().set_scale(self.name(), replicas).await
    }
}
