//! Chooses one of several contexts: the first in which the run fits.

use std::time::Duration;

use longshore::launcher::{
    PackedRun,
    names::random_suffix,
    preflight::{self, Purpose, Report},
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

/// How long the checks of a cluster may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

/// The first context in which the run fits. If there is none, the first in which it may start later.
/// Prints why each other context before it is skipped.
pub(super) async fn pick(
    candidates: Vec<Candidate>,
    inputs: &Inputs,
    purpose: Purpose,
) -> Result<Configuration> {
    let mut later = None;
    let mut skipped = Vec::new();
    for candidate in candidates {
        let (reason, may_start) = match check(&candidate, inputs, purpose).await {
            Ok((chosen, report)) if report.refusals.is_empty() && report.warnings.is_empty() => {
                return Ok(candidate.with(chosen));
            }
            Ok((_, report)) if report.refusals.is_empty() => {
                (preflight::listed(&report.warnings), true)
            }
            Ok((_, report)) => (preflight::listed(&report.refusals), false),
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
    // The last selected context is that of hints.
    let chosen = candidate.choice().await?;
    Ok(candidate.with(chosen))
}

/// Runs preflight there, without creating anything.
async fn check(
    candidate: &Candidate,
    inputs: &Inputs,
    purpose: Purpose,
) -> Result<(Chosen, Report)> {
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
        let report = match chosen.cluster() {
            Some(cluster) => preflight::check(cluster, &plan, purpose).await?,
            None => Report::default(),
        };
        Ok((chosen, report))
    };
    match tokio::time::timeout(CHECK_TIMEOUT, checking).await {
        Ok(checked) => checked,
        Err(_) => Err(Error::new(
            Kind::Cluster,
            format!("no response within {} s", CHECK_TIMEOUT.as_secs()),
        )),
    }
}
