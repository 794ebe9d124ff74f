//! Checks the namespace's LimitRanges.

use std::collections::{BTreeMap, BTreeSet};

use longshore_diagnosis::{
    evidence::{LimitItem, LimitRangeEvidence},
    explain::Cause,
    fit,
};
use longshore_model::facts::{Quantities, quantity};

use super::{Finding, Needs, Report};

/// Checks the needs, which include the defaults of the LimitRanges.
pub(super) fn check(needs: &Needs, ranges: &[LimitRangeEvidence], report: &mut Report) {
    let mut found = BTreeSet::new();
    let mut of_notifier = BTreeSet::new();
    let notifier = needs.notifier.iter().map(|role| (role, true));
    let roles = needs.roles.iter().map(|role| (role, false));
    for (role, is_notifier) in roles.chain(notifier) {
        let found = match is_notifier {
            true => &mut of_notifier,
            false => &mut found,
        };
        for range in ranges {
            for item in &range.spec.limits {
                let problems = match item.kind.as_str() {
                    "Container" => {
                        let all = role.spec.containers.iter();
                        let all = all.chain(&role.spec.init_containers);
                        let of = all.flat_map(|container| {
                            let resources = &container.resources;
                            bounds(item, &sums(&resources.requests), &sums(&resources.limits))
                        });
                        of.collect::<Vec<_>>()
                    }
                    "Pod" => bounds(item, &fit::requests(&role.spec), &fit::limits(&role.spec)),
                    _ => continue,
                };
                for problem in problems {
                    let name = &range.metadata.name;
                    let of = item.kind.to_lowercase();
                    found.insert(format!(
                        "{}: the LimitRange {name:?} rejects its pods: {problem} a {of}",
                        role.name
                    ));
                }
            }
        }
    }
    let remedy = "set `cpu` and `memory` within these bounds, or have the LimitRange changed";
    let findings = found
        .into_iter()
        .map(|problem| Finding::new(Cause::LimitRange, problem, remedy));
    report.refusals.extend(findings);
    let remedy = "run without `webhook`, or have the LimitRange changed: the pod that calls the \
                  webhook requests nothing, and is limited to half a CPU and 256 MiB";
    let findings = of_notifier
        .into_iter()
        .map(|problem| Finding::new(Cause::LimitRange, problem, remedy));
    report.refusals.extend(findings);
}

fn sums(amounts: &Quantities) -> BTreeMap<String, f64> {
    let names = amounts.keys();
    names
        .filter_map(|name| Some((name.clone(), quantity(amounts, name)?)))
        .collect()
}

fn bounds(
    item: &LimitItem,
    requests: &BTreeMap<String, f64>,
    limits: &BTreeMap<String, f64>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let text = |name: &str, number: f64| fit::people(name, &fit::exact(number));
    for name in item.max.keys() {
        let Some(max) = quantity(&item.max, name) else {
            continue;
        };
        match limits.get(name) {
            Some(limit) if *limit > max => problems.push(format!(
                "a limit of {} of {name} is more than the {} allowed for",
                text(name, *limit),
                text(name, max)
            )),
            None => problems.push(format!(
                "no limit of {name} is set, and {} is the most allowed for",
                text(name, max)
            )),
            Some(_) => {}
        }
    }
    for name in item.min.keys() {
        let Some(min) = quantity(&item.min, name) else {
            continue;
        };
        match requests.get(name) {
            Some(request) if *request < min => problems.push(format!(
                "a request of {} of {name} is less than the {} needed for",
                text(name, *request),
                text(name, min)
            )),
            None => problems.push(format!(
                "no request of {name} is set, and {} is the least allowed for",
                text(name, min)
            )),
            Some(_) => {}
        }
    }
    problems.extend(ratios(item, requests, limits));
    problems
}

/// Checks the ratio of limits to requests.
fn ratios(
    item: &LimitItem,
    requests: &BTreeMap<String, f64>,
    limits: &BTreeMap<String, f64>,
) -> Vec<String> {
    let given = |amounts: &BTreeMap<String, f64>, name: &str| {
        amounts.get(name).copied().filter(|number| *number > 0.0)
    };
    let of_one = |name: &String| {
        let most = quantity(&item.max_limit_request_ratio, name)?;
        match (given(requests, name), given(limits, name)) {
            (Some(request), Some(limit)) if limit / request > most => Some(format!(
                "a limit of {name} that is {:.1} times the request is more than the {most} times allowed for",
                limit / request
            )),
            (Some(_), Some(_)) => None,
            _ => Some(format!(
                "a request and a limit of {name} must be set, the limit at most {most} times the request for"
            )),
        }
    };
    item.max_limit_request_ratio
        .keys()
        .filter_map(of_one)
        .collect()
}
