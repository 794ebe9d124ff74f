//! Removes the outputs of runs that are removed: before their objects, so that a run whose removal
//! is interrupted is still listed, and can be removed.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use longshore::launcher::{
    Run, RunSummary,
    run_outputs::{self, OutputsPlace},
    runs,
};

use crate::{
    claim_reader::{self, PodTemplate},
    error::{Error, Kind, Result},
    progress::Spinner,
    target::Target,
    ui,
};

/// The time that the tasks of an active run have to end: their grace period, and an upload.
const END_TIMEOUT: Duration = Duration::from_secs(90);

/// Runs whose outputs will be removed.
pub(super) struct RemovedOutputs {
    /// Namespaces and names.
    runs: BTreeSet<(String, String)>,
    /// The runs whose tasks upload outputs or write them to a claim.
    elsewhere: Vec<(Run, PodTemplate, OutputsPlace)>,
    /// The number of bytes that were freed.
    freed: u64,
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
            freed: 0,
        }
    }

    /// Removes the outputs in stores and claims, before the objects of the runs. Without `force`, a
    /// failure is an error.
    pub(super) async fn remove_elsewhere(&mut self, target: &Target, force: bool) -> Result<()> {
        let cluster = target.cluster();
        for (run, template, place) in &self.elsewhere {
            let name = &run.name;
            self.freed = self.freed.saturating_add({
                end_uploads(target, run).await?;
                let open = async |claim| claim_reader::open(cluster, run, template, claim).await;
                match place.remove(run, open).await {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        let message = format!(
                            "the outputs of {name} were not removed from outputs/{}/{name}: {error}",
                            run.namespace
                        );
                        if !force {
                            let hint = format!(
                                "the run is kept; try again, or remove it without them: `longshore rm {name} --force`"
                            );
                            return Err(Error::new(Kind::Failed, message).hint(hint));
                        }
                        ui::warning(message);
                        0
                    }
                }
            });
        }
        Ok(())
    }

    /// Removes the outputs that this machine's cluster keeps, including outputs of tasks that end
    /// because their run is removed.
    pub(super) async fn remove_local(&mut self, target: &Target) {
        let Some(local) = target.outputs() else {
            return;
        };
        let outputs = local.outputs;
        let folder = outputs.root().to_owned();
        let runs = self.runs.clone();
        let work = tokio::task::spawn_blocking(move || {
            let mut freed: u64 = 0;
            for (namespace, run) in &runs {
                freed = freed.saturating_add(outputs.remove(namespace, run)?);
            }
            Ok::<_, longshore::launcher::outputs::OutputsError>(freed)
        });
        match work.await {
            Ok(Ok(freed)) => self.freed = self.freed.saturating_add(freed),
            Err(_) => {}
            Ok(Err(error)) => ui::warning(format!(
                "the outputs of the runs were not removed from {}: {error}; \
                 the cluster removes them after a day",
                folder.display()
            )),
        }
    }

    /// The number of bytes that were freed.
    pub(super) fn freed(&self) -> u64 {
        self.freed
    }
}

/// Reports the freed bytes.
pub(super) fn report(freed: u64) {
    if freed > 0 {
        ui::note(format!("Freed {} of outputs.", ui::size(freed)));
    }
}

/// Ends the tasks of a run, and waits until they have uploaded their outputs. Otherwise they would
/// upload them after the removal.
async fn end_uploads(target: &Target, run: &Run) -> Result<()> {
    let cluster = target.cluster();
    if runs::wait_for_pods(cluster, run, Duration::ZERO).await? {
        return Ok(());
    }
    runs::cancel(cluster, run, Timestamp::now()).await?;
    let spinner = Spinner::start("waiting for the end of the tasks");
    let ended = runs::wait_for_pods(cluster, run, END_TIMEOUT).await;
    spinner.end();
    if !ended? {
        ui::warning(format!(
            "tasks of {} have not ended within {} s, and may upload outputs later",
            run.name,
            END_TIMEOUT.as_secs()
        ));
    }
    Ok(())
}
