//! The table of a sweep.

use std::collections::BTreeMap;

use longshore_client::Cluster;
use serde_json::{Value, json};

use super::{
    SweepError, logs, metrics,
    objects::{self, Found},
};
use crate::{
    run::Run,
    run_outputs::LocalOutputs,
    sweep::{CombinationState, Row, SweepRun, combine},
};

/// From where to read metrics.
#[derive(Debug, Clone, Copy, Default)]
pub struct MetricSources<'a> {
    /// Read them from the logs of tasks, if the sweep names metrics.
    pub logs: bool,
    /// The outputs of the cluster, if it keeps any: they have the metrics files of tasks. Otherwise
    /// these are read from the store of the run, if it has one.
    pub outputs: Option<&'a LocalOutputs>,
}

/// The combinations of a sweep with their states and metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepTable {
    /// The first run.
    pub run: Run,
    /// The names of the runs of failed combinations, in the order of their creation.
    pub retries: Vec<String>,
    /// The names of the parameters.
    pub parameters: Vec<String>,
    /// The names of the metrics: first those to read from logs, then those of files.
    pub metrics: Vec<String>,
    /// The seed, if the combinations are random samples.
    pub seed: Option<u64>,
    /// The combinations, by index.
    pub rows: Vec<Row>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
}

impl SweepTable {
    pub(super) fn of(first: &Found, retries: &[Found]) -> Self {
        let others: Vec<SweepRun> = retries.iter().map(|found| found.rows.clone()).collect();
        let rows = combine(&first.rows, &others);
        let mut names = first.rows.sweep.metrics.clone();
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
    let names = first.rows.sweep.metrics.clone();
    let mut unread = Vec::new();
    for found in std::iter::once(&mut first).chain(&mut retries) {
        if sources.logs && !names.is_empty() {
            unread.extend(logs::read(cluster, found, &names).await);
        }
        // The file is more precise than the log, so its values win.
        unread.extend(match sources.outputs {
            Some(outputs) => metrics::read(outputs, found).await,
            None => metrics::read_stored(cluster, found).await,
        });
    }
    let mut table = SweepTable::of(&first, &retries);
    table.unread = unread;
    Ok(table)
}
