//! The kinds that aggregated API servers serve. Such a server is an APIService with a Service.

mod read;

use std::collections::BTreeSet;

use longshore_client::{Cache, Cluster, Error, Item, kinds::Any};
use serde_json::Value;

pub(crate) use self::read::{Aggregated, AggregatedKind};
use crate::caches::Caches;

const ACCEPT: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// A group and a version.
pub(crate) type GroupVersion = (String, String);

/// The APIServices.
pub(crate) fn services(caches: &Caches) -> Option<&Cache<Any>> {
    let (_, services) = caches.of("apiregistration.k8s.io", "APIService")?;
    Some(services)
}

/// Returns the version that an APIService registers if an aggregated API server serves it.
pub(crate) fn version(service: &Item<Any>) -> Option<GroupVersion> {
    let spec = service.field::<Value>(&["spec"]).ok()??;
    read::group_version(&spec)
}

/// The versions that aggregated API servers serve.
pub(crate) fn versions(caches: &Caches) -> BTreeSet<GroupVersion> {
    let services = services(caches).map(Cache::snapshot);
    let services = services.iter().flat_map(|services| services.iter());
    services.filter_map(|service| version(&service)).collect()
}

/// Discovers the kinds of aggregated API servers in some versions. Sends no request if there
/// are none.
///
/// # Errors
/// The API server itself does not respond.
pub(crate) async fn discover(
    cluster: &Cluster,
    versions: &BTreeSet<GroupVersion>,
) -> Result<Aggregated, Error> {
    if versions.is_empty() {
        return Ok(Aggregated::default());
    }
    let document = cluster.proxy().get_as("/apis", ACCEPT).await?;
    Ok(read::aggregated(&document, versions))
}
