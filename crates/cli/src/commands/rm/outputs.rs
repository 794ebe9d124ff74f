//! Removes the outputs of removed runs.

use std::collections::BTreeSet;

use longshore::launcher::{Run, RunSummary, run_outputs};

use crate::{target::Target, ui};

/// Runs whose outputs will be removed.
pub(super) struct RemovedOutputs {
    /// Namespaces and names.
    runs: BTreeSet<(String, String)>,
    /// The runs whose tasks upload outputs to a store, with the store.
    stored: Vec<(Run, String)>,
}

impl RemovedOutputs {
    /// The chosen runs, and the runs of chosen schedules.
    pub(super) async fn of(target: &Target, all: &[RunSummary], chosen: &[&RunSummary]) -> Self {
        let mut stored = Vec::new();
        if target.outputs().is_none() {
            for run in chosen {
                // Without the permission to read, or with an invalid annotation, there is no store.
                let stores = run_outputs::stores(target.cluster(), &run.run).await;
                let stores = stores.unwrap_or_default().into_iter();
                stored.extend(stores.map(|store| (run.run.clone(), store)));
            }
        }
        let is_chosen = |run: &&RunSummary| {
            chosen.iter().any(|removed| {
                let is_of_schedule = run.run.schedule.as_ref() == Some(&removed.run.name);
                removed.run.namespace == run.run.namespace
                    && (removed.run.name == run.run.name || is_of_schedule)
            })
        };
        let runs = all.iter().filter(is_chosen);
        Self {
            runs: runs
                .map(|run| (run.run.namespace.clone(), run.run.name.to_string()))
                .collect(),
            stored,
        }
    }

    /// Removes them, as far as the client is permitted to.
    pub(super) async fn remove(self, target: &Target) {
        let mut freed: u64 = 0;
        for (run, store) in &self.stored {
            match run_outputs::remove_stored(store, run).await {
                Ok(bytes) => freed = freed.saturating_add(bytes),
                Err(error) => ui::warning(format!(
                    "the outputs of {} were not removed from {store}/outputs/{}/{}: {error}",
                    run.name, run.namespace, run.name
                )),
            }
        }
        if freed > 0 {
            ui::note(format!("Freed {} of outputs.", ui::size(freed)));
        }
        let Some(local) = target.outputs() else {
            return;
        };
        let outputs = local.outputs;
        let folder = outputs.root().to_owned();
        let work = tokio::task::spawn_blocking(move || {
            let mut freed: u64 = 0;
            for (namespace, run) in &self.runs {
                freed = freed.saturating_add(outputs.remove(namespace, run)?);
            }
            Ok::<_, longshore::launcher::outputs::OutputsError>(freed)
        });
        match work.await {
            Ok(Ok(0)) | Err(_) => {}
            Ok(Ok(freed)) => ui::note(format!("Freed {} of outputs.", ui::size(freed))),
            Ok(Err(error)) => ui::warning(format!(
                "the outputs of the runs were not removed from {}: {error}; \
                 the cluster removes them after a day",
                folder.display()
            )),
        }
    }
}
