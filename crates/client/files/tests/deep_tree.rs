//! Removes a tree that is far deeper than a stack, a path and the number of descriptors allow. This
//! test has its own process, because it limits the descriptors of the process.
#![allow(clippy::unwrap_used)]

use std::{fs, thread};

use longshore_files::remove_tree;
use rustix::{
    fs::{Mode, OFlags},
    process::{Resource, Rlimit},
};

/// The depth of the tree.
const DEPTH: usize = 60_000;
/// A branch at every level leaves work for the way back up.
const BRANCH_EVERY: usize = 7;
/// The limit of open file descriptors: enough for the test harness and a few for the removal.
const DESCRIPTORS: u64 = 16;
const STACK_BYTES: usize = 64 << 10;

#[test]
fn a_tree_of_any_depth_is_removed_with_a_small_stack_and_few_descriptors() {
    // In memory, where a directory costs microseconds; on some disks it costs milliseconds.
    let temp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let temp = temp.unwrap();
    let tree = temp.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = rustix::fs::open(&tree, flags, Mode::empty()).unwrap();
    for depth in 0..DEPTH {
        if depth.is_multiple_of(BRANCH_EVERY) {
            rustix::fs::mkdirat(&folder, "other", Mode::RWXU).unwrap();
            rustix::fs::mkdirat(&folder, "other/inner", Mode::RWXU).unwrap();
        }
        rustix::fs::mkdirat(&folder, "d", Mode::RWXU).unwrap();
        folder = rustix::fs::openat(&folder, "d", flags, Mode::empty()).unwrap();
    }
    drop(folder);
    let before = rustix::process::getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: Some(DESCRIPTORS),
        ..before
    };
    rustix::process::setrlimit(Resource::Nofile, limit).unwrap();
    let removed = tree.clone();
    let removal = thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(move || remove_tree(&removed));
    removal.unwrap().join().unwrap().unwrap();
    rustix::process::setrlimit(Resource::Nofile, before).unwrap();
    assert!(!tree.exists());
    assert!(temp.path().exists());
}
