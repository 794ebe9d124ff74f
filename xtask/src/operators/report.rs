//! Reads the JSON report of a suite.

use std::{fs, path::Path};

use serde_json::Value;

use super::Results;
use crate::run::Outcome;

/// The results of the tests that ran.
pub(super) fn read(report: &Path) -> Outcome<Results> {
    let text = fs::read_to_string(report).map_err(|error| format!("no report: {error}"))?;
    let suites: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let mut results = Results::default();
    for suite in suites.as_array().into_iter().flatten() {
        results.seconds += suite["RunTime"].as_f64().unwrap_or_default() / 1e9;
        for spec in suite["SpecReports"].as_array().into_iter().flatten() {
            add(spec, &mut results);
        }
    }
    Ok(results)
}

fn add(spec: &Value, results: &mut Results) {
    let state = spec["State"].as_str().unwrap_or("skipped");
    let is_test = spec["LeafNodeType"] == "It";
    match state {
        "skipped" | "pending" => {}
        "passed" => results.passed += usize::from(is_test),
        // A failed preparation of the suite fails the suite.
        _ => {
            let containers = spec["ContainerHierarchyTexts"].as_array();
            let words = containers
                .into_iter()
                .flatten()
                .chain([&spec["LeafNodeText"]]);
            let mut words: Vec<&str> = words.filter_map(Value::as_str).collect();
            words.retain(|word| !word.is_empty());
            let name = match is_test {
                true => words.join(" "),
                false => spec["LeafNodeType"].as_str().unwrap_or_default().to_owned(),
            };
            let message = spec["Failure"]["Message"].as_str().unwrap_or_default();
            let first = message.lines().next().unwrap_or_default();
            results.failed.push((name, first.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tests_and_failed_preparations_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.json");
        let spec = |kind: &str, state: &str| {
            serde_json::json!({
                "LeafNodeType": kind, "State": state, "LeafNodeText": "works",
                "ContainerHierarchyTexts": ["JobSet"], "Failure": {"Message": "no\nmore"},
            })
        };
        let suites = serde_json::json!([{"RunTime": 1_500_000_000_u64, "SpecReports": [
            spec("It", "passed"), spec("It", "failed"), spec("It", "skipped"),
            spec("BeforeSuite", "passed"), spec("AfterSuite", "panicked"),
        ]}]);
        fs::write(&file, suites.to_string()).unwrap();
        let failed = |name: &str| (name.to_owned(), "no".to_owned());
        let expected = Results {
            passed: 1,
            failed: vec![failed("JobSet works"), failed("AfterSuite")],
            seconds: 1.5,
        };
        assert_eq!(read(&file).unwrap(), expected);
        assert!(read(&folder.path().join("none")).is_err());
    }
}
