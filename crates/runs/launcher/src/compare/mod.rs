//! Compares two runs: their results, metrics, options, environment and code.

mod code;
mod files;
mod metrics;
mod options;

use futures::future::BoxFuture;
use longshore_client::{Cluster, Error};
use serde::Serialize;

use crate::{
    metrics::MetricSources,
    runs::RunSummary,
    usage::{self, Detail},
};
pub use files::{FileChange, LONGEST_DIFF};
pub use metrics::{MetricChange, MetricValue};
pub use options::{Change, EnvironmentChange};

/// The differences of two runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// The names of the runs.
    pub runs: [String; 2],
    /// Different results and usage.
    pub results: Vec<Change>,
    /// The metrics of all tasks, also if they are equal.
    pub metrics: Vec<MetricChange>,
    /// Different options, labels, tags and notes.
    pub options: Vec<Change>,
    /// Environment variables that differ. Their values are secret.
    pub environment: Vec<EnvironmentChange>,
    /// True if the runs have the same code. `None` if this is unknown.
    pub same_code: Option<bool>,
    /// Files of the code that differ.
    pub files: Vec<FileChange>,
    /// The parts that could not be compared, with the reasons.
    pub unseen: Vec<String>,
}

/// Compares two runs. Parts that cannot be read are listed in [`Comparison::unseen`].
///
/// # Errors
/// The runs' Jobs or pods cannot be listed.
pub fn compare<'a>(
    cluster: &'a Cluster,
    one: &'a RunSummary,
    other: &'a RunSummary,
    sources: MetricSources<'a>,
) -> BoxFuture<'a, Result<Comparison, Error>> {
    // Boxed, so that this crate compiles the future, not each crate that awaits it.
    Box::pin(query(cluster, [one, other], sources))
}

async fn query(
    cluster: &Cluster,
    runs: [&RunSummary; 2],
    sources: MetricSources<'_>,
) -> Result<Comparison, Error> {
    let mut comparison = Comparison {
        runs: runs.map(|run| run.run.name.to_string()),
        ..Comparison::default()
    };
    let mut found = Vec::new();
    for summary in runs {
        let usage = usage::of_run(cluster, &summary.run, Detail::Ended).await?;
        let measured = crate::metrics::of_run(cluster, &summary.run, sources).await?;
        // Metrics are only a part of the comparison, so their errors do not fail it.
        let unread = measured.unread.iter();
        let unread = unread.filter(|problem| *problem != crate::metrics::NOT_KEPT);
        let unread = unread.map(|problem| format!("metrics of {}: {problem}", summary.run.name));
        comparison.unseen.extend(unread);
        let jobs = summary.run.jobs(cluster)?.list().await?.items;
        let mut of_run = Vec::new();
        for job in jobs.iter().filter(|job| summary.run.has(job.meta())) {
            of_run.push(job.object()?);
        }
        let config = code::config(cluster, &summary.run).await;
        if let Err(problem) = &config {
            let name = &summary.run.name;
            comparison
                .unseen
                .push(format!("the environment and the code of {name}: {problem}"));
        }
        found.push((
            options::results(summary, &usage.tasks),
            options::options(summary, &of_run),
            config.ok(),
            measured,
        ));
    }
    let [one, other] = &found[..] else {
        return Ok(comparison);
    };
    comparison.results = options::changes(&one.0, &other.0);
    comparison.metrics = metrics::metrics(&one.3, &other.3);
    comparison.options = options::changes(&one.1, &other.1);
    if let (Some(one), Some(other)) = (&one.2, &other.2) {
        comparison.environment = options::environment(one, other);
    }
    let bundles = runs.map(|run| run.bundle.as_deref());
    comparison.same_code = match bundles {
        [Some(one), Some(other)] => Some(one == other),
        [None, None] => Some(true),
        _ => None,
    };
    if let ([Some(_), Some(_)], Some(false)) = (bundles, comparison.same_code) {
        let mut folders = Vec::new();
        for (summary, (_, _, config, _)) in runs.iter().zip(&found) {
            match code::unpacked(cluster, summary, config.as_ref()).await {
                Ok(folder) => folders.push(folder),
                Err(problem) => comparison
                    .unseen
                    .push(format!("the code of {}: {problem}", summary.run.name)),
            }
        }
        if let [one, other] = &folders[..] {
            match files::compare(one.path(), other.path()) {
                Ok(files) => comparison.files = files,
                Err(error) => comparison.unseen.push(format!("the code: {error}")),
            }
        }
    }
    Ok(comparison)
}
