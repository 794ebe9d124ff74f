//! Queries the cluster for everything that preflight checks, concurrently.

use std::{collections::BTreeSet, time::Duration};

use longshore_client::k8s_openapi::api::core::v1::Pod;
use longshore_client::{Cluster, Error};
use serde_json::Value;

use super::{
    Addon, ClusterState, NamespaceState, Needs, Presence, Purpose, addons, admission,
    references::{Found, Reference, What},
    rights::{self, Right},
    server,
};
use crate::{owner::Owner, queries};

/// The timeout for optional queries.
const LIMIT: Duration = Duration::from_secs(3);

/// # Errors
/// The namespace cannot be read for a reason other than a missing permission, so the cluster does
/// not answer. All other queries are optional.
pub(super) async fn ask(
    cluster: &Cluster,
    needs: &Needs,
    pods: &[(String, Pod)],
    purpose: Purpose,
) -> Result<ClusterState, Error> {
    let namespace = needs.namespace.as_str();
    let references = needs.references.iter().map(async |reference| {
        let question = find(cluster, namespace, reference);
        let found = tokio::time::timeout(LIMIT, question).await;
        (reference.clone(), found.unwrap_or(Found::Unseen))
    });
    let addons = needs.addons.iter().map(async |addon: &Addon| {
        let asked = addons::ask(cluster, namespace, addon);
        let found = tokio::time::timeout(LIMIT, asked).await;
        (addon.clone(), found.unwrap_or(Presence::Unseen))
    });
    let ranges = format!("/api/v1/namespaces/{namespace}/limitranges");
    let ranges = async { Ok(queries::items(cluster.proxy().get(&ranges, &[]).await?)) };
    let others = async {
        let (version, lacks, quotas, ranges, nodes, refused, references, addons) = futures::join!(
            queries::seen("version", LIMIT, server::version(cluster)),
            tokio::time::timeout(LIMIT, lacks(cluster, needs, purpose)),
            queries::seen("resourcequotas", LIMIT, queries::quotas(cluster, namespace)),
            queries::seen("limitranges", LIMIT, ranges),
            queries::seen("nodes", LIMIT, queries::nodes(cluster)),
            tokio::time::timeout(LIMIT, admission::ask(cluster, namespace, pods)),
            futures::future::join_all(references),
            futures::future::join_all(addons),
        );
        let lacks = lacks.unwrap_or_default();
        let user = match lacks.is_empty() {
            true => None,
            false => {
                let asked = tokio::time::timeout(LIMIT, Owner::current(cluster));
                asked.await.ok().and_then(Result::ok)
            }
        };
        Ok(ClusterState {
            version: version.0.flatten(),
            namespace: NamespaceState::Unseen,
            lacks,
            user,
            quotas: quotas.0,
            limit_ranges: ranges.0,
            nodes: nodes.0,
            references: references.into_iter().collect(),
            addons,
            refused: refused.unwrap_or_default(),
        })
    };
    // An unreachable cluster is reported as soon as one query fails.
    let (namespace, others) = futures::try_join!(state(cluster, namespace), others)?;
    Ok(ClusterState {
        namespace,
        ..others
    })
}

async fn state(cluster: &Cluster, namespace: &str) -> Result<NamespaceState, Error> {
    match cluster.namespaces().find(namespace).await {
        Ok(None) => Ok(NamespaceState::Missing),
        Ok(Some(found)) if found.meta().deletion_timestamp.is_some() => Ok(NamespaceState::Ends),
        Ok(Some(_)) => Ok(NamespaceState::There),
        // The permission to create Jobs in a namespace does not include reading it.
        Err(error) if error.is_forbidden() => Ok(NamespaceState::Unseen),
        Err(error) => Err(error),
    }
}

/// The missing permissions. Empty if the server does not report them.
async fn lacks(cluster: &Cluster, needs: &Needs, purpose: Purpose) -> Vec<Right> {
    let namespace = needs.namespace.as_str();
    // Users of their own cluster usually have all permissions, so that one query replaces a dozen.
    if Right::EVERYTHING.is_given(cluster, namespace).await != Some(false) {
        return Vec::new();
    }
    let rights = rights::needed(needs, purpose);
    let answers = rights.into_iter().map(async |right| {
        let allowed = right.is_given(cluster, namespace).await;
        (allowed == Some(false)).then_some(right)
    });
    let answers = futures::future::join_all(answers).await;
    let mut lacks: Vec<Right> = answers.into_iter().flatten().collect();
    if lacks.contains(&Right::LIST_SECRETS)
        && Right::GET_SECRETS.is_given(cluster, namespace).await == Some(true)
    {
        lacks.retain(|right| *right != Right::LIST_SECRETS);
    }
    lacks
}

async fn find(cluster: &Cluster, namespace: &str, reference: &Reference) -> Found {
    let path = reference.what.path(namespace, &reference.name);
    match cluster.proxy().get(&path, &[]).await {
        Ok(object) => Found::There(keys(&object)),
        Err(error) if error.is_not_found() && is_object_missing(&error, reference) => {
            Found::Missing
        }
        Err(_) => Found::Unseen,
    }
}

/// Returns true if the object is missing, and not its kind.
fn is_object_missing(error: &Error, reference: &Reference) -> bool {
    let cluster_wide = matches!(reference.what, What::PriorityClass | What::RuntimeClass);
    let details = error.status().and_then(|status| status.details.as_ref());
    !cluster_wide || details.is_some_and(|details| details.name == reference.name)
}

/// The keys of a Secret or ConfigMap. The values are dropped.
fn keys(object: &Value) -> BTreeSet<String> {
    let maps = ["data", "binaryData"].map(|field| object[field].as_object());
    let keys = maps.into_iter().flatten().flat_map(|map| map.keys());
    keys.cloned().collect()
}
