//! Tests of what happens in the pod.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, ffi::OsString};

use super::*;
use crate::{
    bundle::{PackOptions, pack},
    pod::{PodBundle, PodRole},
};

struct Pod {
    folder: tempfile::TempDir,
    places: Places,
    config: PodConfig,
}

fn role(name: &str, tasks: &[&str]) -> PodRole {
    let env = BTreeMap::from([("GREETING".to_owned(), format!("hello {name}"))]);
    PodRole {
        name: name.to_owned(),
        tasks: tasks.iter().map(ToString::to_string).collect(),
        env,
        accelerators: 0,
    }
}

/// A pod whose bundle holds `hello.txt`.
fn pod(roles: Vec<PodRole>) -> Pod {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["home", "config", "bundle", "code"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("code").join("hello.txt"), "hello").unwrap();
    let bundle = pack(&at("code"), &PackOptions::default(), |_| {}).unwrap();
    fs::write(at("bundle").join("bundle.tar.gz"), bundle.bytes().unwrap()).unwrap();
    let config = PodConfig {
        run: "demo-ab2cd".into(),
        scheduled: false,
        roles,
        peer_timeout: 0,
        bundle: Some(PodBundle {
            sha256: bundle.sha256,
            file: "bundle.tar.gz".into(),
            download: None,
        }),
    };
    let places = Places {
        home: at("home"),
        config: at("config"),
        bundle: at("bundle"),
    };
    let pod = Pod {
        folder,
        places,
        config,
    };
    pod.write();
    pod
}

impl Pod {
    fn write(&self) {
        let text = serde_json::to_vec(&self.config).unwrap();
        fs::write(self.folder.path().join("config/run.json"), text).unwrap();
    }

    fn prepare(
        &self,
        role: &str,
        index: &str,
        command: &[&str],
    ) -> Result<Command, BootstrapError> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        prepare(&self.places, &command, |name| match name {
            "LONGSHORE_ROLE" => Some(role.to_owned()),
            "JOB_COMPLETION_INDEX" => Some(index.to_owned()),
            _ => None,
        })
    }
}

#[test]
fn the_code_arrives_and_the_command_sees_it() {
    let pod = pod(vec![role("main", &["localhost:8470"])]);
    fetch_into(&pod.places).unwrap();
    // A second start of the same container finds the first one's files.
    fs::write(pod.places.work().join("rubbish"), "").unwrap();
    fetch_into(&pod.places).unwrap();
    let script = "cat hello.txt; ls; echo $GREETING, $LONGSHORE_ROLE/$LONGSHORE_INDEX of $LONGSHORE_COUNT at $LONGSHORE_ADDRESS in $LONGSHORE_RUN; echo ${TF_CONFIG-none}";
    let output = pod
        .prepare("main", "0", &["sh", "-c", script])
        .unwrap()
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "hellohello.txt\nhello main, main/0 of 1 at localhost:8470 in demo-ab2cd\nnone\n"
    );
}

#[test]
fn a_damaged_bundle_is_refused() {
    let pod = pod(vec![role("main", &["localhost:8470"])]);
    fs::write(pod.places.bundle.join("bundle.tar.gz"), "other").unwrap();
    let error = fetch_into(&pod.places).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("is damaged: its sha256 is d9298a10d1b0735837dc4bd85dac641b"),
        "{error}"
    );
    assert_eq!(error.exit_code(), 125);
    fs::remove_file(pod.places.bundle.join("bundle.tar.gz")).unwrap();
    assert!(
        fetch_into(&pod.places)
            .unwrap_err()
            .to_string()
            .contains("is the store mounted")
    );
}

#[test]
fn tasks_of_a_cluster_read_tf_config() {
    let roles = vec![
        role("chief", &["localhost:1"]),
        role("worker", &["localhost:2", "localhost:3"]),
        role("evaluator", &["localhost:4"]),
    ];
    let pod = pod(roles);
    let environment = environment(&pod.config, "worker", 1, |_| None).unwrap();
    assert!(environment.kept.is_empty());
    let variables: BTreeMap<_, _> = environment.variables.into_iter().collect();
    assert_eq!(
        variables["TF_CONFIG"],
        r#"{"cluster":{"chief":["localhost:1"],"worker":["localhost:2","localhost:3"]},"task":{"index":1,"type":"worker"}}"#
    );
    assert_eq!(variables["LONGSHORE_ADDRESS"], "localhost:3");
    assert_eq!(variables["LONGSHORE_COUNT"], "2");
    assert_eq!(variables["GREETING"], "hello worker");
    fs::create_dir(pod.places.work()).unwrap();
    let output = pod
        .prepare("worker", "1", &["sh", "-c", "echo $TF_CONFIG"])
        .unwrap()
        .output();
    assert!(output.unwrap().stdout.starts_with(b"{\"cluster\""));
}

#[test]
fn every_framework_finds_its_variables_and_the_users_win() {
    let mut worker = role("worker", &["localhost:1", "localhost:2"]);
    worker.accelerators = 4;
    worker.env.insert("RANK".to_owned(), "7".to_owned());
    let pod = pod(vec![worker]);
    let set = |name: &str| match name {
        "MASTER_ADDR" => Some("elsewhere".to_owned()),
        // What would be set anyhow is no conflict.
        "JAX_PROCESS_ID" => Some("1".to_owned()),
        _ => None,
    };
    let environment = environment(&pod.config, "worker", 1, set).unwrap();
    assert_eq!(environment.kept, ["MASTER_ADDR", "RANK"]);
    let variables: BTreeMap<_, _> = environment.variables.into_iter().collect();
    assert!(!variables.contains_key("MASTER_ADDR"));
    assert_eq!(variables["RANK"], "7");
    assert_eq!(variables["MASTER_PORT"], "1");
    assert_eq!(variables["PET_NPROC_PER_NODE"], "4");
    assert_eq!(variables["JAX_COORDINATOR_ADDRESS"], "localhost:1");
    fs::create_dir(pod.places.work()).unwrap();
    let mut command = pod
        .prepare("worker", "1", &["sh", "-c", "cat $LONGSHORE_HOSTFILE"])
        .unwrap();
    let output = command.output().unwrap();
    assert_eq!(output.stdout, b"localhost slots=8\n");
    let error = pod.prepare("worker", "2", &["true"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this pod is no task of the run: No task with index 2 in job 'worker'"
    );
}

#[test]
fn missing_peers_are_listed() {
    let pod = pod(vec![role("worker", &["localhost:1", "nobody.invalid:2"])]);
    let error = pod
        .prepare("worker", "0", &["true"])
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("1 of 2 peers did not appear within 0 s: nobody.invalid ("),
        "{error}"
    );
}

#[test]
fn what_is_missing_is_named() {
    let pod = pod(vec![role("main", &["localhost:1"])]);
    let message = |result: Result<Command, BootstrapError>| result.unwrap_err().to_string();
    assert!(message(pod.prepare("main", "0", &[])).contains("no command"));
    assert!(message(pod.prepare("", "0", &["true"])).contains("LONGSHORE_ROLE is not set"));
    assert!(message(pod.prepare("main", "x", &["true"])).contains("is \"x\", which is no number"));
    fs::write(pod.places.config.join("run.json"), "{").unwrap();
    assert!(message(pod.prepare("main", "0", &["true"])).contains("run.json"));
}

#[test]
fn a_command_that_is_not_there_is_told_from_one_that_cannot_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), "#!/no/such/interpreter\n").unwrap();
    let error = |word: &str, kind| cannot_run(word.into(), io::Error::from(kind), folder.path());
    let missing = error("pyton", io::ErrorKind::NotFound);
    assert_eq!(
        (missing.to_string().as_str(), missing.exit_code()),
        ("command not found: pyton", 127)
    );
    assert_eq!(error("./gone", io::ErrorKind::NotFound).exit_code(), 127);
    assert_eq!(error("./script", io::ErrorKind::NotFound).exit_code(), 126);
    assert_eq!(
        error("./script", io::ErrorKind::PermissionDenied).exit_code(),
        126
    );
}
