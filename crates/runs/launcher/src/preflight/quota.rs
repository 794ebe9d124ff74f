//! Checks the namespace's quotas.

use std::collections::BTreeSet;

use longshore_diagnosis::{
    evidence::QuotaEvidence,
    explain::{
        Cause,
        quota::{Demand, counts, shortage},
    },
};

use super::{Finding, Needs, Report};

/// Checks the needs, which include the defaults of the LimitRanges.
pub(super) fn check(needs: &Needs, quotas: &[QuotaEvidence], report: &mut Report) {
    for quota in quotas {
        let mut counted = needs.clone();
        counted.roles.extend(counted.notifier.take());
        counted.roles.retain(|role| counts(quota, &role.spec));
        unsaid(&counted, quota, report);
        let demand = Demand {
            pods: counted.pods(),
            requests: counted.requests(),
            limits: counted.limits(),
            objects: counted.objects,
        };
        for name in quota.status.hard.keys() {
            let Some(found) = shortage(&demand, quota, name, "the run") else {
                continue;
            };
            let finding = Finding::new(Cause::Quota, found.problem, found.remedy);
            match found.is_refused {
                true => report.refusals.push(finding),
                false => report.warnings.push(finding),
            }
        }
    }
}

/// Reports containers that do not specify a resource that a quota requires.
fn unsaid(needs: &Needs, quota: &QuotaEvidence, report: &mut Report) {
    let mut lacks: BTreeSet<(&str, &str)> = BTreeSet::new();
    for name in quota.status.hard.keys() {
        let (of_limits, resource) = match name.as_str() {
            "cpu" | "requests.cpu" => (false, "cpu"),
            "memory" | "requests.memory" => (false, "memory"),
            "limits.cpu" => (true, "cpu"),
            "limits.memory" => (true, "memory"),
            _ => continue,
        };
        for role in &needs.roles {
            for container in role
                .spec
                .containers
                .iter()
                .chain(&role.spec.init_containers)
            {
                let resources = &container.resources;
                let said = resources.limits.contains_key(resource)
                    || (!of_limits && resources.requests.contains_key(resource));
                if !said {
                    lacks.insert((name, container.name.as_str()));
                }
            }
        }
    }
    if lacks.is_empty() {
        return;
    }
    let names: BTreeSet<&str> = lacks.iter().map(|(name, _)| *name).collect();
    let containers: BTreeSet<&str> = lacks.iter().map(|(_, container)| *container).collect();
    let join = |words: BTreeSet<&str>| words.into_iter().collect::<Vec<_>>().join(", ");
    report.refusals.push(Finding::new(
        Cause::Quota,
        format!(
            "the quota {:?} requires each container to specify {}; not specified for {}",
            quota.metadata.name,
            join(names),
            join(containers)
        ),
        "set `cpu` and `memory`; for init containers the namespace needs a LimitRange with defaults",
    ));
}
