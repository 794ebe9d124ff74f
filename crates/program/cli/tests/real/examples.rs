//! The examples, with tasks in pods that find each other through CoreDNS.

use std::path::{Path, PathBuf};

use crate::stage::Stage;

fn example(name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples");
    examples.join(name).canonicalize().unwrap()
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn digits_trains_with_two_roles() {
    let stage = Stage::new();
    let folder = example("digits");
    let answer = stage.run(&[folder.to_str().unwrap()]).expect(0);
    assert!(answer.out.contains("accuracy"), "{}", answer.out);
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn tasks_find_their_peers_by_name() {
    let stage = Stage::new();
    stage.machine.write(
        "longshore.toml",
        "command = [\"sh\", \"-c\", '''echo $LONGSHORE_CLUSTER; python3 -c 'import os,json,socket\n\
         for tasks in json.loads(os.environ[\"LONGSHORE_CLUSTER\"]).values():\n    \
         for task in tasks: print(socket.gethostbyname(task.rsplit(\":\",1)[0]))' ''']\n\
         [roles.chief]\n[roles.worker]\ncount = 2\n",
    );
    let answer = stage.run(&[]).expect(0);
    let found = answer.out.lines().filter(|line| line.contains("10.244.0."));
    assert_eq!(found.count(), 9, "{}", answer.out);
}

/// Runs an example that needs a framework, which is installed on the node's own disk.
fn with_framework(name: &str) -> String {
    let installed = std::env::var_os("LONGSHORE_TEST_FRAMEWORKS");
    let installed = PathBuf::from(installed.expect("cargo xtask test --cluster real"));
    let packages = installed.join(name).join("lib/python3.11/site-packages");
    assert!(packages.is_dir(), "{}", packages.display());
    let stage = Stage::new();
    let volume = format!("host:{}:/packages:ro", packages.display());
    let folder = example(name);
    let words = [folder.to_str().unwrap(), "--volume", &volume];
    let packages = ["--env", "PYTHONPATH=/packages"];
    stage.run(&[&words[..], &packages].concat()).expect(0).out
}

fn count(text: &str, part: &str) -> usize {
    text.lines().filter(|line| line.contains(part)).count()
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn torch_trains_on_three_workers() {
    let said = with_framework("pytorch");
    assert_eq!(count(&said, "over 3 tasks: 6 "), 3, "{said}");
    assert_eq!(count(&said, "] ok"), 3, "{said}");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn tensorflow_trains_on_two_workers() {
    let said = with_framework("tensorflow");
    assert_eq!(count(&said, "replicas in sync: 2"), 2, "{said}");
    assert_eq!(count(&said, "] ok"), 2, "{said}");
}

#[test]
#[ignore = "cargo xtask test --cluster real"]
fn jax_trains_in_two_processes() {
    let said = with_framework("jax");
    assert_eq!(count(&said, "over all processes: 3 "), 2, "{said}");
    assert_eq!(count(&said, "] ok"), 2, "{said}");
}
