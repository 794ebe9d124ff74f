//! Checks a plan in the cluster, and submits it.

use std::time::Duration;

use longshore::{
    client::Cluster,
    launcher::{
        Plan, Run,
        preflight::{self, Finding, Purpose},
        runs, submit,
    },
};

use crate::{
    error::{Error, Kind, Result},
    hints,
    interrupt::Interrupt,
    ui,
};

/// The time to wait for a pending submission after an interrupt.
const SUBMISSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs preflight and rejects a plan with problems.
pub(in super::super) async fn check(
    cluster: &Cluster,
    plan: &Plan,
    purpose: Purpose,
) -> Result<()> {
    let report = preflight::check(cluster, plan, purpose).await?;
    for warning in &report.warnings {
        ui::warning(hints::complete(&warning.to_string()));
    }
    refuse(&report.refusals)
}

/// Submits the plan. After Ctrl-C, its objects are removed.
pub(in super::super) async fn start(
    cluster: &Cluster,
    plan: &Plan,
    interrupt: &mut Interrupt,
) -> Result<Run> {
    let submission = async {
        let submitted = submit::submit(cluster, plan).await;
        submitted.map_err(|error| not_started(&error, plan))
    };
    let mut submission = std::pin::pin!(submission);
    match interrupt.unless(&mut submission).await {
        Ok(result) => result,
        Err(error) => {
            // A pending request cannot be cancelled: let it complete, and remove the created
            // objects.
            if let Ok(Ok(run)) = tokio::time::timeout(SUBMISSION_TIMEOUT, submission).await {
                runs::remove(cluster, &run).await?;
            }
            Err(error)
        }
    }
}

/// Reports all problems in one error.
pub(in super::super) fn refuse(findings: &[Finding]) -> Result<()> {
    match findings {
        [] => Ok(()),
        [one] => {
            let error = Error::new(Kind::NotStarted, &one.problem);
            Err(match &one.manifest {
                None => error.hint(&one.remedy),
                Some(manifest) => error
                    .details(manifest.lines().map(str::to_owned))
                    .hint(format!("{}: send the manifest above", one.remedy)),
            })
        }
        several => {
            let message = format!("{} problems block the run", several.len());
            let lines = several.iter().map(Finding::to_string);
            let manifest = several.iter().find_map(|finding| finding.manifest.as_ref());
            let manifest = manifest.into_iter().flat_map(|manifest| manifest.lines());
            let lines = lines.chain(manifest.map(str::to_owned));
            Err(Error::new(Kind::NotStarted, message).details(lines))
        }
    }
}

fn not_started(error: &submit::SubmitError, plan: &Plan) -> Error {
    match error
        .cluster_error()
        .map(|cause| Error::from(cause.clone()))
    {
        // An unreachable cluster has its own exit code.
        Some(cause) if cause.kind() == Kind::Cluster => cause.hint(format!(
            "a part of the run {run} may have been created: if `longshore runs` lists it when the cluster answers again, `longshore rm {run}` removes it",
            run = plan.run
        )),
        _ => Error::from_source(Kind::NotStarted, error),
    }
}
