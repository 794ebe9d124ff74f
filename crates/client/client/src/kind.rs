//! The Rust types of objects, and their kinds' places in the API.

use std::{fmt::Debug, marker::PhantomData, ops::Deref, sync::Arc};

use kube_client::core::{ClusterResourceScope, NamespaceResourceScope, Resource};
use longshore_model::{
    Gvk, KindInfo,
    kind::{BUILTIN, Scope, Words},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A Rust type for objects: any type with serde's traits. It is the parameter of a
/// [`View`](crate::View) and its [`Item`](crate::Item)s.
///
/// The kind of the objects need not be known at compile time: [`Any`] is a type for every
/// kind.
pub trait Object: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static> Object for T {}

/// Objects of any kind as JSON. For kinds that are known only at run time, by discovery or
/// by an object's `apiVersion` and `kind`.
///
/// ```
/// # longshore_embedded::example(async |cluster| {
/// use longshore_client::kinds::Any;
///
/// // The name of a kind gives a view, and the view has the kind's description.
/// let info = cluster.kind("deploy").await?.kind().clone();
/// assert_eq!(info.gvk.kind, "Deployment");
///
/// // The description gives views without a request.
/// let deployments = cluster.view_of::<Any>(info).in_namespace("default")?;
/// assert_eq!(deployments.kind().api_path(), "/apis/apps/v1");
/// assert!(deployments.list().await?.items.is_empty());
/// # Ok(()) });
/// ```
pub type Any = Value;

/// A Rust type for the objects of one kind.
///
/// Every type with kube's trait [`Resource`] implements it: the types of k8s-openapi, which
/// are also in [`kinds`](crate::kinds), and those derived with kube's `CustomResource`. Any
/// other serde type implements it by naming its kind:
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
/// use longshore_client::{Kind, KindRef, k8s_openapi};
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, Clone, Serialize, Deserialize)]
/// struct Hat {
///     metadata: ObjectMeta,
///     spec: HatSpec,
/// }
///
/// #[derive(Debug, Clone, Serialize, Deserialize)]
/// struct HatSpec {
///     size: u32,
/// }
///
/// impl Kind for Hat {
///     fn info() -> KindRef {
///         KindRef::namespaced("example.com/v1", "Hat", "hats")
///     }
/// }
///
/// let hats = cluster.view::<Hat>().in_namespace("default")?;
/// let metadata = ObjectMeta { name: Some("bowler".to_owned()), ..ObjectMeta::default() };
/// let hat = hats.create(&Hat { metadata, spec: HatSpec { size: 58 } }).await?;
/// assert_eq!(hat.object()?.spec.size, 58);
/// # Ok(()) });
/// ```
#[diagnostic::on_unimplemented(
    message = "the kind of `{Self}` objects is not known",
    note = "implement `Kind` for `{Self}`, or pass the kind to `Cluster::view_of`"
)]
pub trait Kind: Object {
    /// The kind and its place in the API.
    ///
    /// ```
    /// use longshore_client::{Kind, kinds::Deployment};
    /// assert_eq!(Deployment::info().plural, "deployments");
    /// assert_eq!(Deployment::info().api_path(), "/apis/apps/v1");
    /// ```
    fn info() -> KindRef;
}

impl<T> Kind for T
where
    T: Resource<DynamicType = ()> + Object,
    T::Scope: ResourceScope,
{
    fn info() -> KindRef {
        let (group, version, kind) = (T::group(&()), T::version(&()), T::kind(&()));
        let builtin = BUILTIN.iter().find(|info| {
            info.gvk.kind == kind && info.gvk.group == group && info.gvk.version == version
        });
        match builtin {
            Some(info) => info.into(),
            None => KindRef::new(
                &T::api_version(&()),
                &kind,
                &T::plural(&()),
                T::Scope::SCOPE,
            ),
        }
    }
}

/// kube's scopes that are known at compile time.
pub trait ResourceScope {
    /// The scope as a value.
    const SCOPE: Scope;
}

impl ResourceScope for NamespaceResourceScope {
    const SCOPE: Scope = Scope::Namespaced;
}

impl ResourceScope for ClusterResourceScope {
    const SCOPE: Scope = Scope::Cluster;
}

/// A kind and its place in the API. Cheap to clone.
///
/// ```
/// use longshore_client::{BuiltinKind, KindRef};
/// let pods = KindRef::from(BuiltinKind::Pod);
/// assert_eq!(pods.collection_path(Some("shop")), "/api/v1/namespaces/shop/pods");
///
/// let hats = KindRef::namespaced("example.com/v1", "Hat", "hats");
/// assert_eq!((hats.singular.as_ref(), hats.list_kind().as_ref()), ("hat", "HatList"));
/// let racks = KindRef::cluster_scoped("example.com/v1", "Rack", "racks");
/// assert_eq!(racks.collection_path(None), "/apis/example.com/v1/racks");
/// ```
#[derive(Debug, Clone)]
pub struct KindRef(Inner);

#[derive(Debug, Clone)]
enum Inner {
    Table(&'static KindInfo),
    Own(Arc<KindInfo>),
}

impl KindRef {
    /// Creates a namespaced kind.
    #[must_use]
    pub fn namespaced(api_version: &str, kind: &str, plural: &str) -> Self {
        Self::new(api_version, kind, plural, Scope::Namespaced)
    }

    /// Creates a cluster-scoped kind.
    #[must_use]
    pub fn cluster_scoped(api_version: &str, kind: &str, plural: &str) -> Self {
        Self::new(api_version, kind, plural, Scope::Cluster)
    }

    fn new(api_version: &str, kind: &str, plural: &str, scope: Scope) -> Self {
        let info = KindInfo {
            gvk: Gvk::from_api_version(api_version, kind),
            plural: plural.to_owned().into(),
            singular: kind.to_ascii_lowercase().into(),
            short_names: Words::default(),
            categories: Words::default(),
            scope,
            subresources: Words::default(),
            list_kind: None,
        };
        info.into()
    }
}

impl Deref for KindRef {
    type Target = KindInfo;

    fn deref(&self) -> &KindInfo {
        match &self.0 {
            Inner::Table(info) => info,
            Inner::Own(info) => info,
        }
    }
}

impl From<&'static KindInfo> for KindRef {
    fn from(info: &'static KindInfo) -> Self {
        Self(Inner::Table(info))
    }
}

impl From<Arc<KindInfo>> for KindRef {
    fn from(info: Arc<KindInfo>) -> Self {
        Self(Inner::Own(info))
    }
}

impl From<KindInfo> for KindRef {
    fn from(info: KindInfo) -> Self {
        Arc::new(info).into()
    }
}

/// A [`KindRef`] with the Rust type of its objects.
#[derive(Debug)]
pub(crate) struct KindOf<T> {
    kind: KindRef,
    object: PhantomData<fn() -> T>,
}

impl<T> KindOf<T> {
    pub(crate) fn new(kind: KindRef) -> Self {
        Self {
            kind,
            object: PhantomData,
        }
    }

    /// The same kind with another Rust type.
    pub(crate) fn read_as<U>(&self) -> KindOf<U> {
        KindOf::new(self.kind.clone())
    }
}

impl<T> Clone for KindOf<T> {
    fn clone(&self) -> Self {
        self.read_as()
    }
}

impl<T> Deref for KindOf<T> {
    type Target = KindInfo;

    fn deref(&self) -> &KindInfo {
        &self.kind
    }
}

/// The data of an object that a view of `T` can write: a `T`, or JSON.
///
/// JSON may omit `apiVersion` and `kind`, and may contain fields that the type does not
/// have. The compiler rejects objects of other types:
///
/// ```compile_fail,E0277
/// # async fn create(cluster: longshore_client::Cluster) -> longshore_client::Result<()> {
/// use longshore_client::kinds::Deployment;
/// cluster.pods().in_namespace("default")?.create(&Deployment::default()).await?;
/// # Ok(())
/// # }
/// ```
///
/// `Form` is one of [`Typed`] and [`Json`]; the compiler infers it.
#[diagnostic::on_unimplemented(
    message = "a view of `{T}` objects cannot write a `{Self}`",
    label = "expected a `{T}` or a `serde_json::Value`"
)]
pub trait Data<T, Form>: Serialize {}

/// The [`Data`] of a typed object.
#[derive(Debug, Clone, Copy)]
pub enum Typed {}

/// The [`Data`] of a JSON object.
#[derive(Debug, Clone, Copy)]
pub enum Json {}

impl<T: Object> Data<T, Typed> for T {}

// Not for every `Object`: the JSON of a view of JSON would have both forms.
impl<T: Kind> Data<T, Json> for Value {}
