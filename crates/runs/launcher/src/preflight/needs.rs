//! The requirements of a plan for the cluster.

use std::collections::BTreeMap;

use longshore_client::{
    Error,
    k8s_openapi::api::{batch::v1::Job, core::v1 as core},
};
use longshore_diagnosis::{evidence::LimitRangeEvidence, fit, names};
use longshore_model::facts::{PodSpec, Quantities};
use serde::Deserialize as _;

use super::{
    Addon,
    references::{self, Reference},
};
use crate::{
    config::Workload,
    plan::{Plan, PlannedObject, PlannedRole},
};

/// The requirements of a plan for the cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Needs {
    /// The namespace.
    pub(crate) namespace: String,
    /// The roles of the plan.
    pub(crate) roles: Vec<RoleNeed>,
    /// The pod that notifies about the run, which quotas count.
    pub(crate) notifier: Option<RoleNeed>,
    /// The number of created objects of each kind, by their names in quotas.
    pub(crate) objects: BTreeMap<String, f64>,
    /// The objects that the pods refer to.
    pub(crate) references: Vec<Reference>,
    /// The optional components.
    pub(crate) addons: Vec<Addon>,
    /// The option that needs backoff limits per index.
    pub(crate) counts_failures: Option<&'static str>,
    /// True if the client executes programs in the plan's pods.
    pub(crate) executes: bool,
    /// True if the client sends its input to a pod.
    pub(crate) attaches: bool,
    /// True if the code is in a Secret, which may exist already.
    pub(crate) has_bundle: bool,
}

/// The requirements of a role.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RoleNeed {
    /// The role's name.
    pub(crate) name: String,
    /// The number of the role's tasks that run at the same time.
    pub(crate) tasks: u32,
    /// The spec of the role's pods.
    pub(crate) spec: PodSpec,
}

impl Needs {
    /// The requirements of a plan.
    ///
    /// # Errors
    /// A pod of the plan cannot be read.
    pub(crate) fn of(plan: &Plan) -> Result<Self, Error> {
        let own = plan.objects();
        let count = |kind: &str| own.iter().filter(|object| object.kind() == kind).count() as f64;
        let mut objects = BTreeMap::new();
        for (kind, name) in [
            ("Job", "jobs.batch"),
            ("CronJob", "cronjobs.batch"),
            (names::JOBSET, "jobsets.jobset.x-k8s.io"),
            ("Secret", "secrets"),
            ("Service", "services"),
            ("ConfigMap", "configmaps"),
            ("ServiceAccount", "serviceaccounts"),
            ("Role", "roles.rbac.authorization.k8s.io"),
            ("RoleBinding", "rolebindings.rbac.authorization.k8s.io"),
        ] {
            if count(kind) > 0.0 {
                objects.insert(name.to_owned(), count(kind));
            }
        }
        let roles = plan.roles.iter().map(role);
        let roles: Vec<RoleNeed> = roles.collect::<Result<_, _>>()?;
        let notifier = plan.notifier.iter().find_map(notifier).transpose()?;
        let mut references: Vec<Reference> = roles
            .iter()
            .chain(&notifier)
            .flat_map(|role| references::of(&role.spec))
            .filter(|reference| {
                let known = (reference.what.kind(), reference.name.as_str());
                !own.iter()
                    .any(|object| (object.kind(), object.name()) == known)
            })
            .collect();
        references.sort();
        references.dedup();
        Ok(Self {
            namespace: plan.namespace.clone(),
            roles,
            notifier,
            objects,
            references,
            addons: addons(plan),
            counts_failures: plan
                .roles
                .iter()
                .find_map(|role| counts_failures(&role.job)),
            executes: plan.receives_changes,
            attaches: plan.roles.iter().any(|role| reads_input(&role.job)),
            has_bundle: plan.bundle.is_some(),
        })
    }

    /// The requirements with the defaults of LimitRanges.
    pub(super) fn with_defaults(&self, ranges: &[LimitRangeEvidence]) -> Self {
        let mut filled = self.clone();
        let items = ranges.iter().flat_map(|range| &range.spec.limits);
        let items: Vec<_> = items.filter(|item| item.kind == "Container").collect();
        for role in filled.roles.iter_mut().chain(&mut filled.notifier) {
            let all = role.spec.containers.iter_mut();
            for container in all.chain(&mut role.spec.init_containers) {
                let resources = &mut container.resources;
                for item in &items {
                    fill(&mut resources.limits, &item.default_limit);
                    // A specified limit is the default of the request.
                    let limits = resources.limits.clone();
                    let requests: Quantities = item.default_request.clone();
                    fill(&mut resources.requests, &requests);
                    fill(&mut resources.requests, &limits);
                }
            }
        }
        filled
    }

    /// The sums of all tasks' requests or limits.
    pub(super) fn sum(
        &self,
        of: impl Fn(&PodSpec) -> BTreeMap<String, f64>,
    ) -> BTreeMap<String, f64> {
        let mut sum = BTreeMap::new();
        for role in &self.roles {
            for (name, number) in of(&role.spec) {
                *sum.entry(name).or_default() += number * f64::from(role.tasks);
            }
        }
        sum
    }

    /// The sums of all tasks' requests.
    pub(super) fn requests(&self) -> BTreeMap<String, f64> {
        self.sum(fit::requests)
    }

    /// The sums of all tasks' limits.
    pub(super) fn limits(&self) -> BTreeMap<String, f64> {
        self.sum(fit::limits)
    }

    /// The number of pods that run at the same time.
    pub(super) fn pods(&self) -> f64 {
        self.roles.iter().map(|role| f64::from(role.tasks)).sum()
    }
}

/// The JobSets and queues that a plan needs.
fn addons(plan: &Plan) -> Vec<Addon> {
    let set = (plan.workload == Workload::JobSet).then_some(Addon::JobSet);
    set.into_iter()
        .chain(plan.queue.clone().map(Addon::Queue))
        .collect()
}

fn fill(amounts: &mut Quantities, defaults: &Quantities) {
    for (name, amount) in defaults {
        amounts
            .entry(name.clone())
            .or_insert_with(|| amount.clone());
    }
}

/// Returns true if a container of the Job's pods reads the input of the client.
fn reads_input(job: &Job) -> bool {
    let spec = job
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    let mut containers = spec.into_iter().flat_map(|spec| &spec.containers);
    containers.any(|container| container.stdin == Some(true))
}

/// Returns true if the Job's tasks are the combinations of a sweep.
fn is_independent(job: &Job) -> bool {
    let labels = job.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(names::SWEEP))
}

/// The option for which the failures of each task are counted.
fn counts_failures(job: &Job) -> Option<&'static str> {
    let limit = job.spec.as_ref()?.backoff_limit_per_index?;
    Some(match (is_independent(job), limit) {
        (true, _) => "a sweep needs",
        // Without retries, such a limit is used only for tasks with several containers.
        (false, 0) => "other containers of a template need",
        (false, _) => "`retries` needs",
    })
}

/// The pod that notifies about the run.
fn notifier(object: &PlannedObject) -> Option<Result<RoleNeed, Error>> {
    let job = match object {
        PlannedObject::Job(job) => job.spec.clone(),
        PlannedObject::CronJob(schedule) => schedule.spec.clone().job_template.spec,
        _ => return None,
    };
    let name = "the webhook";
    let spec = pod_spec(job?.template.spec.as_ref(), name);
    Some(spec.map(|spec| RoleNeed {
        name: name.to_owned(),
        tasks: 1,
        spec,
    }))
}

/// A planned pod, parsed like the pods of a cluster.
fn pod_spec(pod: Option<&core::PodSpec>, whose: &str) -> Result<PodSpec, Error> {
    let spec = serde_json::to_value(pod)
        .and_then(Option::<PodSpec>::deserialize)
        .map_err(|error| Error::Decode {
            what: format!("the planned pod of {whose}"),
            problem: error.to_string(),
        })?;
    Ok(spec.unwrap_or_default())
}

/// The requirements of a role. Its pod is parsed like the pods of a cluster.
fn role(planned: &PlannedRole) -> Result<RoleNeed, Error> {
    let pod = planned
        .job
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    let spec = pod_spec(pod, &format!("role {:?}", planned.role.name))?;
    Ok(RoleNeed {
        name: planned.role.name.clone(),
        // The combinations of a sweep can run one after the other, so one task must fit.
        tasks: if is_independent(&planned.job) {
            1
        } else {
            planned.role.count
        },
        spec,
    })
}
