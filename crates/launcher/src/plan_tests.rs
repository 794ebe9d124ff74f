//! Snapshots of plans, and the rules that snapshots do not show.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use bytes::Bytes;

use super::*;
use crate::config::{Flags, Settings, resolve};

fn bundle(delivery: Delivery) -> BundleInfo {
    BundleInfo {
        sha256: "0123456789abcdef".repeat(4),
        size: 3,
        delivery,
    }
}

fn planned(settings: &str, command: &[&str], bundle: Option<&BundleInfo>) -> Plan {
    let settings = Settings::parse(settings, Path::new("longshore.toml")).unwrap();
    let flags = Flags {
        command: command.iter().map(ToString::to_string).collect(),
        ..Flags::default()
    };
    let spec = resolve(&settings, &flags, "code").unwrap();
    plan(&spec, &RunName::new(&spec.name, "ab2cd"), "default", bundle).unwrap()
}

fn config(plan: &Plan) -> PodConfig {
    let text = plan.config["data"][pod::FILE].as_str().unwrap();
    serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap()
}

#[test]
fn one_task() {
    let bundle = bundle(Delivery::Secret(Bytes::from_static(b"tgz")));
    let plan = planned("", &["python", "train.py"], Some(&bundle));
    insta::assert_snapshot!(plan.to_yaml().unwrap());
    assert_eq!(config(&plan).roles[0].tasks, ["localhost:8470"]);
}

#[test]
fn roles_with_everything() {
    let bundle = bundle(Delivery::Folder {
        root: "/srv/bundles".into(),
    });
    let plan = planned(
        "name = 'My Model'\nimage = 'trainer:1'\nlauncher_image = 'longshore:1'\n\
         image_pull_policy = 'Never'\nimage_pull_secrets = ['registry']\nservice_account = 'trainer'\n\
         port = 2222\nretries = 2\ntimeout = '2h'\nttl = '7d'\n\
         [env]\nSECRET = 'hunter2'\n[labels]\nteam = 'a'\n'longshore.dev/run' = 'stolen'\n[annotations]\nnote = 'x y'\n\
         [roles.worker]\ncount = 2\nresources = { cpu = 2, memory = '4Gi', gpu = 1 }\nnode_selector = { pool = 'gpu' }\n\
         [roles.ps]\ncommand = ['python', 'serve.py']\n",
        &["python", "train.py"],
        Some(&bundle),
    );
    insta::assert_snapshot!(plan.to_yaml().unwrap());
    let config = config(&plan);
    assert_eq!(
        config.roles[0].tasks,
        ["my-model-ab2cd-ps-0.my-model-ab2cd:2222"]
    );
    assert_eq!(
        config.roles[1].tasks,
        [
            "my-model-ab2cd-worker-0.my-model-ab2cd:2223",
            "my-model-ab2cd-worker-1.my-model-ab2cd:2224"
        ]
    );
    assert_eq!(
        config.bundle.unwrap().file,
        format!("bundles/{}.tar.gz", bundle.sha256)
    );
    assert!(
        !plan.to_yaml().unwrap().contains("hunter2"),
        "values of variables stay in the Secret"
    );
}

#[test]
fn without_code_there_is_no_bundle_and_no_fetch() {
    let plan = planned("code = false", &["true"], None);
    assert!(plan.bundle.is_none());
    assert!(
        plan.jobs[0]["spec"]["template"]["spec"]
            .get("initContainers")
            .is_none()
    );
    assert!(plan.service.is_none());
}

#[test]
fn the_longest_names_still_fit_a_host_name() {
    let run = RunName::new(&"very-long-name".repeat(9), "ab2cd");
    let host = run.host(&"r".repeat(16), 9_999);
    let label = host.split('.').next().unwrap();
    assert!(label.len() <= 63, "{label}");
    longshore_model::name::dns_label("host", label).unwrap();
}
