//! Snapshots of plans, and tests of rules that snapshots do not show.
#![allow(clippy::unwrap_used)]

mod tasks;
mod templates;
mod workloads;

use std::path::Path;

use bytes::Bytes;
use longshore_diagnosis::names;
use serde_json::{Value, json};

use super::*;
use crate::{
    config::{Flags, Settings, resolve},
    pod::{self, PodConfig},
    store::{Delivery, SignedUrl},
};

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
    let data = plan.config.data.as_ref().unwrap();
    serde_json::from_slice(&data[pod::FILE].0).unwrap()
}

/// The Job of a role, as JSON.
fn job(plan: &Plan, index: usize) -> Value {
    serde_json::to_value(&plan.roles[index].job).unwrap()
}

/// The spec of the pods of the first role, as JSON.
fn pod_spec(plan: &Plan) -> Value {
    job(plan, 0)["spec"]["template"]["spec"].take()
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
fn the_longest_names_still_fit_a_host_name() {
    let run = RunName::new(&"very-long-name".repeat(9), "ab2cd");
    let short = RunName::short(&"very-long-name".repeat(9), "ab2cd");
    let role = "r".repeat(16);
    let scheduled = short.job(&format!("{role}-29384920"));
    for (run, job) in [(&run, run.job(&role)), (&short, scheduled)] {
        let host = run.host(&job, 9_999);
        let label = host.split('.').next().unwrap();
        assert!(label.len() <= 63, "{label}");
        longshore_model::name::dns_label("host", label).unwrap();
    }
    // The maximum length of a CronJob name.
    assert!(short.job(&role).len() <= 52);
}

#[test]
fn pods_with_everything() {
    let folder = tempfile::tempdir().unwrap();
    let template = "metadata: {annotations: {side: 'on'}}\nspec:\n  runtimeClassName: nvidia\n  containers:\n  \
                    - name: main\n    securityContext: {runAsUser: 1000}\n  - name: side\n    image: proxy:1\n";
    std::fs::write(folder.path().join("pod.yaml"), template).unwrap();
    let settings = "queue = 'team-a'\npriority_class = 'low'\nshared_memory = '8Gi'\ntermination_grace = '2m'\n\
         node_selector = { pool = 'gpu' }\ntolerations = [{ key = 'nvidia.com/gpu' }]\n\
         env_from = [{ secret = 'tokens', prefix = 'TOKEN_' }]\ntemplate = 'pod.yaml'\n\
         [env]\nPLAIN = 1\nTOKEN = { secret = 'hub', key = 'token' }\nNODE = { field = 'spec.nodeName' }\nMODE = { config_map = 'modes' }\n\
         [[volumes]]\nclaim = 'datasets'\npath = '/data'\nread_only = true\n\
         [affinity.podAntiAffinity]\npreferredDuringSchedulingIgnoredDuringExecution = []\n\
         [roles.worker]\nnode_selector = { zone = 'b' }\npriority_class = 'high'\n\
         tolerations = [{ key = 'spot', value = 'yes', effect = 'NoExecute', seconds = 60 }]\nenv = { MODE = 'own' }\n\
         volumes = [{ empty = '10Gi', path = '/scratch' }, { host = '/mnt', path = '/data/' }]\n";
    let settings = Settings::parse(settings, &folder.path().join("longshore.toml")).unwrap();
    let flags = Flags {
        command: vec!["train".into()],
        ..Flags::default()
    };
    let spec = resolve(&settings, &flags, "code").unwrap();
    let plan = plan(&spec, &RunName::new("code", "ab2cd"), "default", None).unwrap();
    insta::assert_snapshot!(plan.to_yaml().unwrap());
}

#[test]
fn the_roles_of_a_plan_are_those_of_its_annotation() {
    let settings = "queue = 'team-a'\n[roles.worker]\ncount = 2\n[roles.ps]\ncommand = ['serve']";
    let plan = planned(settings, &["train"], None);
    let roles: Vec<RunRole> = plan.roles.iter().map(|role| role.role.clone()).collect();
    let role = |name: &str, count, service| RunRole {
        name: name.to_owned(),
        count,
        service,
    };
    assert_eq!(roles, [role("ps", 1, true), role("worker", 2, false)]);
    let job = job(&plan, 1);
    let written = job["metadata"]["annotations"][names::ROLES].as_str();
    let written: Vec<RunRole> = serde_json::from_str(written.unwrap()).unwrap();
    assert_eq!(written, roles);
    assert_eq!(job["metadata"]["labels"][names::QUEUE], "team-a");
    assert_eq!(plan.queue.as_deref(), Some("team-a"));
}
