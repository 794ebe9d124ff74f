//! Objects of custom resources.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An object of a custom resource, with the types of its spec and status.
///
/// Types derived with kube's `CustomResource` do not need `Custom`.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// # cluster.create_manifest("
/// # apiVersion: apiextensions.k8s.io/v1
/// # kind: CustomResourceDefinition
/// # metadata: {name: hats.example.com}
/// # spec:
/// #   group: example.com
/// #   scope: Namespaced
/// #   names: {plural: hats, singular: hat, kind: Hat, listKind: HatList}
/// #   versions:
/// #   - name: v1
/// #     served: true
/// #     storage: true
/// #     schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
/// # ", None).await?;
/// use longshore_client::{Custom, KindRef};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Clone, Serialize, Deserialize)]
/// struct HatSpec {
///     size: u32,
/// }
///
/// let kind = KindRef::namespaced("example.com/v1", "Hat", "hats");
/// let hats = cluster.view_of::<Custom<HatSpec>>(kind).in_namespace("default")?;
/// hats.create(&Custom::new("bowler", HatSpec { size: 58 })).await?;
/// let larger = hats.update("bowler", |hat| {
///     hat.spec.size += 1;
///     Ok(())
/// });
/// assert_eq!(larger.await?.object()?.spec.size, 59);
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Custom<Spec, Status = Value> {
    /// The metadata.
    pub metadata: ObjectMeta,
    /// The desired state.
    pub spec: Spec,
    /// The state that the controller reports.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

impl<Spec, Status> Custom<Spec, Status> {
    /// Creates an object for `create` or `apply`.
    pub fn new(name: &str, spec: Spec) -> Self {
        Self {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            spec,
            status: None,
        }
    }
}
