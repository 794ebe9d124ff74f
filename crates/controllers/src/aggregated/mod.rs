//! The kinds that aggregated API servers serve: those of APIServices with a Service.

mod read;

use std::collections::BTreeSet;

use longshore_client::{Cache, Cluster, Error, kinds::Any};
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

/// The versions that aggregated API servers serve.
pub(crate) fn versions(services: Option<&Cache<Any>>) -> BTreeSet<GroupVersion> {
    let services = services.map(Cache::snapshot);
    let services = services.iter().flat_map(|services| services.iter());
    let specs = services.filter_map(|service| service.field::<Value>(&["spec"]).ok()?);
    specs
        .filter_map(|spec| read::group_version(&spec))
        .collect()
}

/// Discovers the kinds of aggregated API servers. Sends no request if there are none.
///
/// # Errors
/// The API server itself does not respond.
pub(crate) async fn discover(
    cluster: &Cluster,
    services: Option<&Cache<Any>>,
) -> Result<Aggregated, Error> {
    let versions = versions(services);
    if versions.is_empty() {
        return Ok(Aggregated::default());
    }
    let document = cluster.proxy().get_as("/apis", ACCEPT).await?;
    Ok(read::aggregated(&document, &versions))
}
