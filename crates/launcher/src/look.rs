//! Asks the cluster what else it knows about a run: events, nodes, quotas.
//! What may not be seen is no error.

use std::{future::Future, time::Duration};

use longshore_client::{Cluster, Error};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    evidence::{EventEvidence, NodeEvidence, QuotaEvidence},
    explain::Around,
    fit::Nodes,
    runs::Run,
};

/// Larger clusters are seen in part.
const NODES: &str = "500";

/// What to ask for beside events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Only events that warn: for questions that are asked again and again.
    pub(crate) warnings: bool,
    /// The nodes.
    pub(crate) nodes: bool,
    /// The namespace's quotas.
    pub(crate) quotas: bool,
}

/// What there is to know, if events could be seen or may not be: an answer that
/// did not come says nothing.
pub(crate) async fn answered(
    cluster: &Cluster,
    run: &Run,
    look: Look,
    limit: Duration,
) -> Option<Around> {
    let (events, around) = futures::join!(
        tokio::time::timeout(limit, events(cluster, run, look.warnings)),
        beside_events(cluster, run, look, limit),
    );
    let (mut around, _) = around;
    match events.ok()? {
        Ok(events) => around.events = events,
        Err(error) if error.is_forbidden() => {}
        Err(_) => return None,
    }
    Some(around)
}

/// What there is to know, and what could not be seen.
pub(crate) async fn around(
    cluster: &Cluster,
    run: &Run,
    look: Look,
    limit: Duration,
) -> (Around, Vec<String>) {
    let (events, beside) = futures::join!(
        seen("events", limit, events(cluster, run, look.warnings)),
        beside_events(cluster, run, look, limit),
    );
    let (mut around, unseen) = beside;
    let (events, problem) = events;
    around.events = events.unwrap_or_default();
    (around, problem.into_iter().chain(unseen).collect())
}

async fn beside_events(
    cluster: &Cluster,
    run: &Run,
    look: Look,
    limit: Duration,
) -> (Around, Vec<String>) {
    let (nodes, quotas) = futures::join!(
        wanted(look.nodes, seen("nodes", limit, nodes(cluster))),
        wanted(
            look.quotas,
            seen("resourcequotas", limit, quotas(cluster, &run.namespace)),
        ),
    );
    let mut unseen = Vec::new();
    let mut note = |what: Option<String>| unseen.extend(what);
    let mut around = Around::default();
    if let Some((nodes, problem)) = nodes {
        around.nodes = nodes;
        note(problem);
    }
    if let Some((quotas, problem)) = quotas {
        around.quotas = quotas;
        note(problem);
    }
    (around, unseen)
}

async fn wanted<T>(is_wanted: bool, question: impl Future<Output = T>) -> Option<T> {
    match is_wanted {
        true => Some(question.await),
        false => None,
    }
}

/// An answer, or in words why there is none.
pub(crate) async fn seen<T>(
    what: &str,
    limit: Duration,
    question: impl Future<Output = Result<T, Error>>,
) -> (Option<T>, Option<String>) {
    match tokio::time::timeout(limit, question).await {
        Ok(Ok(answer)) => (Some(answer), None),
        Ok(Err(error)) if error.is_forbidden() => (
            None,
            Some(format!("{what}: the right to list them is missing")),
        ),
        Ok(Err(error)) => (None, Some(format!("{what}: {error}"))),
        Err(_) => (
            None,
            Some(format!("{what}: no answer within {} s", limit.as_secs())),
        ),
    }
}

/// Events of the run's Jobs and pods, also of those that are no more.
async fn events(cluster: &Cluster, run: &Run, warnings: bool) -> Result<Vec<EventEvidence>, Error> {
    let mut view = cluster.events().in_namespace(&run.namespace)?;
    if warnings {
        let warn = longshore_client::FieldSelector::everything().with("type", "Warning");
        view = view.fields(warn);
    }
    let (own, prefix) = (run.name.as_str(), format!("{}-", run.label()));
    let mut found = Vec::new();
    for item in view.list().await?.items {
        // What cannot be read says nothing about the run.
        let Ok(event) = item.typed::<EventEvidence>() else {
            continue;
        };
        // A Job may be called as its run.
        let object = &event.involved_object.name;
        if object == own || object.starts_with(&prefix) {
            found.push(event);
        }
    }
    Ok(found)
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
        seen: items::<NodeEvidence>(answer),
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

/// The items of a list, without those that cannot be read.
pub(crate) fn items<T: DeserializeOwned>(mut list: Value) -> Vec<T> {
    let Value::Array(items) = list["items"].take() else {
        return Vec::new();
    };
    let read = |item| serde_json::from_value(item).ok();
    items.into_iter().filter_map(read).collect()
}
