//! The workload that the roles become in the cluster: Jobs, a JobSet, or CronJobs.

use longshore_model::schedule;

use super::{ConfigError, Flags, RoleSpec, Settings, values::invalid};
use crate::store::Store;

/// The workload that the roles become in the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Workload {
    /// One Job per role.
    #[default]
    Jobs,
    /// One JobSet, which creates their Jobs. It stops service roles when the others have
    /// succeeded, and all roles when one has failed, also without a following client.
    JobSet,
    /// One CronJob per role, which creates Jobs on a schedule.
    Scheduled(Schedule),
}

/// The schedule of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The schedule in cron syntax: `0 3 * * *`.
    pub cron: String,
    /// The time zone of `cron`; defaults to that of the cluster.
    pub time_zone: Option<String>,
    /// `Forbid`, `Allow` or `Replace`: what happens when a run is due while the previous one
    /// is still active.
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
    let jobset = flags.jobset || settings.jobset == Some(true);
    let zone = flags.time_zone.as_ref().or(settings.time_zone.as_ref());
    let Some(cron) = flags.cron.as_ref().or(settings.cron.as_ref()) else {
        let policy = settings.concurrency_policy.as_ref();
        for (what, value) in [("time_zone", zone), ("concurrency_policy", policy)] {
            if let Some(value) = value {
                let rule = "it applies only to schedules: set `cron`, too, or remove it";
                return Err(invalid(what, value, rule));
            }
        }
        return Ok(match jobset {
            true => Workload::JobSet,
            false => Workload::Jobs,
        });
    };
    if jobset {
        let rule = "a schedule creates one Job per role: remove `cron` or `jobset`";
        return Err(invalid("jobset", "true", rule));
    }
    can_be_scheduled(cron, roles, store)?;
    if let Some(zone) = zone.filter(|zone| schedule::time_zone(zone).is_none()) {
        let rule = "use a name of the time zone database, such as Europe/Berlin or UTC";
        return Err(invalid("time_zone", zone, rule));
    }
    let policy = settings.concurrency_policy.as_deref();
    let policy = policy.unwrap_or(POLICIES[0]);
    if !POLICIES.contains(&policy) {
        let rule = format!("use one of {}", POLICIES.join(", "));
        return Err(invalid("concurrency_policy", policy, rule));
    }
    Ok(Workload::Scheduled(Schedule {
        cron: cron.clone(),
        time_zone: zone.cloned(),
        concurrency_policy: policy.to_owned(),
    }))
}

fn can_be_scheduled(
    cron: &str,
    roles: &[RoleSpec],
    store: Option<&Store>,
) -> Result<(), ConfigError> {
    if let Err(error) = cron.parse::<schedule::Schedule>() {
        let rule = format!("{error}; write minute, hour, day, month and weekday, as in 0 3 * * *");
        return Err(invalid("cron", cron, rule));
    }
    if cron.contains("TZ=") {
        return Err(invalid("cron", cron, "give the time zone as `time_zone`"));
    }
    if cron.starts_with("@every") && roles.len() > 1 {
        let rule = "it counts from the creation of each role's CronJob, so the roles would not start together: use minutes and hours";
        return Err(invalid("cron", cron, rule));
    }
    if let Some(role) = roles.iter().find(|role| role.service) {
        let rule = "the client that follows a run stops its service roles, and no client follows a scheduled run";
        return Err(invalid("service", &role.name, rule));
    }
    if let Some(Store::Remote(store)) = store {
        let rule = "pods fetch the code from a signed URL that expires within days, and a schedule runs for longer: put the code into the image (`--no-code`), or use a folder that the nodes share (file://)";
        return Err(invalid("store", store.to_string(), rule));
    }
    Ok(())
}
