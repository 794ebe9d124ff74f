//! Discovers the kinds that the cluster serves. The result is cached. It is requested when a
//! kind is neither built in nor cached.

mod responses;

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use longshore_model::{Gvk, KindInfo, kind};
use serde_json::Value;

use crate::{
    error::{Error, Result},
    locks::Mutex,
    transport::{Call, JSON, Transport},
};
use responses::{Aggregated, CoreVersions, Group, Groups, Resources, ServedKind};

/// The remedy for a kind that the cluster does not serve.
const LIST_HINT: &str = "`kubectl api-resources` lists the available kinds";
/// The maximum size of a response in bytes, a thousand times the usual size. Several are read at
/// once.
const MAX_BYTES: usize = 32 << 20;
const EMPTY_KIND: &str = "the kind is empty: give a name such as \"pods\", or \"v1\" and \"Pod\"";

/// The kinds of a cluster, once they have been discovered. Each version of a kind is an
/// entry, the preferred one first.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    kinds: Mutex<Option<Arc<Vec<ServedKind>>>>,
    /// Held during discovery requests, so that concurrent callers share them.
    refresh: tokio::sync::Mutex<()>,
}

impl Discovery {
    /// Returns the kind with a singular, plural or short name, with an optional group.
    ///
    /// # Errors
    /// [`Error::Invalid`]: the name is empty, or the cluster does not serve the kind. Those
    /// of discovery requests.
    pub(crate) async fn by_name(&self, transport: &Transport, name: &str) -> Result<Arc<KindInfo>> {
        if name.trim().is_empty() {
            return Err(Error::Invalid(EMPTY_KIND.to_owned()));
        }
        if let Some(info) = kind::by_name(name) {
            return Ok(Arc::new(info.clone()));
        }
        self.find(transport, |served| served.has_name(name))
            .await?
            .ok_or_else(|| {
                Error::Invalid(format!(
                    "the cluster at {} has no kind {name:?}: {LIST_HINT}",
                    transport.url()
                ))
            })
    }

    /// Returns the kind with this group, version and name.
    ///
    /// # Errors
    /// The same as [`Discovery::by_name`].
    pub(crate) async fn by_gvk(&self, transport: &Transport, gvk: &Gvk) -> Result<Arc<KindInfo>> {
        if gvk.kind.trim().is_empty() || gvk.version.trim().is_empty() {
            return Err(Error::Invalid(EMPTY_KIND.to_owned()));
        }
        let found = self
            .find(transport, |served| served.info.gvk == *gvk)
            .await?;
        if let Some(info) = found {
            return Ok(info);
        }
        let known = self.kinds.lock().clone().unwrap_or_default();
        let of_name = known.iter().map(|served| &served.info);
        let of_name = of_name.filter(|info| info.gvk.kind == gvk.kind);
        let (own, others): (Vec<_>, Vec<_>) = of_name.partition(|info| is_same(info, gvk));
        // A wrong group is more likely than another kind of the same name.
        let served = if own.is_empty() { others } else { own };
        let served: Vec<String> = served.iter().map(|info| info.api_version()).collect();
        let remedy = match &served[..] {
            [] => LIST_HINT.to_owned(),
            served => format!("it serves the kind in {}", served.join(", ")),
        };
        Err(missing(transport, gvk, &remedy))
    }

    /// Returns a kind in each version that the cluster serves, the preferred one first.
    ///
    /// # Errors
    /// The same as [`Discovery::by_name`].
    pub(crate) async fn versions(
        &self,
        transport: &Transport,
        gvk: &Gvk,
    ) -> Result<Vec<Arc<KindInfo>>> {
        let any = self.find(transport, |served| is_same(&served.info, gvk));
        match any.await? {
            Some(_) => Ok(self.cached_versions(gvk)),
            None => Err(missing(transport, gvk, LIST_HINT)),
        }
    }

    fn cached_versions(&self, gvk: &Gvk) -> Vec<Arc<KindInfo>> {
        let kinds = self.kinds.lock().clone().unwrap_or_default();
        let infos = kinds.iter().map(|served| &served.info);
        infos.filter(|info| is_same(info, gvk)).cloned().collect()
    }

    /// Returns the kind of a resource in its preferred version, `None` if the cluster does
    /// not serve it.
    pub(crate) async fn by_resource(
        &self,
        transport: &Transport,
        group: &str,
        plural: &str,
    ) -> Result<Option<Arc<KindInfo>>> {
        self.find(transport, |served| {
            served.info.gvk.group == group && served.info.plural == plural
        })
        .await
    }

    /// Searches the cached kinds. If the kind is not found, discovers all kinds again, since
    /// it may have been added to the cluster in the meantime.
    async fn find(
        &self,
        transport: &Transport,
        matches: impl Fn(&ServedKind) -> bool,
    ) -> Result<Option<Arc<KindInfo>>> {
        let search = |kinds: &[ServedKind]| {
            kinds
                .iter()
                .find(|served| matches(served))
                .map(|served| served.info.clone())
        };
        let before = self.kinds.lock().clone();
        if let Some(found) = before.as_deref().and_then(|kinds| search(kinds)) {
            return Ok(Some(found));
        }
        let _guard = self.refresh.lock().await;
        let current = self.kinds.lock().clone();
        let refreshed = match (&before, &current) {
            (Some(before), Some(current)) => !Arc::ptr_eq(before, current),
            (None, current) => current.is_some(),
            (Some(_), None) => false,
        };
        if refreshed {
            return Ok(current.as_deref().and_then(|kinds| search(kinds)));
        }
        let kinds = Arc::new(discover(transport).await?);
        *self.kinds.lock() = Some(kinds.clone());
        Ok(search(&kinds))
    }
}

/// Returns true if two kinds differ at most in their version.
fn is_same(info: &KindInfo, gvk: &Gvk) -> bool {
    info.gvk.group == gvk.group && info.gvk.kind == gvk.kind
}

fn missing(transport: &Transport, gvk: &Gvk, remedy: &str) -> Error {
    let url = transport.url();
    Error::Invalid(format!("the cluster at {url} has no kind {gvk}: {remedy}"))
}

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

async fn discover(transport: &Transport) -> Result<Vec<ServedKind>> {
    let (core, groups) = futures::try_join!(root(transport, "/api"), root(transport, "/apis"))?;
    Ok(core.into_iter().chain(groups).collect())
}

/// The number of concurrent requests for group versions.
const CONCURRENCY: usize = 8;

/// Discovers the kinds below `/api` or `/apis`. Sends one request if the server supports
/// aggregated discovery, else one more for each group version.
async fn root(transport: &Transport, path: &str) -> Result<Vec<ServedKind>> {
    let value = read(transport, path, AGGREGATED).await?;
    if value["kind"] == "APIGroupDiscoveryList" {
        return parse::<Aggregated>(path, value).map(Aggregated::kinds);
    }
    let versions: Vec<String> = if path == "/api" {
        parse::<CoreVersions>(path, value)?
            .versions
            .into_iter()
            .take(1)
            .collect()
    } else {
        let groups = parse::<Groups>(path, value)?.groups;
        groups.into_iter().flat_map(Group::versions).collect()
    };
    let requests = versions.into_iter().map(|version| {
        let path = format!("{path}/{version}");
        group_version(transport.clone(), path, version)
    });
    let kinds: Vec<Vec<ServedKind>> = stream::iter(requests)
        .buffered(CONCURRENCY)
        .try_collect()
        .await?;
    Ok(kinds.into_iter().flatten().collect())
}

async fn group_version(
    transport: Transport,
    path: String,
    version: String,
) -> Result<Vec<ServedKind>> {
    match read(&transport, &path, JSON).await {
        Ok(value) => Ok(parse::<Resources>(&path, value)?.kinds(&version)),
        // An aggregated API server that is unavailable must not hide the other groups.
        Err(error) if error.code().is_some() => {
            tracing::warn!(%error, "cannot discover the kinds of a group version");
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

async fn read(transport: &Transport, path: &str, accept: &'static str) -> Result<Value> {
    let mut call = Call::get(path);
    call.accept = accept;
    call.max_bytes = MAX_BYTES;
    transport.json(&call).await
}

fn parse<T: serde::de::DeserializeOwned>(path: &str, value: Value) -> Result<T> {
    serde_json::from_value(value)
        .map_err(|error| Error::decode(format!("the response to GET {path}"), error))
}
