//! `cargo xtask e2e`: Kubernetes' own conformance tests judge the embedded cluster. They are
//! built from its Go module, as is agnhost, the program of most of their images. Counts what
//! passes by special interest group.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use serde_json::Value;

use crate::{
    embedded::Embedded,
    golang, kubernetes,
    run::{Outcome, target},
};

/// Which tests.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only those of a special interest group, as api-machinery; all of them without.
    #[arg(long)]
    sig: Option<String>,
    /// Only those whose name matches this regular expression.
    focus: Option<String>,
}

/// Images whose program is agnhost.
const AGNHOST: &str = "registry.k8s.io/e2e-test-images/agnhost";

/// What became of the tests of a group.
#[derive(Default)]
struct Group {
    passed: usize,
    /// Name and first line of the message.
    failed: Vec<(String, String)>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    golang::require_go()?;
    kubernetes::build_tests()?;
    let programs = kubernetes::programs();
    let entrypoint = format!("{AGNHOST}={}", programs.join("agnhost").display());
    let cluster = Embedded::start(&["--image-entrypoint".to_owned(), entrypoint])?;
    let report = target().join("e2e.json");
    let sig = arguments.sig.as_deref().unwrap_or(r"[a-z-]+");
    let words = arguments.focus.as_deref().unwrap_or("");
    let focus = format!(r"\[sig-{sig}\].*({words})");
    let mut tests = Command::new(programs.join("e2e.test"));
    tests
        .arg("--kubeconfig")
        .arg(cluster.kubeconfig())
        .args(["--provider=skeleton", "--allowed-not-ready-nodes=-1"])
        .args(["--ginkgo.label-filter=Conformance", "--ginkgo.timeout=8h"])
        .args(["--ginkgo.silence-skips", "--ginkgo.no-color"])
        .arg(format!("--ginkgo.focus={focus}"))
        .arg(format!("--ginkgo.json-report={}", report.display()))
        .env("KUBECTL_PATH", programs.join("kubectl"));
    // What an earlier run left would be counted when this one writes no report.
    match fs::remove_file(&report) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {error}", report.display()));
        }
        _ => {}
    }
    // Tests that fail are counted below.
    tests
        .status()
        .map_err(|error| format!("cannot run e2e.test: {error}"))?;
    let groups = read(&report)?;
    for (name, group) in &groups {
        for (test, message) in &group.failed {
            println!("failed: [{name}] {test}: {message}");
        }
    }
    for (name, Group { passed, failed }) in &groups {
        println!("{name}: {passed} of {} passed", passed + failed.len());
    }
    Ok(())
}

/// What became of the tests, by group.
fn read(report: &Path) -> Outcome<BTreeMap<String, Group>> {
    let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", report.display());
    let text = fs::read_to_string(report).map_err(|error| problem(&error))?;
    let suites: Value = serde_json::from_str(&text).map_err(|error| problem(&error))?;
    let suites = suites.as_array().into_iter().flatten();
    let specs = suites.flat_map(|suite| suite["SpecReports"].as_array().into_iter().flatten());
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
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
            "passed" => group.passed += 1,
            _ => {
                let message = spec["Failure"]["Message"].as_str().unwrap_or_default();
                let first = message.lines().next().unwrap_or_default().to_owned();
                group.failed.push((name, first));
            }
        }
    }
    Ok(groups)
}

/// The group in the name of a test: `[sig-apps] Job should …`.
fn group(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once("[sig-")?;
    Some(rest.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn reports_are_counted_by_group() {
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("e2e.json");
        let spec = |state: &str, group: &str, message: &str| {
            serde_json::json!({
                "LeafNodeType": "It", "State": state, "LeafNodeText": "should work [Conformance]",
                "ContainerHierarchyTexts": [format!("[sig-{group}] Things")],
                "Failure": {"Message": message},
            })
        };
        let suite = serde_json::json!([{"SpecReports": [
            spec("passed", "apps", ""), spec("failed", "apps", "no\nmore"),
            spec("skipped", "node", ""), spec("passed", "node", ""), spec("skipped", "auth", ""),
            {"LeafNodeType": "BeforeSuite", "State": "passed"},
        ]}]);
        fs::write(&report, suite.to_string()).unwrap();
        let groups = read(&report).unwrap();
        assert_eq!(groups["apps"].passed, 1);
        let failed = "[sig-apps] Things should work [Conformance]".to_owned();
        assert_eq!(groups["apps"].failed, [(failed, "no".to_owned())]);
        assert_eq!(groups.len(), 2);
        assert_eq!((groups["node"].passed, groups["node"].failed.len()), (1, 0));
    }
}
