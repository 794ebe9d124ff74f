//! Chooses one of several contexts: the first in which the run fits now.

use std::time::Duration;

use longshore::launcher::{
    PackedRun, Workload,
    names::random_suffix,
    preflight::{self, Purpose, Report, Room},
};

use super::{
    Inputs,
    configuration::{Candidate, Configuration},
    namespace,
};
use crate::{
    error::{Error, Kind, Result},
    hints,
    show::head,
    target::Chosen,
    ui,
};

/// The timeout for the checks of a cluster.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

/// The fit of a run in a cluster.
enum Fit {
    /// The run fits now. The text contains checks that were not possible.
    Now(Box<Chosen>, Option<String>),
    /// The run may start later, for this reason.
    Later(String),
    /// The run cannot run there, for this reason.
    Never(String),
}

/// Selects the first context in which the run fits now, otherwise the first in which it may start
/// later. Prints why each context before it is skipped.
pub(super) async fn pick(
    candidates: Vec<Candidate>,
    inputs: &Inputs,
    purpose: Purpose,
) -> Result<Configuration> {
    let mut later = None;
    let mut skipped = Vec::new();
    for candidate in candidates {
        let fit = check(&candidate, inputs, purpose).await;
        let (reason, may_start) = match fit {
            Ok(Fit::Now(chosen, unchecked)) => {
                if let Some(unchecked) = unchecked {
                    let name = &candidate.name;
                    ui::note(format!(
                        "{} {name}: cannot check whether it has room now: {unchecked}",
                        head("context")
                    ));
                }
                return Ok(candidate.with(*chosen));
            }
            Ok(Fit::Later(reason)) => (reason, true),
            Ok(Fit::Never(reason)) => (reason, false),
            Err(error) => (error.message().to_owned(), false),
        };
        let reason = format!("{}: {}", candidate.name, hints::complete(&reason));
        ui::note(format!("{} skipped {reason}", head("context")));
        skipped.push(reason);
        if may_start && later.is_none() {
            later = Some(candidate);
        }
    }
    let Some(candidate) = later else {
        let message = format!("the run fits in none of {} contexts", skipped.len());
        return Err(Error::new(Kind::NotStarted, message).details(skipped));
    };
    let name = &candidate.name;
    ui::note(format!(
        "{} {name}: it may start later there",
        head("context")
    ));
    // Hints use the context that was selected last.
    let chosen = candidate.choice().await?;
    Ok(candidate.with(chosen))
}

/// Runs preflight in a context, without creating objects.
async fn check(candidate: &Candidate, inputs: &Inputs, purpose: Purpose) -> Result<Fit> {
    let checking = async {
        let chosen = candidate.choice().await?;
        let packed = PackedRun {
            spec: &candidate.spec,
            name: candidate.spec.run_name(&random_suffix()),
            namespace: namespace(&candidate.spec, &chosen),
            bundle: inputs.bundle.clone(),
            keeps_outputs: chosen.keeps_outputs(),
            data: inputs.data.clone(),
            data_root: chosen.data_root(),
            store: candidate.store.clone(),
        };
        let plan = packed.plan()?;
        let Some(cluster) = chosen.cluster() else {
            return Ok(Fit::Now(Box::new(chosen), None));
        };
        // A schedule creates its tasks later.
        let needs_room = !matches!(candidate.spec.workload, Workload::Scheduled(_));
        let room = async {
            match needs_room {
                true => preflight::room(cluster, &plan).await,
                false => Ok(Room::Free),
            }
        };
        let checked = futures::try_join!(preflight::check(cluster, &plan, purpose), room)?;
        Ok(match checked {
            (Report { refusals, .. }, _) if !refusals.is_empty() => {
                Fit::Never(preflight::listed(&refusals))
            }
            (Report { warnings, .. }, _) if !warnings.is_empty() => {
                Fit::Later(preflight::listed(&warnings))
            }
            (_, Room::Later(finding)) => Fit::Later(finding.to_string()),
            (_, Room::Unknown(why)) => Fit::Now(Box::new(chosen), Some(why)),
            (_, Room::Free) => Fit::Now(Box::new(chosen), None),
        })
    };
    match tokio::time::timeout(CHECK_TIMEOUT, checking).await {
        Ok(checked) => checked,
        Err(_) => Err(Error::new(
            Kind::Cluster,
            format!("no response within {} s", CHECK_TIMEOUT.as_secs()),
        )),
    }
}
