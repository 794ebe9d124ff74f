//! Fetches the ConfigMaps, Secrets and ClusterTrustBundles that a pod refers to, and watches the
//! objects that its volumes contain.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use k8s_openapi::api::core::v1::{Container, Pod};
use longshore_client::{Cluster, Error, FieldSelector, Object, View};
use serde::Deserialize;
use tokio::task::JoinSet;

use crate::{
    lookup::{Lookup, TrustBundle},
    volumes,
};

/// The fetched objects of a pod's namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    config_maps: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    secrets: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
    trust_bundles: Vec<TrustBundle>,
}

impl Lookup for Sources {
    fn config_map(&self, name: &str) -> Option<&BTreeMap<String, Vec<u8>>> {
        self.config_maps.get(name)
    }

    fn secret(&self, name: &str) -> Option<&BTreeMap<String, Vec<u8>>> {
        self.secrets.get(name)
    }

    fn trust_bundles(&self) -> &[TrustBundle] {
        &self.trust_bundles
    }
}

/// Names of ConfigMaps and Secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct References {
    pub(crate) config_maps: BTreeSet<String>,
    pub(crate) secrets: BTreeSet<String>,
    /// True if ClusterTrustBundles are needed.
    pub(crate) trust_bundles: bool,
}

impl Sources {
    /// Adds a ConfigMap that was not fetched.
    pub(crate) fn add_config_map(&mut self, name: &str, values: BTreeMap<String, Vec<u8>>) {
        self.config_maps.entry(name.to_owned()).or_insert(values);
    }
}

impl References {
    /// Returns the references of the pod's volumes.
    pub(crate) fn of_volumes(pod: &Pod) -> Self {
        let (config_maps, secrets) = volumes::references(pod);
        Self {
            config_maps: config_maps.into_iter().collect(),
            secrets: secrets.into_iter().collect(),
            trust_bundles: volumes::contain_trust_bundles(pod),
        }
    }

    /// Returns the references of a container's environment.
    pub(crate) fn of_environment(container: &Container) -> Self {
        let mut all = Self::default();
        for source in container.env_from.iter().flatten() {
            all.config_maps
                .extend(source.config_map_ref.iter().map(|from| from.name.clone()));
            all.secrets
                .extend(source.secret_ref.iter().map(|from| from.name.clone()));
        }
        for source in container
            .env
            .iter()
            .flatten()
            .filter_map(|var| var.value_from.as_ref())
        {
            all.config_maps.extend(
                source
                    .config_map_key_ref
                    .iter()
                    .map(|from| from.name.clone()),
            );
            all.secrets
                .extend(source.secret_key_ref.iter().map(|from| from.name.clone()));
        }
        all
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.config_maps.is_empty() && self.secrets.is_empty() && !self.trust_bundles
    }
}

/// `data` and `binaryData` of either kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Data {
    data: Option<BTreeMap<String, String>>,
    binary_data: Option<BTreeMap<String, String>>,
}

/// A ClusterTrustBundle as the API returns it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Bundle {
    spec: BundleSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BundleSpec {
    signer_name: Option<String>,
    trust_bundle: String,
}

/// Fetches `references`. Objects that do not exist are omitted.
pub(crate) async fn fetch(
    cluster: &Cluster,
    namespace: &str,
    references: &References,
) -> Result<Sources, Error> {
    let mut sources = Sources::default();
    let view = cluster.configmaps();
    for name in &references.config_maps {
        if let Some(Data { data, binary_data }) = data(&view, namespace, name).await? {
            let plain = data
                .into_iter()
                .flatten()
                .map(|(key, text)| (key, text.into_bytes()));
            let values = plain.chain(decode(binary_data)).collect();
            sources.config_maps.insert(name.clone(), values);
        }
    }
    let view = cluster.secrets();
    for name in &references.secrets {
        if let Some(Data { data, .. }) = data(&view, namespace, name).await? {
            sources.secrets.insert(name.clone(), decode(data).collect());
        }
    }
    if references.trust_bundles {
        for item in cluster.clustertrustbundles().list().await?.items {
            let bundle: Bundle = item.typed()?;
            sources.trust_bundles.push(TrustBundle {
                name: item.name().to_owned(),
                signer: bundle.spec.signer_name.unwrap_or_default(),
                labels: item.meta().labels.clone(),
                pem: bundle.spec.trust_bundle,
            });
        }
    }
    Ok(sources)
}

/// The delay before watches start. Most pods have ended by then and need none.
const FOLLOW_AFTER: Duration = Duration::from_secs(2);
const FOLLOW_AGAIN: Duration = Duration::from_secs(10);

/// Calls `changed` when one of `references` may have changed. Starts after a
/// delay.
pub(crate) async fn follow(
    cluster: Cluster,
    namespace: String,
    references: References,
    changed: impl Fn() -> bool + Clone + Send + 'static,
) {
    tokio::time::sleep(FOLLOW_AFTER).await;
    let mut watches = JoinSet::new();
    for name in references.config_maps {
        if let Ok(view) = named(cluster.configmaps(), &namespace, name) {
            watches.spawn(follow_view(view, changed.clone()));
        }
    }
    for name in references.secrets {
        if let Ok(view) = named(cluster.secrets(), &namespace, name) {
            watches.spawn(follow_view(view, changed.clone()));
        }
    }
    if references.trust_bundles {
        watches.spawn(follow_view(cluster.clustertrustbundles(), changed));
    }
    while watches.join_next().await.is_some() {}
}

/// Selects one object.
fn named<K: Object>(view: View<K>, namespace: &str, name: String) -> Result<View<K>, Error> {
    let name = FieldSelector::everything().with("metadata.name", name);
    Ok(view.in_namespace(namespace)?.fields(name))
}

async fn follow_view<K: Object>(view: View<K>, changed: impl Fn() -> bool + Send) {
    loop {
        match view.watch().await {
            // Changes before the watch are reported when it starts.
            Ok(mut watch) => while changed() && watch.next(None).await.is_ok() {},
            Err(error) => tracing::debug!(%error, "cannot watch a source of volumes"),
        }
        tokio::time::sleep(FOLLOW_AGAIN).await;
    }
}

async fn data<K: Object>(
    view: &View<K>,
    namespace: &str,
    name: &str,
) -> Result<Option<Data>, Error> {
    let item = view.clone().in_namespace(namespace)?.find(name).await?;
    item.map(|item| item.typed()).transpose()
}

fn decode(values: Option<BTreeMap<String, String>>) -> impl Iterator<Item = (String, Vec<u8>)> {
    // The API stores only valid base64.
    values
        .into_iter()
        .flatten()
        .filter_map(|(key, text)| Some((key, BASE64_STANDARD.decode(text).ok()?)))
}
