//! Whether the namespace's quotas leave room.

use std::collections::BTreeSet;

use super::{Finding, Needs, Report, RoleNeed};
use crate::{
    evidence::{PodSpec, QuotaEvidence, number},
    explain::Cause,
    fit,
};

/// `needs` come with the LimitRanges' defaults filled in.
pub(super) fn judge(needs: &Needs, quotas: &[QuotaEvidence], report: &mut Report) {
    for quota in quotas {
        let mut counted = needs.clone();
        counted.roles.retain(|role| is_counted(role, quota));
        unsaid(&counted, quota, report);
        for name in quota.status.hard.keys() {
            room(&counted, quota, name, "the run", report);
        }
    }
}

/// The first quota that leaves no room for one more pod.
pub(crate) fn full(spec: &PodSpec, quotas: &[QuotaEvidence]) -> Option<Finding> {
    let role = RoleNeed {
        name: String::new(),
        tasks: 1,
        spec: spec.clone(),
    };
    let mut report = Report::default();
    for quota in quotas.iter().filter(|quota| is_counted(&role, quota)) {
        let needs = Needs {
            roles: vec![role.clone()],
            ..Needs::default()
        };
        for name in quota.status.hard.keys() {
            room(&needs, quota, name, "a task", &mut report);
        }
    }
    report.refusals.into_iter().chain(report.warnings).next()
}

/// Whether a quota with scopes counts a role's pods.
fn is_counted(role: &RoleNeed, quota: &QuotaEvidence) -> bool {
    let ends = role.spec.active_deadline_seconds.is_some();
    let mut all = role
        .spec
        .containers
        .iter()
        .chain(&role.spec.init_containers);
    let best_effort = all.all(|container| {
        let plain = |amounts: &crate::evidence::Amounts| {
            !amounts.contains_key("cpu") && !amounts.contains_key("memory")
        };
        plain(&container.resources.requests) && plain(&container.resources.limits)
    });
    let scope = |scope: &str| match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "PriorityClass" => !role.spec.priority_class_name.is_empty(),
        // What we know nothing of is left to the server.
        _ => false,
    };
    let priority = role.spec.priority_class_name.as_str();
    let rule = |rule: &serde_json::Value| {
        let name = rule["scopeName"].as_str().unwrap_or_default();
        let values = rule["values"].as_array().into_iter().flatten();
        let is_one = values.into_iter().any(|value| value == priority);
        match (name, rule["operator"].as_str().unwrap_or_default()) {
            ("PriorityClass", "In") => is_one,
            ("PriorityClass", "NotIn") => !is_one,
            ("PriorityClass", "DoesNotExist") => priority.is_empty(),
            (name, _) => scope(name),
        }
    };
    let rules = quota.spec.scope_selector["matchExpressions"].as_array();
    quota.spec.scopes.iter().all(|name| scope(name)) && rules.into_iter().flatten().all(rule)
}

/// A quota of a resource wants every container to say what it needs of it.
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
            "the quota {:?} wants each container to say its {}, which is not said for {}",
            quota.metadata.name,
            join(names),
            join(containers)
        ),
        "set `cpu` and `memory`; for the containers that prepare a task the namespace needs a LimitRange with defaults",
    ));
}

/// Whether a quota leaves room for what is counted under a name.
fn room(needs: &Needs, quota: &QuotaEvidence, name: &str, who: &str, report: &mut Report) {
    let Some(hard) = number(&quota.status.hard, name) else {
        return;
    };
    let used = number(&quota.status.used, name).unwrap_or(0.0);
    let object = name.strip_prefix("count/").unwrap_or(name);
    let is_object = needs.objects.contains_key(object);
    let scoped = !quota.spec.scopes.is_empty() || !quota.spec.scope_selector.is_null();
    let wanted = if is_object && !scoped {
        needs.objects.get(object).copied()
    } else {
        of_pods(needs, object)
    };
    let Some(wanted) = wanted.filter(|wanted| *wanted > 0.0) else {
        return;
    };
    let text = |number: f64| fit::people(name, &fit::exact(number));
    let quota_name = &quota.metadata.name;
    // Sums of fractions are not exact to the last digit.
    let over = |bound: f64| wanted > bound + 1e-6;
    if over(hard) {
        report.refusals.push(Finding::new(
            Cause::Quota,
            format!(
                "the quota {quota_name:?} allows {} of {name} in all, and {who} needs {}",
                text(hard),
                text(wanted)
            ),
            format!("{}, or have the quota raised", less(name)),
        ));
    } else if over(hard - used) {
        let left = text((hard - used).max(0.0));
        let problem = format!(
            "the quota {quota_name:?} leaves {left} of {name} ({} of {} are used), and {who} needs {}",
            text(used),
            text(hard),
            text(wanted)
        );
        if is_object {
            let remedy = format!("delete {object} that are not needed, or have the quota raised");
            let finding = Finding::new(Cause::Quota, problem, remedy);
            report.refusals.push(finding);
        } else {
            // Pods are made as soon as others have left room.
            let remedy = format!(
                "some of its tasks wait until others are done; or {}",
                less(name)
            );
            let finding = Finding::new(Cause::Quota, problem, remedy);
            report.warnings.push(finding);
        }
    }
}

/// What brings the sum down.
fn less(name: &str) -> String {
    match name {
        "pods" | "count/pods" => "run fewer tasks".to_owned(),
        name => format!("ask for less {name}"),
    }
}

fn of_pods(needs: &Needs, name: &str) -> Option<f64> {
    if name == "pods" {
        return Some(needs.pods());
    }
    if let Some(resource) = name.strip_prefix("limits.") {
        return needs.limits().get(resource).copied();
    }
    let resource = name.strip_prefix("requests.").unwrap_or(name);
    needs.requests().get(resource).copied()
}
