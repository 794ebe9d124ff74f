//! What a kind of object is to this crate, and kinds that are known at run time.

use std::sync::Arc;

use longshore_model::KindInfo;

/// A kind of object: what a [`View`](crate::View) is a view of.
///
/// ```
/// use longshore_client::{Kind, kinds::Deployment};
/// assert_eq!(Deployment.info().plural, "deployments");
/// assert_eq!(Deployment.info().api_path(), "/apis/apps/v1");
/// ```
pub trait Kind: Clone + Send + Sync + 'static {
    /// Its type and its place in the API.
    fn info(&self) -> &KindInfo;
}

/// A kind known only at run time: by discovery, or by an object's `apiVersion` and
/// `kind`.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::{Kind, kinds::Any};
/// use std::sync::Arc;
///
/// // A word of a user gives the view, and the view the kind's description.
/// let info = cluster.kind("deploy").await?.kind().clone();
/// assert_eq!(info.gvk.kind, "Deployment");
///
/// // The description gives views again, without asking the server.
/// let any = Any::new(Arc::new(info));
/// assert_eq!(any.info().api_path(), "/apis/apps/v1");
/// let deployments = cluster.view_of(any).in_namespace("default")?;
/// assert!(deployments.list().await?.items.is_empty());
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
pub struct Any(pub(crate) Arc<KindInfo>);

impl Any {
    /// A view's kind from its description.
    #[must_use]
    pub fn new(info: Arc<KindInfo>) -> Self {
        Self(info)
    }
}

impl Kind for Any {
    fn info(&self) -> &KindInfo {
        &self.0
    }
}
