//! Tests of fetching the code.

use std::{fs, process::Command};

use longshore_diagnosis::names;

use super::{pod, role};
use crate::{
    bootstrap::{BootstrapError, fetch::fetch_once, fetch_into},
    bundle::{PackOptions, pack},
    ready_note,
};

#[test]
fn a_restarted_task_keeps_its_files() {
    let pod = pod(vec![role("main", &["localhost:8470"])]);
    let file = pod.places.work().join("hello.txt");
    fetch_once(&pod.places).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "hello");
    fs::write(&file, "changed by the task").unwrap();
    fetch_once(&pod.places).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "changed by the task");
}

#[test]
fn a_task_that_cannot_fetch_its_code_says_so() {
    let pod = pod(vec![role("main", &["localhost:8470"])]);
    let bundle = pod.places.bundle.join("bundle.tar.gz");
    let bytes = fs::read(&bundle).unwrap();
    fs::write(&bundle, "damaged").unwrap();
    let error = fetch_once(&pod.places).unwrap_err();
    assert!(
        matches!(&error, BootstrapError::Code(cause) if matches!(**cause, BootstrapError::Damaged { .. }))
    );
    let text = error.to_string();
    assert!(
        text.starts_with("the code could not be fetched: the bundle "),
        "{text}"
    );
    // The next container tries again.
    fs::write(&bundle, bytes).unwrap();
    fetch_once(&pod.places).unwrap();
    assert!(pod.places.work().join("hello.txt").exists());
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
    // The state after a node was killed between the copy and the note.
    place(None);
    assert_eq!(fetched(), "hello");
    let other_boot = format!("{sha256} 00000000-0000-0000-0000-000000000000\n");
    let other_code = note.replace(&sha256, &"0".repeat(64));
    for wrong in [other_boot, other_code, note[..40].to_owned(), String::new()] {
        place(Some(wrong));
        assert_eq!(fetched(), "hello");
    }
    // A note without a copy.
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

/// A store that others can write to, with different bytes during the checksum and during
/// unpacking.
#[test]
fn a_pipe_as_bundle_is_rejected_at_once() {
    let pod = pod(vec![role("main", &["localhost:8470"])]);
    let bundle = pod.places.bundle.join("bundle.tar.gz");
    fs::remove_file(&bundle).unwrap();
    let made = Command::new("mkfifo").arg(&bundle).status().unwrap();
    assert!(made.success());
    // The pipe has no writer, and the bootstrap must not wait for one.
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
        // Alternates both under the same name as fast as possible.
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
