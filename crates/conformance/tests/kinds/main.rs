//! Objects of every built-in kind (rules 10, 15, 28, 29, 32): what the server
//! stores of them and what it refuses, as a real one did.
//!
//! `corpus/*.yaml` holds cases, each an object to create and what is done to
//! it afterwards. `golden/*.json` holds what the Kubernetes of today answered; written
//! anew with `LONGSHORE_RECORD=1 cargo xtask test --cluster real`. An old server is not
//! asked: too much has changed since.
#![allow(clippy::unwrap_used)]

mod case;
mod normal;

use std::{collections::BTreeMap, fs, path::PathBuf};

use longshore_conformance::ApiTest;
use serde_json::Value;

use case::Case;

/// What a case was answered, step by step.
type Golden = BTreeMap<String, Value>;

fn folder(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/kinds", name]
        .iter()
        .collect()
}

fn read(file: &str) -> Golden {
    match fs::read(folder("golden").join(file)) {
        Ok(bytes) => serde_json::from_slice(&bytes).unwrap(),
        Err(_) => Golden::new(),
    }
}

fn write(place: PathBuf, answers: &Golden) {
    let text = serde_json::to_string_pretty(answers).unwrap() + "\n";
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, text).unwrap();
}

/// Runs a file of the corpus and compares.
async fn test(group: &str) {
    let text = fs::read_to_string(folder("corpus").join(format!("{group}.yaml"))).unwrap();
    let mut cases: serde_yaml_ng::Value = serde_yaml_ng::from_str(&text).unwrap();
    cases.apply_merge().unwrap();
    let cases: Vec<Case> = serde_json::from_value(serde_json::to_value(cases).unwrap()).unwrap();
    let test = ApiTest::start().await;
    if test.lacks("what is defaulted and validated today") {
        return;
    }
    let mut answers = Golden::new();
    for case in &cases {
        let answer = case.run(&test).await;
        let twice = answers.insert(case.name.clone(), answer);
        assert!(twice.is_none(), "{group}: two cases are {:?}", case.name);
    }
    let recording = std::env::var_os("LONGSHORE_RECORD").is_some();
    if recording {
        let name = if test.is_real() {
            format!("{group}.json")
        } else {
            format!("{group}.ours.json")
        };
        let place = if test.is_real() {
            folder("golden").join(name)
        } else {
            std::env::temp_dir().join(name)
        };
        return write(place, &answers);
    }
    let golden = read(&format!("{group}.json"));
    let mut wrong = Vec::new();
    for (name, answer) in &answers {
        let expected = golden.get(name);
        if expected != Some(answer) {
            let expected = expected.cloned().unwrap_or_default();
            wrong.push(format!("{name}: {}", normal::difference(&expected, answer)));
        }
    }
    assert!(wrong.is_empty(), "{group}:\n{}", wrong.join("\n"));
}

macro_rules! groups {
    ($($test:ident $file:literal;)*) => {
        $(
            #[tokio::test]
            async fn $test() {
                test($file).await;
            }
        )*

        #[test]
        fn every_file_of_the_corpus_is_checked() {
            let mut files: Vec<String> = fs::read_dir(folder("corpus"))
                .unwrap()
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect();
            files.sort();
            assert_eq!(files, [$(concat!($file, ".yaml"),)*]);
        }
    };
}

groups! {
    rule_32_workloads "apps";
    rule_32_autoscalers "autoscaling";
    rule_32_jobs_and_cron_jobs "batch";
    rule_32_core_kinds "core";
    rule_32_single_mistakes "mistakes";
    rule_32_networking "network";
    rule_32_pods_in_templates "pods";
    rule_32_policies "policy";
    rule_32_roles_and_bindings "rbac";
    rule_32_registrations "registrations";
    rule_32_services "services";
    rule_32_storage "storage";
}
