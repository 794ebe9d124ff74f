//! Notifiers that do not work, for `why` and `runs`: their webhooks cannot report it.

use std::collections::{BTreeMap, BTreeSet};

use longshore_client::{
    Cluster, Error, FieldSelector, LabelSelector, View,
    kinds::{Job, Pod},
};
use longshore_diagnosis::{
    evidence::JobEvidence,
    explain::{self, ClusterEvidence},
    names,
};
use longshore_model::{ObjectMeta, facts::PodFacts};

use crate::run::Run;

/// The prefix of the names of notifiers' Jobs.
const PREFIX: &str = "notify-";

/// Explains why the webhook of a run is not called, if something prevents it. Notifiers that may
/// not be read count as working.
///
/// # Errors
/// The cluster does not answer.
pub async fn trouble(cluster: &Cluster, run: &Run) -> Result<Option<String>, Error> {
    let selector = LabelSelector::exactly([(names::NOTIFIES, run.label())])?;
    let mut found = find(cluster, Some(&run.namespace), &selector, |name| {
        name == run.name.as_str()
    })
    .await?;
    Ok(found.remove(&(run.namespace.clone(), run.name.to_string())))
}

/// Like [`trouble`], but for all runs, by namespace and name.
///
/// # Errors
/// The cluster does not answer.
pub async fn troubles(
    cluster: &Cluster,
    namespace: Option<&str>,
) -> Result<BTreeMap<(String, String), String>, Error> {
    let selector: LabelSelector = names::NOTIFIES.parse()?;
    find(cluster, namespace, &selector, |_| true).await
}

async fn find(
    cluster: &Cluster,
    namespace: Option<&str>,
    selector: &LabelSelector,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<BTreeMap<(String, String), String>, Error> {
    let mut jobs: View<Job> = cluster.jobs().labels(selector.clone());
    let mut pods: View<Pod> = cluster.pods().labels(selector.clone());
    let mut events = cluster
        .events()
        .fields(FieldSelector::everything().with("type", "Warning"));
    if let Some(namespace) = namespace {
        jobs = jobs.in_namespace(namespace)?;
        pods = pods.in_namespace(namespace)?;
        events = events.in_namespace(namespace)?;
    }
    let mut unfinished = Vec::new();
    for job in crate::runs::if_allowed(jobs.list().await)? {
        let job: JobEvidence = job.typed()?;
        let run = job.metadata.name.strip_prefix(PREFIX);
        if run.is_some_and(&is_wanted) && !job.is_complete() {
            unfinished.push(job);
        }
    }
    if unfinished.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (pods, events) = futures::join!(pods.list(), events.list());
    let pods = crate::runs::if_allowed(pods)?;
    let pods: Vec<PodFacts> = pods
        .iter()
        .map(longshore_client::Item::typed)
        .collect::<Result<_, _>>()?;
    let uids: BTreeSet<&str> = pods
        .iter()
        .map(|pod| &pod.metadata)
        .chain(unfinished.iter().map(|job| &job.metadata))
        .map(|meta| meta.uid.as_str())
        .collect();
    let events = crate::runs::if_allowed(events)?;
    let evidence = ClusterEvidence {
        // Events that cannot be parsed are ignored.
        events: events
            .iter()
            .filter_map(|event| event.typed().ok())
            .filter(|event: &longshore_diagnosis::evidence::EventEvidence| {
                uids.contains(event.involved_object.uid())
            })
            .collect(),
        ..ClusterEvidence::default()
    };
    let found = unfinished.iter().filter_map(|job| {
        let own: Vec<PodFacts> = pods
            .iter()
            .filter(|pod| is_of(&pod.metadata, job))
            .cloned()
            .collect();
        let found = explain::notifier(job, &own, &evidence)?;
        let name = &job.metadata.name;
        let run = name.strip_prefix(PREFIX).unwrap_or(name);
        let text = format!(
            "its webhook is not called ({name}): {}; {}",
            found.cause, found.remedy
        );
        let key = (job.metadata.namespace().to_owned(), run.to_owned());
        Some((key, text))
    });
    Ok(found.collect())
}

fn is_of(pod: &ObjectMeta, job: &JobEvidence) -> bool {
    pod.namespace() == job.metadata.namespace()
        && pod.controller_name("Job") == Some(&job.metadata.name)
}
