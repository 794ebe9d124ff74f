//! The table of a sweep.

use std::collections::BTreeMap;

use longshore_client::Cluster;
use serde_json::{Value, json};

use super::{
    SweepError,
    objects::{self, Found},
};
use crate::{
    metrics::{self, MetricSources},
    run::Run,
    sweep::{CombinationState, Row, SweepRun, combine},
};

/// The combinations of a sweep with their states and metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepTable {
    /// The first run.
    pub run: Run,
    /// The names of the runs of failed combinations, in the order of their creation.
    pub retries: Vec<String>,
    /// The names of the parameters.
    pub parameters: Vec<String>,
    /// The names of the metrics: first the metrics that are read from logs, then the metrics of
    /// files.
    pub metrics: Vec<String>,
    /// The seed, if the combinations are random samples.
    pub seed: Option<u64>,
    /// The combinations, by index.
    pub rows: Vec<Row>,
    /// The sources that could not be read, with the reasons.
    pub unread: Vec<String>,
}

impl SweepTable {
    pub(super) fn of(first: &Found, retries: &[Found]) -> Self {
        let others: Vec<SweepRun> = retries.iter().map(|found| found.rows.clone()).collect();
        let rows = combine(&first.rows, &others);
        let mut names = first.log_names();
        let mut of_files: Vec<&str> = rows
            .iter()
            .flat_map(|row| row.metrics.iter().map(|(name, _)| name))
            .filter(|name| !names.iter().any(|known| known == name))
            .collect();
        of_files.sort_unstable();
        of_files.dedup();
        let of_files: Vec<String> = of_files.into_iter().map(str::to_owned).collect();
        names.extend(of_files);
        Self {
            run: first.run.clone(),
            retries: retries
                .iter()
                .map(|found| found.run.name.to_string())
                .collect(),
            parameters: first.rows.sweep.parameters.clone(),
            metrics: names,
            seed: first.rows.sweep.seed,
            rows,
            unread: Vec::new(),
        }
    }

    /// The number of combinations in each state: `3 succeeded, 1 failed`.
    #[must_use]
    pub fn states(&self) -> String {
        let mut counts: BTreeMap<CombinationState, usize> = BTreeMap::new();
        for row in &self.rows {
            *counts.entry(row.state).or_default() += 1;
        }
        let counts = counts.iter();
        let counts: Vec<String> = counts
            .map(|(state, count)| format!("{count} {}", state.as_str()))
            .collect();
        counts.join(", ")
    }

    /// The table as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| row.to_json(&self.parameters));
        json!({
            "run": self.run.name.as_str(),
            "namespace": self.run.namespace,
            "retries": self.retries,
            "parameters": self.parameters,
            "metrics": self.metrics,
            "seed": self.seed,
            "combinations": rows.collect::<Vec<_>>(),
            "unread": self.unread,
        })
    }
}

pub(super) async fn read(
    cluster: &Cluster,
    run: &Run,
    sources: MetricSources<'_>,
) -> Result<SweepTable, SweepError> {
    let (mut first, mut retries) = objects::find(cluster, run).await?;
    let names = first.log_names();
    let mut unread = Vec::new();
    for found in std::iter::once(&mut first).chain(&mut retries) {
        let tasks = found.metric_tasks();
        let (mut values, mut problems) =
            metrics::read(cluster, &found.run, &names, &tasks, sources).await;
        if sources.logs {
            let known = (std::slice::from_ref(&found.rows.job), tasks.as_slice());
            let read = metrics::read_deleted(cluster, &found.run, known, &names, &mut values);
            problems.extend(read.await?);
        }
        found.rows.metrics = values
            .into_iter()
            .map(|(task, own)| (task.index, own))
            .collect();
        // A retry has the same problems as the first run.
        for problem in problems {
            if !unread.contains(&problem) {
                unread.push(problem);
            }
        }
    }
    let mut table = SweepTable::of(&first, &retries);
    table.unread = unread;
    Ok(table)
}
