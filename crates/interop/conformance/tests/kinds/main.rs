//! Objects of every built-in kind (rules 10, 15, 28, 29, 32). The server must store and
//! reject the same as a real one.
//!
//! `corpus/*.yaml` contains the cases, each with an object to create and the steps that
//! follow. `golden/*.json` contains the responses of the current Kubernetes version;
//! `LONGSHORE_RECORD=1 cargo xtask test --cluster real` records them again. The tests do
//! not run on the old server because too much has changed since.
#![allow(clippy::unwrap_used)]

mod case;
mod normalize;

use std::{collections::BTreeMap, fs, path::PathBuf};

use longshore_conformance::ApiTest;
use serde_json::Value;

use case::Case;

/// The responses to all steps, by case.
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

fn write(place: PathBuf, responses: &Golden) {
    let text = serde_json::to_string_pretty(responses).unwrap() + "\n";
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, text).unwrap();
}

/// Runs the cases of a file and compares the responses.
async fn test(group: &str) {
    let text = fs::read_to_string(folder("corpus").join(format!("{group}.yaml"))).unwrap();
    let mut cases: serde_yaml_ng::Value = serde_yaml_ng::from_str(&text).unwrap();
    cases.apply_merge().unwrap();
    let cases: Vec<Case> = serde_json::from_value(serde_json::to_value(cases).unwrap()).unwrap();
    let test = ApiTest::start().await;
    if test.skip_on_old("the defaults and validation of current versions") {
        return;
    }
    // The service account of a pod of the corpus.
    let robot = serde_json::json!({"metadata": {"name": "robot"}});
    test.create(&test.path("v1", "serviceaccounts"), &robot)
        .await;
    let mut responses = Golden::new();
    for case in &cases {
        let response = case.run(&test).await;
        let duplicate = responses.insert(case.name.clone(), response);
        assert!(
            duplicate.is_none(),
            "{group}: two cases are named {:?}",
            case.name
        );
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
        return write(place, &responses);
    }
    let golden = read(&format!("{group}.json"));
    let mut wrong = Vec::new();
    for (name, response) in &responses {
        let expected = golden.get(name);
        if expected != Some(response) {
            let expected = expected.cloned().unwrap_or_default();
            wrong.push(format!(
                "{name}: {}",
                normalize::difference(&expected, response)
            ));
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
    rule_32_flow_control "flow_control";
    rule_32_single_mistakes "mistakes";
    rule_32_networking "network";
    rule_32_pods_in_templates "pods";
    rule_32_policies "policy";
    rule_32_roles_and_bindings "rbac";
    rule_32_registrations "registrations";
    rule_32_services "services";
    rule_32_storage "storage";
}
