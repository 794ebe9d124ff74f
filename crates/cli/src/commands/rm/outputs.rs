//! Removes the outputs of removed runs.

use std::collections::BTreeSet;

use longshore::launcher::{
    Run, RunSummary,
    run_outputs::{self, OutputsPlace},
};

use crate::{
    claim_reader::{self, PodTemplate},
    target::Target,
    ui,
};

/// Runs whose outputs will be removed.
pub(super) struct RemovedOutputs {
    /// Namespaces and names.
    runs: BTreeSet<(String, String)>,
    /// The runs whose tasks upload outputs or write them to a claim.
    elsewhere: Vec<(Run, PodTemplate, OutputsPlace)>,
}

impl RemovedOutputs {
    /// The chosen runs, and the runs of chosen schedules.
    pub(super) async fn of(target: &Target, all: &[RunSummary], chosen: &[&RunSummary]) -> Self {
        let is_chosen = |run: &&RunSummary| {
            chosen.iter().any(|removed| {
                let is_of_schedule = run.run.schedule.as_ref() == Some(&removed.run.name);
                removed.run.namespace == run.run.namespace
                    && (removed.run.name == run.run.name || is_of_schedule)
            })
        };
        let mut elsewhere = Vec::new();
        if target.outputs().is_none() {
            for run in all.iter().filter(is_chosen) {
                let (cluster, run) = (target.cluster(), &run.run);
                let places = match run_outputs::places(cluster, run).await {
                    Ok(places) => places,
                    Err(error) => {
                        ui::warning(format!(
                            "whether {} has outputs in a store or claim is not known: {error}; \
                             they are in outputs/{}/{}",
                            run.name, run.namespace, run.name
                        ));
                        continue;
                    }
                };
                for place in places {
                    let template = PodTemplate::of(cluster, run).await;
                    elsewhere.push((run.clone(), template.unwrap_or_default(), place));
                }
            }
        }
        let runs = all.iter().filter(is_chosen);
        Self {
            runs: runs
                .map(|run| (run.run.namespace.clone(), run.run.name.to_string()))
                .collect(),
            elsewhere,
        }
    }

    /// Removes them, as far as the client is permitted to.
    pub(super) async fn remove(self, target: &Target) {
        let mut freed: u64 = 0;
        for (run, template, place) in &self.elsewhere {
            let open =
                async |claim| claim_reader::open(target.cluster(), run, template, claim).await;
            match place.remove(run, open).await {
                Ok(bytes) => freed = freed.saturating_add(bytes),
                Err(error) => ui::warning(format!(
                    "the outputs of {} were not removed from outputs/{}/{}: {error}",
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
