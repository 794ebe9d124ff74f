//! Queries the cluster for more facts about a run: events, nodes, quotas. Missing
//! permissions are not errors.

use std::{future::Future, time::Duration};

use longshore_client::{Cluster, Error};

use crate::{
    evidence::EventEvidence,
    explain::Around,
    queries::{nodes, quotas, seen},
    run::Run,
};

/// What to query in addition to events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Only events of type Warning, for repeated queries.
    pub(crate) warnings: bool,
    /// The nodes.
    pub(crate) nodes: bool,
    /// The namespace's quotas.
    pub(crate) quotas: bool,
}

/// The facts, unless the query for events got no answer. Missing permission to list events
/// counts as an answer.
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

/// The facts, and what could not be read.
pub(crate) async fn ask(
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
        // A Job may be called as its run.
        let object = &event.involved_object.name;
        if object == own || object.starts_with(&prefix) {
            found.push(event);
        }
    }
    Ok(found)
}
