//! Reads ginkgo's JSON report.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde_json::Value;

use crate::run::Outcome;

/// The tests of a special interest group.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    /// Names of the tests.
    pub(super) passed: Vec<String>,
    /// Names of the tests, each with the first line of its message.
    pub(super) failed: Vec<(String, String)>,
}

impl Group {
    pub(super) fn count(&self) -> usize {
        self.passed.len() + self.failed.len()
    }
}

/// The results of the tests that ran, by group, from the reports of all runs.
pub(super) fn read<'a>(
    reports: impl Iterator<Item = &'a PathBuf>,
) -> Outcome<BTreeMap<String, Group>> {
    let mut groups = BTreeMap::new();
    for report in reports {
        let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", report.display());
        let text = fs::read_to_string(report).map_err(|error| problem(&error))?;
        let suites: Value = serde_json::from_str(&text).map_err(|error| problem(&error))?;
        add(&suites, &mut groups);
    }
    for group in groups.values_mut() {
        group.passed.sort();
        group.failed.sort();
    }
    Ok(groups)
}

fn add(suites: &Value, groups: &mut BTreeMap<String, Group>) {
    let suites = suites.as_array().into_iter().flatten();
    let specs = suites.flat_map(|suite| suite["SpecReports"].as_array().into_iter().flatten());
    for spec in specs.filter(|spec| spec["LeafNodeType"] == "It") {
        let containers = spec["ContainerHierarchyTexts"].as_array();
        let mut words: Vec<&str> = (containers.into_iter().flatten())
            .filter_map(Value::as_str)
            .collect();
        words.extend(spec["LeafNodeText"].as_str());
        let name = words.join(" ");
        let state = spec["State"].as_str().unwrap_or("skipped");
        let Some(group) = group(&name).filter(|_| !matches!(state, "skipped" | "pending")) else {
            continue;
        };
        let group = groups.entry(group.to_owned()).or_default();
        match state {
            "passed" => group.passed.push(name),
            _ => {
                let message = spec["Failure"]["Message"].as_str().unwrap_or_default();
                let first = message.lines().next().unwrap_or_default().to_owned();
                group.failed.push((name, first));
            }
        }
    }
}

/// The group in the name of a test: `apps` in `[sig-apps] Job should …`.
fn group(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once("[sig-")?;
    Some(rest.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn results_are_counted_by_group() {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("e2e.json");
        let spec = |state: &str, group: &str, message: &str| {
            serde_json::json!({
                "LeafNodeType": "It", "State": state, "LeafNodeText": "should work [Conformance]",
                "ContainerHierarchyTexts": [format!("[sig-{group}] Pods")],
                "Failure": {"Message": message},
            })
        };
        let suite = serde_json::json!([{"SpecReports": [
            spec("passed", "apps", ""), spec("failed", "apps", "no\nmore"),
            spec("skipped", "node", ""), spec("passed", "node", ""), spec("skipped", "auth", ""),
            {"LeafNodeType": "BeforeSuite", "State": "passed"},
        ]}]);
        fs::write(&report, suite.to_string()).unwrap();
        let groups = read([report].iter()).unwrap();
        assert_eq!(groups["apps"].passed.len(), 1);
        let failed = "[sig-apps] Pods should work [Conformance]".to_owned();
        assert_eq!(groups["apps"].failed, [(failed, "no".to_owned())]);
        assert_eq!(groups.len(), 2);
        assert_eq!(groups["node"].count(), 1);
    }
}
