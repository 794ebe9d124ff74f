//! The kind of workload in the cluster for the roles: Jobs, a JobSet, or CronJobs.

use longshore_model::schedule;

use super::{ConfigError, Flags, RoleSpec, Settings, Text, layers::Layers, values::invalid_at};
use crate::store::Store;

/// The kind of workload in the cluster for the roles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Workload {
    /// A Job for each role.
    #[default]
    Jobs,
    /// A JobSet, which creates the Jobs of all roles. It stops service roles when the others have
    /// succeeded, and all roles when one has failed, even if no client follows the run.
    JobSet,
    /// A CronJob for each role, which creates Jobs on a schedule.
    Scheduled(Schedule),
}

/// The schedule of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The schedule in cron syntax: `0 3 * * *`.
    pub cron: String,
    /// The time zone of `cron`. Defaults to the cluster's time zone.
    pub time_zone: Option<String>,
    /// `Forbid`, `Allow` or `Replace`: the policy for a run that is due while the previous one is
    /// still active.
    pub concurrency_policy: String,
}

/// The concurrency policies of Kubernetes. The first is the default here, because
/// concurrent runs would write to the same files.
const POLICIES: [&str; 3] = ["Forbid", "Allow", "Replace"];

pub(super) fn resolve(
    settings: &Settings,
    flags: &Flags,
    roles: &[RoleSpec],
    store: Option<&Store>,
) -> Result<Workload, ConfigError> {
    let options = Layers([&settings.run, &flags.run]);
    let jobsets = [flags.run.jobset, settings.run.jobset];
    let jobset = jobsets.into_iter().find(|jobset| **jobset);
    let zone = options.value(|run| &run.time_zone);
    let policy = options.value(|run| &run.concurrency_policy);
    let Some(cron) = options.value(|run| &run.cron) else {
        for (what, value) in [("time_zone", zone), ("concurrency_policy", policy)] {
            if let Some(value) = value {
                let rule = "it applies only to schedules: set `cron`, too, or remove it";
                return Err(invalid_at(what, value, rule));
            }
        }
        return Ok(match jobset {
            Some(_) => Workload::JobSet,
            None => Workload::Jobs,
        });
    };
    if let Some(jobset) = jobset {
        let rule = "a schedule creates one Job per role: remove `cron` or `jobset`";
        return Err(invalid_at("jobset", &jobset, rule));
    }
    check_cron(cron, roles.len())?;
    check_scheduled_roles(settings, roles)?;
    if let (Some(Store::Remote(store)), Some(url)) = (store, options.value(|run| &run.store)) {
        let rule = "pods fetch the code from a signed URL that expires within days, and a schedule runs for longer: put the code into the image (`--no-code`), or use a folder that the nodes share (file://)";
        return Err(invalid_at("store", &url.replaced(store), rule));
    }
    if let Some(zone) = zone.filter(|zone| schedule::time_zone(zone).is_none()) {
        let rule = "use a name of the time zone database, such as Europe/Berlin or UTC";
        return Err(invalid_at("time_zone", zone, rule));
    }
    let policy = policy.cloned().unwrap_or_else(|| POLICIES[0].into());
    if !POLICIES.contains(&policy.as_str()) {
        let rule = format!("use one of {}", POLICIES.join(", "));
        return Err(invalid_at("concurrency_policy", &policy, rule));
    }
    Ok(Workload::Scheduled(Schedule {
        cron: cron.to_string(),
        time_zone: zone.map(|zone| zone.to_string()),
        concurrency_policy: policy.into_inner(),
    }))
}

fn check_cron(cron: &Text, roles: usize) -> Result<(), ConfigError> {
    if let Err(error) = cron.parse::<schedule::Schedule>() {
        let rule = format!("{error}; write minute, hour, day, month and weekday, as in 0 3 * * *");
        return Err(invalid_at("cron", cron, rule));
    }
    if cron.contains("TZ=") {
        let rule = "give the time zone as `time_zone`";
        return Err(invalid_at("cron", cron, rule));
    }
    if cron.starts_with("@every") && roles > 1 {
        let rule = "it counts from the creation of each role's CronJob, so the roles would not start together: use minutes and hours";
        return Err(invalid_at("cron", cron, rule));
    }
    Ok(())
}

fn check_scheduled_roles(settings: &Settings, roles: &[RoleSpec]) -> Result<(), ConfigError> {
    let Some(role) = roles.iter().find(|role| role.service) else {
        return Ok(());
    };
    let in_file = settings.roles.get_key_value(role.name.as_str());
    let name = in_file.map_or_else(|| role.name.as_str().into(), |(name, _)| name.clone());
    let rule = "the client that follows a run stops its service roles, and no client follows a scheduled run";
    Err(invalid_at("service", &name, rule))
}
