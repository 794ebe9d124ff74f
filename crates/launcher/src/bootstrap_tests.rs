//! Tests of the bootstrap.
#![allow(clippy::unwrap_used)]

use std::{collections::BTreeMap, env, ffi::OsString};

use super::*;
use crate::{
    bundle::{PackOptions, pack},
    pod::{PodBundle, PodRole},
};

struct Pod {
    folder: tempfile::TempDir,
    places: Places,
    config: PodConfig,
    caller: Option<String>,
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

/// A pod whose bundle contains `hello.txt`.
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
        caller: None,
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
            "LONGSHORE_CALLER" => self.caller.clone(),
            _ => None,
        })
    }
}

#[test]
fn the_code_is_unpacked_and_the_command_sees_it() {
    let pod = pod(vec![role("main", &["localhost:8470"])]);
    fetch_into(&pod.places).unwrap();
    // A restarted container finds the files of its first start.
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
        "hellohello.txt\nhello main, main/0 of 1 at localhost:8470 in demo-ab2cd\n\
         {\"cluster\":{\"main\":[\"localhost:8470\"]},\"task\":{\"index\":0,\"type\":\"main\"}}\n"
    );
}

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
    // No other task has the same port.
    let more = [1, 2].map(|i| format!("demo-ab2cd-worker-{i}.demo-ab2cd:{}", 8471 + i));
    assert_eq!(own("worker")[1..], more);
    assert_eq!(own("ps"), ps);
    assert_eq!(config.clone().with_task("worker", 1), config);
    assert_eq!(config.scaled("worker", 1), pod.config);
    // Without a Service there are no host names.
    let alone = PodConfig {
        roles: vec![role("main", &["localhost:8470"])],
        ..pod.config
    };
    assert_eq!(alone.clone().with_task("main", 1), alone);
}

#[test]
fn a_ready_copy_is_used_only_once() {
    let pod = pod(vec![role("main", &["localhost:8470"])]);
    let sha256 = pod.config.bundle.as_ref().unwrap().sha256.clone();
    let place = |note: Option<String>| {
        let work = pod.places.work();
        let _ = fs::remove_dir_all(&work);
        fs::create_dir(&work).unwrap();
        fs::write(work.join("hello.txt"), "ready").unwrap();
        if let Some(note) = note {
            fs::write(pod.places.home.join(names::READY), note).unwrap();
        }
    };
    let fetched = || {
        fetch_into(&pod.places).unwrap();
        assert!(!pod.places.home.join(names::READY).exists());
        fs::read_to_string(pod.places.work().join("hello.txt")).unwrap()
    };
    let note = ready_note::note(&sha256).unwrap();
    place(Some(note.clone()));
    assert_eq!(fetched(), "ready");
    // A restarted container starts from scratch.
    assert_eq!(fetched(), "hello");
    // The state after a node was killed between copy and note.
    place(None);
    assert_eq!(fetched(), "hello");
    let other_boot = format!("{sha256} 00000000-0000-0000-0000-000000000000\n");
    let other_code = note.replace(&sha256, &"0".repeat(64));
    for wrong in [other_boot, other_code, note[..40].to_owned(), String::new()] {
        place(Some(wrong));
        assert_eq!(fetched(), "hello");
    }
    // The note without a copy.
    fs::remove_dir_all(pod.places.work()).unwrap();
    fs::write(pod.places.home.join(names::READY), note).unwrap();
    assert_eq!(fetched(), "hello");
}

#[test]
fn a_damaged_bundle_is_rejected() {
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
    let problem = || fetch_into(&pod.places).unwrap_err().to_string();
    fs::remove_file(pod.places.bundle.join("bundle.tar.gz")).unwrap();
    assert!(problem().contains("no longer exists; submit the run again"));
    fs::remove_dir(&pod.places.bundle).unwrap();
    assert!(problem().contains("check that the store is mounted"));
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
fn missing_peers_are_listed() {
    let pod = pod(vec![role("worker", &["localhost:1", "missing.invalid:2"])]);
    let error = pod
        .prepare("worker", "0", &["true"])
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("1 of 2 peer names did not resolve within 0 s: missing.invalid ("),
        "{error}"
    );
}

#[test]
fn missing_files_and_variables_are_named() {
    let pod = pod(vec![role("main", &["localhost:1"])]);
    let message = |result: Result<Command, BootstrapError>| result.unwrap_err().to_string();
    assert!(message(pod.prepare("main", "0", &[])).contains("no command"));
    assert!(message(pod.prepare("", "0", &["true"])).contains("LONGSHORE_ROLE is not set"));
    assert!(
        message(pod.prepare("main", "x", &["true"])).contains("is \"x\", which is not a number")
    );
    fs::write(pod.places.config.join("run.json"), "{").unwrap();
    assert!(message(pod.prepare("main", "0", &["true"])).contains("run.json"));
}

#[test]
fn missing_and_non_executable_commands_are_distinguished() {
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

/// A store that others can write to, with different bytes during the checksum and during
/// unpacking.
#[test]
fn a_pipe_as_bundle_is_rejected_at_once() {
    let pod = pod(vec![role("main", &["localhost:8470"])]);
    let bundle = pod.places.bundle.join("bundle.tar.gz");
    fs::remove_file(&bundle).unwrap();
    let made = Command::new("mkfifo").arg(&bundle).status().unwrap();
    assert!(made.success());
    // The pipe has no writer: the bootstrap must not wait for one.
    let error = fetch_into(&pod.places).unwrap_err();
    assert!(
        error.to_string().contains("is not a regular file"),
        "{error}"
    );
    assert_eq!(fs::read_dir(pod.places.work()).unwrap().count(), 0);
}

#[test]
fn the_unpacked_bytes_are_the_checked_bytes() {
    let pod = pod(vec![role("main", &["localhost:8470"])]);
    let bundle = pod.places.bundle.join("bundle.tar.gz");
    let good = fs::read(&bundle).unwrap();
    fs::write(pod.folder.path().join("code/hello.txt"), "evil").unwrap();
    let evil = pack(
        &pod.folder.path().join("code"),
        &PackOptions::default(),
        |_| {},
    )
    .unwrap();
    let evil = evil.bytes().unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    let is_over = || over.load(std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|scope| {
        // Alternate both under the same name as fast as possible.
        scope.spawn(|| {
            let next = pod.folder.path().join("next");
            while !is_over() {
                for bytes in [&evil[..], &good] {
                    fs::write(&next, bytes).unwrap();
                    fs::rename(&next, &bundle).unwrap();
                }
            }
        });
        for _ in 0..300 {
            match fetch_into(&pod.places) {
                Ok(()) => {
                    let code = fs::read_to_string(pod.places.work().join("hello.txt")).unwrap();
                    assert_eq!(code, "hello");
                }
                Err(error) => assert!(error.to_string().contains("is damaged"), "{error}"),
            }
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
