//! The objects that a run creates. Pure: the same arguments result in the same plan, and
//! `--dry-run` prints exactly the objects to be created.
//!
//! The objects have the types of k8s-openapi, so code that reads a plan uses their fields.
//!
//! Fields of a user's pod template that these types lack, because they are misspelt or because the
//! cluster is newer than Longshore, are refused by name ([`PlanError::Pod`]). They would be lost,
//! because most API servers drop unknown fields without an error. Values of the wrong type are
//! refused in the same way.

mod annotations;
mod caller;
mod container;
mod data;
mod error;
mod field_types;
mod job;
mod notifier;
mod object;
mod pod_spec;
mod pod_template;
mod resources;
mod restarts;
mod restricted;
mod secrets;
mod service;
mod sizes;
mod template;
#[cfg(test)]
mod tests;
mod workload;

use longshore_client::k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Secret, Service},
};
use longshore_diagnosis::{names::RunName, role::RunRole};
use longshore_model::yaml;

use crate::{
    config::{RoleSpec, RunSpec, Workload},
    jobset::JobSet,
    owner::Owner,
    run::Run,
    store::BundleInfo,
};
pub use error::PlanError;
pub use object::PlannedObject;
pub use secrets::bundle_secret_name;

/// The objects of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The run's name.
    pub run: RunName,
    /// The namespace of all objects.
    pub namespace: String,
    /// The Secret that the run's pods read when they start.
    pub config: Secret,
    /// The Secret with the bundle, shared by runs with the same bundle.
    pub bundle: Option<Secret>,
    /// The headless Service, if there is more than one task.
    pub service: Option<Service>,
    /// The roles, each with its Job. The leader is first.
    pub roles: Vec<PlannedRole>,
    /// The kind of workload that creates the Jobs.
    pub workload: Workload,
    /// The Kueue LocalQueue that admits the run.
    pub queue: Option<String>,
    /// The maximum number of restarts of a JobSet.
    pub set_restarts: i32,
    /// True if the tasks receive changes from `longshore dev`.
    pub receives_changes: bool,
    /// The objects that notify about the run. The last object is a Job or CronJob, which owns the
    /// others, and is owned by the first workload of the run.
    pub notifier: Vec<PlannedObject>,
    /// Notes for the user about the run.
    pub notes: Vec<String>,
}

/// A role of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRole {
    /// The name of the role, its number of tasks, and its type.
    pub role: RunRole,
    /// The role's Job. A JobSet and CronJobs create Jobs from templates with the same content.
    pub job: Job,
}

impl Plan {
    /// The run, for following it after its creation.
    #[must_use]
    pub fn as_run(&self) -> Run {
        Run {
            name: self.run.clone(),
            namespace: self.namespace.clone(),
            roles: self.roles.iter().map(|role| role.role.clone()).collect(),
            schedule: None,
        }
    }

    /// Records the owner in all objects except the bundle, which runs share, and in the pods.
    pub(crate) fn mark_owner(&mut self, owner: &Owner) {
        owner.mark(&mut self.config.metadata);
        if let Some(service) = &mut self.service {
            owner.mark(&mut service.metadata);
        }
        for role in &mut self.roles {
            owner.mark(&mut role.job.metadata);
            owner.mark(pod_template::pod_metadata_of(&mut role.job));
        }
        for object in &mut self.notifier {
            owner.mark(object.metadata_mut());
        }
    }

    /// All objects, in creation order.
    #[must_use]
    pub fn objects(&self) -> Vec<PlannedObject> {
        let secrets = self.bundle.iter().chain([&self.config]).cloned();
        let mut objects: Vec<_> = secrets.map(PlannedObject::from).collect();
        objects.extend(self.service.clone().map(PlannedObject::from));
        objects.extend(self.notifier.iter().cloned());
        objects.extend(self.workloads());
        objects
    }

    /// The workload objects: Jobs, a JobSet, or CronJobs.
    #[must_use]
    pub fn workloads(&self) -> Vec<PlannedObject> {
        match &self.workload {
            Workload::Jobs => self
                .roles
                .iter()
                .map(|role| role.job.clone().into())
                .collect(),
            Workload::Scheduled(schedule) => self
                .roles
                .iter()
                .map(|role| workload::cron_job(schedule, &role.job).into())
                .collect(),
            Workload::JobSet => workload::job_set(self)
                .into_iter()
                .map(JobSet::into)
                .collect(),
        }
    }

    /// The objects as one multi-document YAML text.
    ///
    /// # Errors
    /// [`PlanError::Json`].
    pub fn to_yaml(&self) -> Result<String, PlanError> {
        let mut text = String::new();
        for object in self.objects() {
            text.push_str("---\n");
            let value = serde_json::to_value(&object).map_err(PlanError::Json)?;
            text.push_str(&yaml::write(&value));
        }
        Ok(text)
    }
}

/// Plans a run: one Indexed Job per role, a headless Service for host names, a Secret with the
/// configuration of the pods, and a Secret with the bundle unless it is in a store.
///
/// Each task has its own port, counted from `port` of the spec, because tasks may share a network,
/// and many programs listen on all addresses.
///
/// ```
/// use longshore_launcher::{Flags, RunName, Settings, config, plan::plan};
///
/// let flags = Flags {
///     command: vec!["python".to_owned(), "train.py".to_owned()],
///     ..Flags::default()
/// };
/// let spec = config::resolve(&Settings::default(), &flags, "train")?;
/// let plan = plan(&spec, &RunName::new("train", "ab2cd"), "default", None)?;
/// assert_eq!(plan.roles.len(), 1);
/// assert_eq!(plan.roles[0].role.count, 1);
/// assert_eq!(plan.roles[0].job.metadata.name.as_deref(), Some("train-ab2cd-main"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`PlanError`].
pub fn plan(
    spec: &RunSpec,
    run: &RunName,
    namespace: &str,
    bundle: Option<&BundleInfo>,
) -> Result<Plan, PlanError> {
    let planner = Planner {
        spec,
        run,
        namespace,
        bundle,
    };
    planner.check_data()?;
    let roles = spec.roles.iter().map(|role| {
        let job = planner.job(role)?;
        planner.check_sizes(role, &job)?;
        Ok(PlannedRole {
            role: run_role(role),
            job,
        })
    });
    let roles = roles.collect::<Result<_, _>>()?;
    let config = planner.config()?;
    planner.check_secret(&config)?;
    // A JobSet creates its own Service.
    let has_service = spec.has_peers() && spec.workload != Workload::JobSet;
    Ok(Plan {
        run: run.clone(),
        namespace: namespace.to_owned(),
        config,
        bundle: planner.bundle_secret(),
        service: has_service.then(|| planner.service()),
        roles,
        workload: spec.workload.clone(),
        queue: spec.queue.clone(),
        receives_changes: spec.dev.is_some(),
        notifier: planner.notifier(),
        notes: planner.webhook_note().into_iter().collect(),
        set_restarts: match planner.is_restarted_by_set() {
            true => error::int32("retries", spec.retries.into())?,
            false => 0,
        },
    })
}

/// The arguments of [`plan`]. Each module adds the functions of its part.
struct Planner<'a> {
    spec: &'a RunSpec,
    run: &'a RunName,
    namespace: &'a str,
    bundle: Option<&'a BundleInfo>,
}

fn run_role(role: &RoleSpec) -> RunRole {
    RunRole {
        name: role.name.clone(),
        count: role.count,
        service: role.service,
    }
}
