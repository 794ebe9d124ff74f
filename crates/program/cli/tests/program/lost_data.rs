//! The data folder of a running cluster is removed, renamed or replaced, or its store is lost.

use std::{fs, os::unix::fs::DirBuilderExt as _, path::Path};

use crate::machine::{Machine, Running, eventually, is_alive, unique_word};

fn create(machine: &Machine, kubeconfig: &Path, name: &str) -> i32 {
    machine.write(
        "object.yaml",
        &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"),
    );
    let kubeconfig = kubeconfig.to_str().unwrap();
    let arguments = ["apply", "-f", "object.yaml", "--kubeconfig", kubeconfig];
    machine.longshore(&arguments).code
}

/// Removes a folder to which others may be writing.
fn remove(folder: &Path) {
    eventually("the folder is removed", || {
        let _ = fs::remove_dir_all(folder);
        !folder.exists()
    });
}

/// The ways to lose a folder.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Loss {
    Removed,
    Renamed,
    Replaced,
    LockRemoved,
}

impl Loss {
    fn happen(self, data: &Path, aside: &Path) {
        match self {
            Self::Removed => remove(data),
            Self::Renamed => fs::rename(data, aside).unwrap(),
            Self::Replaced => {
                fs::rename(data, aside).unwrap();
                fs::DirBuilder::new().mode(0o700).create(data).unwrap();
            }
            Self::LockRemoved => fs::remove_file(data.join("lock")).unwrap(),
        }
    }
}

#[test]
fn a_cluster_ends_when_its_folder_is_gone() {
    for (loss, ephemeral) in [
        (Loss::Removed, false),
        (Loss::Removed, true),
        (Loss::Renamed, false),
        (Loss::Replaced, false),
        (Loss::LockRemoved, false),
    ] {
        let machine = Machine::new();
        let up: &[&str] = match ephemeral {
            true => &["up", "--ephemeral"],
            false => &["up"],
        };
        machine.longshore(up).expect(0);
        let pid = machine.pid().unwrap();
        let kubeconfig = machine.home().join("kubeconfig");
        fs::copy(machine.data().join("kubeconfig"), &kubeconfig).unwrap();
        assert_eq!(create(&machine, &kubeconfig, "stored"), 0);
        let aside = machine.home().join("aside");
        loss.happen(&machine.data(), &aside);
        // A store that is still at its path keeps what it acknowledges; memory never does.
        let keeps = ephemeral || loss == Loss::LockRemoved;
        let mut number = 0;
        eventually("the cluster ends", || {
            let stored = create(&machine, &kubeconfig, &format!("lost-{number}")) == 0;
            assert!(!stored || keeps, "{loss:?}: lost-{number} cannot be stored");
            number += 1;
            !is_alive(pid)
        });
        // The next cluster does not depend on the first.
        machine.longshore(&["up"]).expect(0);
        let next = machine.pid().unwrap();
        assert!(next != pid && is_alive(next), "{loss:?}");
        machine.longshore(&["down"]).expect(0);
        assert!(!is_alive(next));
        if loss == Loss::Renamed {
            let log = fs::read_to_string(aside.join("cluster.log")).unwrap();
            assert!(log.contains("was removed, renamed or replaced"), "{log}");
        }
    }
}

#[test]
fn a_follower_reports_that_the_folder_is_gone() {
    let machine = Machine::new();
    let word = unique_word();
    let script = format!("echo begun; sleep 300; : {word}");
    let mut follower = Running::start(machine.command(&["run", "--", "sh", "-c", &script]));
    follower.wait_for_output("begun");
    remove(&machine.data());
    let answer = follower.end().expect(3);
    assert!(
        answer.err.contains("was removed, renamed or replaced"),
        "{}",
        answer.err
    );
    machine.assert_no_process(&word);
}

#[test]
fn a_cluster_without_its_store_does_not_start_in_silence() {
    const MISSING: &str = "objects.redb is missing";
    let machine = Machine::new();
    machine.longshore(&["up"]).expect(0);
    machine.longshore(&["down"]).expect(0);
    let store = machine.data().join("objects.redb");
    fs::write(&store, "").unwrap();
    let answer = machine.longshore(&["up"]).expect(3);
    assert!(
        answer.err.contains("its objects are lost"),
        "{}",
        answer.err
    );
    for start in [&["up"][..], &["get", "nodes"]] {
        fs::remove_file(&store).unwrap();
        let answer = machine.longshore(start).expect(0);
        assert!(answer.err.contains(MISSING), "{}", answer.err);
        // The cluster is new and has the default objects.
        let classes = machine.longshore(&["get", "storageclasses"]).expect(0);
        assert!(classes.out.contains("standard"), "{}", classes.out);
        machine.longshore(&["down"]).expect(0);
    }
    let answer = machine.longshore(&["up"]).expect(0);
    assert!(!answer.err.contains(MISSING), "{}", answer.err);
}
