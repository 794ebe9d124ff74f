//! Users with few permissions, and namespaces with strict rules.

use std::path::PathBuf;

use serde_json::json;

use crate::stage::{Stage, said};

/// A kubeconfig of a service account without permissions.
pub(crate) fn limited_user(stage: &Stage) -> PathBuf {
    stage.kubectl(&["create", "serviceaccount", "limited"]);
    let token = stage.kubectl(&["create", "token", "limited"]);
    let text = std::fs::read_to_string(stage.kubeconfig()).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"] = json!({"token": token.trim()});
    let path = stage.machine.home().join("limited.kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn the_remedy_of_a_forbidden_error_grants_enough() {
    let stage = Stage::new();
    let kubeconfig = limited_user(&stage);
    let run = || {
        let mut command = stage.run_command(&["--", "echo", "allowed"]);
        command.env("KUBECONFIG", &kubeconfig);
        crate::machine::Answer::new(&command.output().unwrap())
    };
    let refused = run().expect(4);
    let begin = refused.err.find("  apiVersion: v1\n").unwrap();
    let lines = refused.err[begin..].lines();
    let manifest: Vec<&str> = lines.take_while(|line| line.starts_with("  ")).collect();
    stage.machine.write("granted.yaml", &manifest.join("\n"));
    let path = stage.machine.code().join("granted.yaml");
    stage.kubectl(&["apply", "--filename", path.to_str().unwrap()]);
    assert_eq!(said(&run().expect(0)), "allowed\n");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn the_documented_role_is_enough_for_every_command() {
    let stage = Stage::new();
    let kubeconfig = limited_user(&stage);
    let documents = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/launcher.md");
    let text = std::fs::read_to_string(documents).unwrap();
    let (_, role) = text.split_once("```yaml role.yaml\n").unwrap();
    let (role, _) = role.split_once("```").unwrap();
    stage.machine.write("role.yaml", role);
    let path = stage.machine.code().join("role.yaml");
    stage.kubectl(&["apply", "--filename", path.to_str().unwrap()]);
    let account = format!("--serviceaccount={}:limited", stage.name);
    stage.kubectl(&[
        "create",
        "rolebinding",
        "longshore",
        "--role=longshore",
        &account,
    ]);
    let did = |words: &[&str], code: i32| {
        let place = ["--context", "real", "--namespace", &stage.name];
        let mut command = stage.command(&[&words[..1], &place, &words[1..]].concat());
        command.env("KUBECONFIG", &kubeconfig);
        crate::machine::Answer::new(&command.output().unwrap()).expect(code)
    };
    let image = stage.facts("launcherImage");
    let script = "cat role.yaml > /dev/null; echo 5 > /tmp/file; sleep 20";
    let mut command = stage.run_command(&["--detach", "--", "sh", "-c", script]);
    command.env("KUBECONFIG", &kubeconfig);
    let run = crate::machine::Answer::new(&command.output().unwrap())
        .expect(0)
        .out;
    let run = run.trim();
    stage.eventually("it runs", || stage.phase() == "Running");
    did(&["runs"], 0);
    did(&["why", run], 0);
    did(&["logs", run], 0);
    assert_eq!(did(&["exec", run, "--", "cat", "/tmp/file"], 0).out, "5\n");
    did(&["cp", &format!("{run}:/tmp/file"), "file"], 0);
    did(&["attach", run], 0);
    did(&["rm", run], 0);
    let mut scheduled = stage.command(&["run", "--context", "real", "--namespace", &stage.name]);
    scheduled.env("KUBECONFIG", &kubeconfig);
    scheduled.args([
        "--launcher-image",
        image,
        "--cron",
        "0 0 1 1 *",
        "--",
        "true",
    ]);
    crate::machine::Answer::new(&scheduled.output().unwrap()).expect(0);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn the_planned_pod_is_allowed_in_a_restricted_namespace() {
    let stage = Stage::labelled(&["pod-security.kubernetes.io/enforce=restricted"]);
    stage.machine.write("data.txt", "code\n");
    let script = [
        "--",
        "sh",
        "-c",
        "cat data.txt; id -u; touch $HOME/file file",
    ];
    let refused = stage.run(&script).expect(4);
    for part in ["violates PodSecurity", "runAsNonRoot", "--restricted"] {
        assert!(refused.err.contains(part), "{}", refused.err);
    }
    let left = stage.kubectl(&["get", "jobs,pods,secrets,services", "--output", "name"]);
    assert_eq!(left, "");
    let answer = stage
        .run(&[&["--restricted"][..], &script].concat())
        .expect(0);
    assert_eq!(said(&answer), "code\n1000\n", "{}", answer.err);
}
