//! Queries the cluster for evidence about a run in addition to its pods and Jobs: events, nodes,
//! quotas. Missing permissions are not errors.

use std::{future::Future, time::Duration};

use longshore_client::{Cluster, Error};
use longshore_diagnosis::{evidence::EventEvidence, explain::ClusterEvidence};

use crate::{
    queries::{nodes, quotas, seen},
    run::Run,
};

/// The queries in addition to events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Query {
    /// True to query only events of type Warning, for repeated queries.
    pub(crate) warnings: bool,
    /// True to query the nodes.
    pub(crate) nodes: bool,
    /// True to query the namespace's quotas.
    pub(crate) quotas: bool,
}

/// The evidence, unless the query for events was not answered. Missing permission to list events
/// counts as an answer.
pub(crate) async fn answered(
    cluster: &Cluster,
    run: &Run,
    query: Query,
    limit: Duration,
) -> Option<ClusterEvidence> {
    let (events, evidence) = futures::join!(
        tokio::time::timeout(limit, events(cluster, run, query.warnings)),
        beside_events(cluster, run, query, limit),
    );
    let (mut evidence, _) = evidence;
    match events.ok()? {
        Ok(events) => evidence.events = events,
        Err(error) if error.is_forbidden() => {}
        Err(_) => return None,
    }
    Some(evidence)
}

/// The evidence, and the queries that failed.
pub(crate) async fn ask(
    cluster: &Cluster,
    run: &Run,
    query: Query,
    limit: Duration,
) -> (ClusterEvidence, Vec<String>) {
    let (events, beside) = futures::join!(
        seen("events", limit, events(cluster, run, query.warnings)),
        beside_events(cluster, run, query, limit),
    );
    let (mut evidence, unseen) = beside;
    let (events, problem) = events;
    evidence.events = events.unwrap_or_default();
    (evidence, problem.into_iter().chain(unseen).collect())
}

async fn beside_events(
    cluster: &Cluster,
    run: &Run,
    query: Query,
    limit: Duration,
) -> (ClusterEvidence, Vec<String>) {
    let (nodes, quotas) = futures::join!(
        wanted(query.nodes, seen("nodes", limit, nodes(cluster))),
        wanted(
            query.quotas,
            seen("resourcequotas", limit, quotas(cluster, &run.namespace)),
        ),
    );
    let mut unseen = Vec::new();
    let mut note = |what: Option<String>| unseen.extend(what);
    let mut evidence = ClusterEvidence::default();
    if let Some((nodes, problem)) = nodes {
        evidence.nodes = nodes;
        note(problem);
    }
    if let Some((quotas, problem)) = quotas {
        evidence.quotas = quotas;
        note(problem);
    }
    (evidence, unseen)
}

async fn wanted<T>(is_wanted: bool, question: impl Future<Output = T>) -> Option<T> {
    match is_wanted {
        true => Some(question.await),
        false => None,
    }
}

/// Events of the run's Jobs and pods, including deleted ones.
async fn events(cluster: &Cluster, run: &Run, warnings: bool) -> Result<Vec<EventEvidence>, Error> {
    let mut view = cluster.events().in_namespace(&run.namespace)?;
    if warnings {
        let warn = longshore_client::FieldSelector::everything().with("type", "Warning");
        view = view.fields(warn);
    }
    let (own, prefix) = (run.name.as_str(), format!("{}-", run.label()));
    let mut found = Vec::new();
    for item in view.list().await?.items {
        // Events that cannot be parsed are ignored.
        let Ok(event) = item.typed::<EventEvidence>() else {
            continue;
        };
        // A Job may have the same name as its run.
        let object = &event.involved_object.name;
        if object == own || object.starts_with(&prefix) {
            found.push(event);
        }
    }
    Ok(found)
}
