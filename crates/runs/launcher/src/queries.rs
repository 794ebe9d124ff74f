//! Optional queries to the cluster, which may fail, for example without permission.

use std::{future::Future, time::Duration};

use longshore_client::{Cluster, Error, FieldSelector, Item, kinds::Secret};
use longshore_diagnosis::{evidence::QuotaEvidence, fit::Nodes};
use longshore_model::facts::NodeFacts;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The page size. Further nodes of larger clusters are not listed.
const NODES: &str = "500";

/// The result, or the reason why there is none.
pub(crate) async fn seen<T>(
    what: &str,
    limit: Duration,
    question: impl Future<Output = Result<T, Error>>,
) -> (Option<T>, Option<String>) {
    match tokio::time::timeout(limit, question).await {
        Ok(Ok(answer)) => (Some(answer), None),
        Ok(Err(error)) if error.is_forbidden() => {
            (None, Some(format!("{what}: no permission to list them")))
        }
        Ok(Err(error)) => (None, Some(format!("{what}: {error}"))),
        Err(_) => (
            None,
            Some(format!("{what}: no answer within {} s", limit.as_secs())),
        ),
    }
}

/// The Secret of this name. Lists it if the permission to get it is missing.
pub(crate) async fn secret(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<Item<Secret>>, Error> {
    let secrets = cluster.secrets().in_namespace(namespace)?;
    match secrets.find(name).await {
        Err(error) if error.is_forbidden() => {
            let named = FieldSelector::everything().with("metadata.name", name);
            let listed = secrets.fields(named).list().await?;
            Ok(listed.items.into_iter().next())
        }
        found => found,
    }
}

/// The nodes, in one page.
pub(crate) async fn nodes(cluster: &Cluster) -> Result<Nodes, Error> {
    let answer = cluster
        .proxy()
        .get("/api/v1/nodes", &[("limit", NODES)])
        .await?;
    let more = answer["metadata"]["continue"]
        .as_str()
        .is_some_and(|next| !next.is_empty());
    Ok(Nodes {
        seen: items::<NodeFacts>(answer),
        more,
    })
}

/// The namespace's quotas.
pub(crate) async fn quotas(
    cluster: &Cluster,
    namespace: &str,
) -> Result<Vec<QuotaEvidence>, Error> {
    let path = format!("/api/v1/namespaces/{namespace}/resourcequotas");
    Ok(items(cluster.proxy().get(&path, &[]).await?))
}

/// The items of a list. Items that cannot be parsed are left out.
pub(crate) fn items<T: DeserializeOwned>(mut list: Value) -> Vec<T> {
    let Value::Array(items) = list["items"].take() else {
        return Vec::new();
    };
    let read = |item| serde_json::from_value(item).ok();
    items.into_iter().filter_map(read).collect()
}
