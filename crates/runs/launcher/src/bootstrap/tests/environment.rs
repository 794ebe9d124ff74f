//! Tests of the variables of a task.

use std::{collections::BTreeMap, env, fs};

use super::{pod, role};
use crate::{
    bootstrap::{environment, fetch_into},
    caller::Caller,
    pod::PodConfig,
};

#[test]
fn a_task_of_a_scaled_role_knows_itself_and_earlier_tasks() {
    let workers = ["demo-ab2cd-worker-0.demo-ab2cd:8470"];
    let ps = ["demo-ab2cd-ps-0.demo-ab2cd:8471"];
    let pod = pod(vec![role("worker", &workers), role("ps", &ps)]);
    let config = pod.config.clone().with_task("worker", 2);
    let own = |name: &str| {
        let mut roles = config.roles.iter();
        roles.find(|role| role.name == name).unwrap().tasks.clone()
    };
    // Each task has another port.
    let more = [1, 2].map(|i| format!("demo-ab2cd-worker-{i}.demo-ab2cd:{}", 8471 + i));
    assert_eq!(own("worker")[1..], more);
    assert_eq!(own("ps"), ps);
    assert_eq!(config.clone().with_task("worker", 1), config);
    assert_eq!(config.scaled("worker", 1), pod.config);
    // Without a Service, tasks have no host names.
    let alone = PodConfig {
        roles: vec![role("main", &["localhost:8470"])],
        ..pod.config
    };
    assert_eq!(alone.clone().with_task("main", 1), alone);
}

#[test]
fn tasks_of_a_cluster_read_tf_config() {
    let roles = vec![
        role("chief", &["localhost:1"]),
        role("worker", &["localhost:2", "localhost:3"]),
        role("evaluator", &["localhost:4"]),
    ];
    let pod = pod(roles);
    let environment = environment(&pod.config, "worker", 1, &Caller::default(), |_| None).unwrap();
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
fn every_framework_has_its_variables_and_the_users_win() {
    let mut worker = role("worker", &["localhost:1", "localhost:2"]);
    worker.accelerators = 4;
    worker.env.insert("RANK".to_owned(), "7".to_owned());
    let pod = pod(vec![worker]);
    let set = |name: &str| match name {
        "MASTER_ADDR" => Some("elsewhere".to_owned()),
        // A variable with the same value is not a conflict.
        "JAX_PROCESS_ID" => Some("1".to_owned()),
        _ => None,
    };
    let environment = environment(&pod.config, "worker", 1, &Caller::default(), set).unwrap();
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
        "this pod is not a task of the run: No task with index 2 in job 'worker'"
    );
}

#[test]
fn a_single_task_has_all_variables() {
    let pod = pod(vec![role("worker", &["localhost:8470"])]);
    let found = environment(&pod.config, "worker", 0, &Caller::default(), |_| None).unwrap();
    let one: BTreeMap<_, _> = found.variables.into_iter().collect();
    for (name, value) in [
        ("RANK", "0"),
        ("WORLD_SIZE", "1"),
        ("LOCAL_RANK", "0"),
        ("MASTER_ADDR", "localhost"),
        ("MASTER_PORT", "8470"),
        ("JAX_NUM_PROCESSES", "1"),
    ] {
        assert_eq!(one.get(name).map(String::as_str), Some(value), "{name}");
    }
    let two = self::pod(vec![role("worker", &["localhost:1", "localhost:2"])]);
    let found = environment(&two.config, "worker", 0, &Caller::default(), |_| None).unwrap();
    for (name, _) in found.variables {
        assert!(one.contains_key(&name), "{name}");
    }
    fs::create_dir(pod.places.work()).unwrap();
    let mut command = pod
        .prepare("worker", "0", &["sh", "-c", "cat $LONGSHORE_HOSTFILE"])
        .unwrap();
    assert_eq!(command.output().unwrap().stdout, b"localhost slots=1\n");
}

#[test]
fn the_users_variables_override_the_callers_environment() {
    let mut worker = role("worker", &["localhost:1"]);
    worker.env.insert("VIRTUAL_ENV".into(), "/mine".into());
    let mut pod = pod(vec![worker]);
    fetch_into(&pod.places).unwrap();
    let venv = pod.folder.path().join("code/.venv");
    fs::create_dir_all(venv.join("bin")).unwrap();
    fs::write(venv.join("bin/say"), "#!/bin/sh\necho it runs\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(venv.join("bin/say"), executable).unwrap();
    let mut caller = Caller::default();
    let mut set = |name: &str, value: Option<&str>| {
        caller.env.insert(name.to_owned(), value.map(str::to_owned));
    };
    set("PATH", Some("/bin:/usr/bin"));
    set("VIRTUAL_ENV", Some("/callers"));
    set("LD_LIBRARY_PATH", None);
    caller.links.insert(".venv".into(), venv.clone());
    caller.links.insert("hello.txt".into(), venv);
    pod.caller = Some(serde_json::to_string(&caller).unwrap());
    let script = "echo $PATH; echo $VIRTUAL_ENV ${LD_LIBRARY_PATH-none} ${LONGSHORE_CALLER-none}; .venv/bin/say; cat hello.txt";
    let mut command = pod.prepare("worker", "0", &["sh", "-c", script]).unwrap();
    let output = command.env("LD_LIBRARY_PATH", "").output().unwrap();
    let program = env::current_exe().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = format!(
        "/bin:/usr/bin:{}\n/mine ",
        program.parent().unwrap().display()
    );
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.ends_with(" none\nit runs\nhello"), "{text}");
    pod.caller = Some("{".into());
    let error = pod.prepare("worker", "0", &["true"]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot read the variable LONGSHORE_CALLER"),
        "{error}"
    );
}

#[test]
fn a_variable_that_the_caller_does_not_have_is_unset() {
    let mut pod = pod(vec![role("worker", &["localhost:1"])]);
    pod.caller = Some(r#"{"env": {"LD_LIBRARY_PATH": null}}"#.into());
    fs::create_dir(pod.places.work()).unwrap();
    let command = pod.prepare("worker", "0", &["true"]).unwrap();
    let mut changed = command.get_envs();
    assert!(changed.any(|(name, value)| name == "LD_LIBRARY_PATH" && value.is_none()));
}

#[test]
fn data_and_volumes_are_linked_in_the_folder_of_the_code() {
    let mut worker = role("worker", &["localhost:1"]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.csv"), "a,b").unwrap();
    let target = folder.path().display().to_string();
    worker.links.insert("data/raw".to_owned(), target.clone());
    worker.links.insert("empty".to_owned(), target.clone());
    let pod = pod(vec![worker.clone()]);
    fetch_into(&pod.places).unwrap();
    fs::create_dir(pod.places.work().join("empty")).unwrap();
    let command = ["cat", "data/raw/a.csv", "empty/a.csv"];
    // A restarted command finds the links of the first one.
    for _ in 0..2 {
        let output = pod.prepare("worker", "0", &command).unwrap().output();
        assert_eq!(output.unwrap().stdout, b"a,ba,b");
    }
    worker.links.insert("hello.txt".to_owned(), target);
    let pod = self::pod(vec![worker]);
    fetch_into(&pod.places).unwrap();
    let error = pod.prepare("worker", "0", &["true"]).unwrap_err();
    assert!(error.to_string().contains("hello.txt"), "{error}");
}
