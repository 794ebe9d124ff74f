//! Tests of groups in the machine's cgroups, if this process may create them.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{fs, path::PathBuf, process::Command, sync::Arc};

use longshore_model::resources::PodResources;
use serde_json::json;

use super::{
    available::{Cgroups, Unavailable, delegated, take_over, would_be_delegated},
    group::{Group, lock},
    hierarchy::{Folder, OwnCgroups, Version},
    leftovers::{self, AGENT},
    limits::Limits,
};

fn limited() -> PodResources {
    let resources = json!({"limits": {"cpu": "100m", "memory": "32Mi"}});
    let spec = json!({"containers": [{"name": "c", "resources": resources}]});
    serde_json::from_value(spec).unwrap()
}

/// Returns the groups of a pod and of its container, or `None` if this process may not create them.
fn groups(cgroups: &Cgroups, uid: &str) -> Option<(Arc<Group>, Arc<Group>)> {
    let pod = match cgroups.for_pod(uid, &limited()) {
        Ok(group) => group.unwrap(),
        Err(error) => {
            println!("not tested: {error}");
            return None;
        }
    };
    let limits = Limits::of_container(&limited(), "c");
    let container = Cgroups::for_container(&pod, "c", &limits).unwrap();
    Some((pod, container))
}

fn folders(group: &Group) -> Vec<PathBuf> {
    group
        .shown()
        .into_iter()
        .map(|shown| shown.folder)
        .collect()
}

/// The contents of the first of these files that a group has.
fn read(group: &Group, names: &[&str]) -> String {
    let mut files = folders(group)
        .into_iter()
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    files
        .find_map(|file| fs::read_to_string(file).ok())
        .unwrap()
        .trim()
        .to_owned()
}

const MEMORY: &[&str] = &["memory.limit_in_bytes", "memory.max"];
const QUOTA: &[&str] = &["cpu.cfs_quota_us", "cpu.max"];

#[test]
fn groups_have_limits_and_are_removed() {
    let cgroups = Cgroups::of_this_process();
    let Some((pod, container)) = groups(&cgroups, "limits") else {
        return;
    };
    for group in [&pod, &container] {
        assert_eq!(read(group, MEMORY), (32 << 20).to_string());
        assert!(read(group, QUOTA).starts_with("10000"));
    }
    let larger = Limits {
        memory: Some(64 << 20),
        quota: Some(20_000),
        shares: 204,
    };
    pod.set(&larger).unwrap();
    container.set(&larger).unwrap();
    assert_eq!(read(&container, MEMORY), (64 << 20).to_string());
    assert!(read(&container, QUOTA).starts_with("20000"));
    container.set(&Limits::default()).unwrap();
    assert!(["-1", "max 100000"].contains(&&*read(&container, QUOTA)));
    assert_eq!(container.out_of_memory_kills(), 0);
    let all = [folders(&container), folders(&pod)].concat();
    // The groups of a privileged container.
    for folder in folders(&container) {
        let deep: PathBuf = std::iter::repeat_n("nested", 400).collect();
        fs::create_dir_all(folder.join(deep)).unwrap();
        for number in 0..20 {
            fs::create_dir_all(folder.join(format!("wide-{number}/a"))).unwrap();
        }
    }
    drop((pod, container));
    assert!(all.iter().all(|folder| !folder.exists()), "{all:?}");
    drop(cgroups);
    let agents = all.iter().map(|folder| folder.parent().unwrap());
    assert!(agents.filter(|agent| agent.ends_with("limits")).count() == 0);
}

#[test]
fn the_usage_of_a_process_is_counted() {
    let cgroups = Cgroups::of_this_process();
    let Some((_pod, container)) = groups(&cgroups, "usage") else {
        return;
    };
    let joins = folders(&container)
        .into_iter()
        .map(|folder| format!("echo $$ > {}/cgroup.procs; ", folder.display()));
    let script = format!(
        "{} i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo; read line",
        joins.collect::<String>()
    );
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    assert!(container.contains(child.id().cast_signed()));
    assert!(!container.contains(std::process::id().cast_signed()));
    let usage = container.usage().unwrap();
    assert!(usage.cpu_nanoseconds > 1_000_000, "{usage:?}");
    assert!((1..32 << 20).contains(&usage.memory), "{usage:?}");
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn groups_without_a_living_agent_are_removed() {
    let cgroups = Cgroups::of_this_process();
    let Some((pod, _container)) = groups(&cgroups, "leftovers") else {
        return;
    };
    let living = folders(&pod);
    let parent = living[0].ancestors().nth(2).unwrap().to_owned();
    let dead = parent.join("longshore-0-0");
    fs::create_dir_all(dead.join("pod/container/a/b/c/d/e/f")).unwrap();
    fs::create_dir_all(dead.join("pod/other")).unwrap();
    let other = parent.join("longshore-0.service");
    fs::create_dir(&other).unwrap();
    leftovers::remove(&parent);
    assert!(!dead.exists() && other.exists());
    fs::remove_dir(&other).unwrap();
    assert!(living.iter().all(|folder| folder.exists()), "{living:?}");
    assert!(lock(living[0].parent().unwrap()).unwrap().is_none());
}

#[test]
fn names_do_not_leave_the_directory() {
    let cgroups = Cgroups::of_this_process();
    for uid in ["../x", "a/b", "", "a\nb", &"x".repeat(300)] {
        let Err(error) = cgroups.for_pod(uid, &limited()) else {
            assert!(uid.is_empty(), "{uid:?}");
            continue;
        };
        println!("{error}");
    }
}

#[test]
fn without_cgroups_the_reason_is_known() {
    let cgroups = Cgroups::new(OwnCgroups::default());
    let error = cgroups.for_pod("u", &limited()).unwrap_err();
    assert!(error.to_string().contains("delegated"), "{error}");
    let none: PodResources = serde_json::from_value(json!({"containers": []})).unwrap();
    assert!(cgroups.for_pod("u", &none).unwrap().is_none());
    assert_eq!(cgroups.refusal().as_ref(), Some(&error));
    assert!(cgroups.report(&error) && !cgroups.report(&error));
}

#[test]
fn a_limit_that_was_not_enforced_is_a_reason_even_where_cgroups_can_be_created() {
    let cgroups = Cgroups::of_this_process();
    let error = Unavailable::not_joined();
    cgroups.report(&error);
    assert_eq!(cgroups.refusal(), Some(error));
}

#[test]
fn the_prediction_before_the_first_pod_with_limits_holds() {
    let cgroups = Cgroups::of_this_process();
    let predicted = cgroups.refusal().is_none();
    let created = cgroups.for_pod("u", &limited());
    assert_eq!(predicted, created.is_ok(), "{created:?}");
    assert_eq!(cgroups.refusal().is_none(), created.is_ok());
}

#[test]
fn nothing_is_changed_to_find_out_what_is_delegated() {
    let id = format!("{}\n", std::process::id());
    for (processes, above, inside) in [
        ("1\n2\n", "memory pids\n", "cpu memory\n"),
        ("1\n2\n", "memory pids\n", ""),
        ("1\n2\n", "pids\n", ""),
    ] {
        let (_root, own) = hierarchy(processes, above, inside);
        let predicted = would_be_delegated(&own);
        assert_eq!(
            predicted,
            delegated(&own),
            "{processes:?} {above:?} {inside:?}"
        );
    }
    let (_root, own) = hierarchy(&id, "memory\n", "");
    let (folder, controllers) = would_be_delegated(&own).unwrap();
    assert_eq!((folder, controllers.len()), (own.clone(), 2));
    let read = |name: &str| fs::read_to_string(own.path.join(name)).unwrap();
    assert_eq!(
        (read("cgroup.procs"), read("cgroup.subtree_control")),
        (id, String::new())
    );
}

/// A directory in place of the hierarchy of version 2, with the files of two cgroups.
fn hierarchy(own_processes: &str, above: &str, own: &str) -> (tempfile::TempDir, Folder) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("slice/scope");
    fs::create_dir_all(path.join(AGENT)).unwrap();
    let write = |name: &str, text: &str| fs::write(root.path().join(name), text).unwrap();
    write("slice/cgroup.subtree_control", above);
    write("slice/scope/cgroup.subtree_control", own);
    write("slice/scope/cgroup.controllers", "cpu memory pids");
    write("slice/scope/cgroup.procs", own_processes);
    write(&format!("slice/scope/{AGENT}/cgroup.procs"), "");
    let folder = Folder {
        version: Version::V2,
        path,
        mount: root.path().to_owned(),
    };
    (root, folder)
}

#[test]
fn the_nearest_cgroup_with_controllers_is_used() {
    let (_root, own) = hierarchy("1\n2\n", "memory pids\n", "cpu memory\n");
    let (folder, controllers) = delegated(&own).unwrap();
    assert_eq!((folder, controllers.len()), (own.clone(), 2));
    // The group into which the agent has moved is in the cgroup to use.
    let moved = Folder {
        path: own.path.join(AGENT),
        ..own.clone()
    };
    assert_eq!(delegated(&moved).unwrap().0, own);

    // A cgroup with other processes cannot delegate controllers.
    let (_root, own) = hierarchy("1\n2\n", "memory pids\n", "");
    let (folder, controllers) = delegated(&own).unwrap();
    assert_eq!(Some(&*folder.path), own.path.parent());
    assert_eq!(controllers, ["memory"]);
    let (_root, own) = hierarchy("1\n2\n", "pids\n", "");
    assert_eq!(delegated(&own), None);
}

#[test]
fn an_agent_alone_in_its_cgroup_moves_to_one_in_it() {
    let id = std::process::id().to_string();
    let (_root, own) = hierarchy(&format!("{id}\n"), "memory\n", "");
    take_over(&own.path).unwrap();
    let read = |name: &str| fs::read_to_string(own.path.join(name)).unwrap();
    assert_eq!(read(&format!("{AGENT}/cgroup.procs")), id);
    assert!(read("cgroup.subtree_control").starts_with('+'));
    let (_root, own) = hierarchy("1\n", "memory\n", "");
    assert!(take_over(&own.path).is_err());
}
