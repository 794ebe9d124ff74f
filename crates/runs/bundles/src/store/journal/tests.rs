//! Tests of upload journals.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;

use super::*;

const OBJECT: &str = "team/bundles/ab.tar.gz";

fn journals() -> (tempfile::TempDir, Journals) {
    let folder = tempfile::tempdir().unwrap();
    let journals = Journals::new(folder.path().join("cache/uploads"), "s3 b");
    (folder, journals)
}

/// The file of a journal with two of three parts.
fn written(journals: &Journals) -> PathBuf {
    let mut journal = journals.open(OBJECT).unwrap();
    assert_eq!(journal.found(), None);
    assert!(!journal.is_begun());
    journal.begin("id-1", 8, 20);
    journal.arrived(2, "c");
    journal.arrived(0, "a");
    assert!(journal.is_begun());
    journal.path
}

#[test]
fn a_journal_is_found_by_the_next_process() {
    let (_folder, journals) = journals();
    let path = written(&journals);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(&path), mode(path.parent().unwrap())),
        (0o600, 0o700),
        "only for their owner"
    );
    let mut journal = journals.open(OBJECT).unwrap();
    let found = journal.found().unwrap();
    let parts = [(0, "a".to_owned()), (2, "c".to_owned())];
    let expected = Unfinished {
        object: OBJECT.to_owned(),
        upload: "id-1".to_owned(),
        part_size: 8,
        total: 20,
        parts: parts.into(),
    };
    assert_eq!(found, expected);
    journal.arrived(1, "b");
    drop(journal);
    let mut journal = journals.open(OBJECT).unwrap();
    assert_eq!(journal.found().unwrap().parts.len(), 3);
    journal.begin("id-2", 8, 20);
    drop(journal);
    let mut journal = journals.open(OBJECT).unwrap();
    let found = journal.found().unwrap();
    assert_eq!((found.upload.as_str(), found.parts.len()), ("id-2", 0));
    journal.remove();
    assert!(!path.exists());
}

#[test]
fn stores_and_objects_have_their_own_journals() {
    let (_folder, journals) = journals();
    written(&journals);
    assert_eq!(journals.open("other").unwrap().found(), None);
    let elsewhere = Journals::new(journals.folder.clone(), "s3 b at another endpoint");
    assert_eq!(elsewhere.open(OBJECT).unwrap().found(), None);
    // A journal under the name of another object is ignored, too.
    let from = journals.open(OBJECT).unwrap().path;
    let to = elsewhere.open(OBJECT).unwrap().path;
    fs::copy(from, to).unwrap();
    assert_eq!(elsewhere.open(OBJECT).unwrap().found(), None);
}

#[test]
fn one_process_at_a_time_opens_a_journal() {
    let (_folder, journals) = journals();
    let first = journals.open(OBJECT).unwrap();
    assert!(journals.open(OBJECT).is_none());
    assert!(journals.open("other").is_some());
    drop(first);
    assert!(journals.open(OBJECT).is_some());
}

#[test]
fn an_incomplete_line_is_ignored() {
    let (_folder, journals) = journals();
    let path = written(&journals);
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"{\"part\":1,\"i").unwrap();
    drop(file);
    let mut journal = journals.open(OBJECT).unwrap();
    assert_eq!(journal.found().unwrap().parts.len(), 2);
    journal.arrived(1, "b");
    drop(journal);
    let found = journals.open(OBJECT).unwrap().found().unwrap();
    assert_eq!(found.parts.get(&1).map(String::as_str), Some("b"));
}

#[test]
fn a_damaged_journal_is_ignored() {
    let (_folder, journals) = journals();
    let path = written(&journals);
    let good = fs::read_to_string(&path).unwrap();
    let lines = good.lines().count();
    assert_eq!(lines, 3);
    let damaged = [
        String::new(),
        "\n".to_owned(),
        "\0\0\0\0\n".to_owned(),
        good.trim_end().lines().next().unwrap().to_owned(),
        good.replace("\"part\":2", "\"part\":-2"),
        good.replace("\"part\":2", "\"part\":\"2\""),
        good.replace("\"format\":1", "\"format\":2"),
        good.replace("\"total\":20", "\"total\":1e99"),
        good.replace("{\"part\":0", "\n{\"part\":0"),
        good.clone() + "[]\n",
        good.clone() + &"{\"part\":1,\"id\":\"b\"}\n".repeat(300_000),
    ];
    for text in damaged {
        fs::write(&path, &text).unwrap();
        let mut journal = journals.open(OBJECT).unwrap();
        assert_eq!(journal.found(), None, "{:.80}", text);
        journal.begin("id-3", 8, 20);
        drop(journal);
        let found = journals.open(OBJECT).unwrap().found().unwrap();
        assert_eq!(found.upload, "id-3");
    }
}

#[test]
fn a_read_only_folder_has_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let journals = Journals::new(file.join("uploads"), "s3 b");
    assert!(journals.open(OBJECT).is_none());
    assert!(journals.remove_outdated(SystemTime::now()).is_empty());
}

#[test]
fn abandoned_journals_are_removed_after_a_week() {
    let (_folder, journals) = journals();
    let path = written(&journals);
    let elsewhere = Journals::new(journals.folder.clone(), "gs b");
    let others = written(&elsewhere);
    let foreign = journals.folder.join("notes.txt");
    fs::write(&foreign, "").unwrap();
    let in_days = |days: u64| SystemTime::now() + Duration::from_secs(days * 24 * 3600);
    assert_eq!(journals.remove_outdated(in_days(6)), []);
    assert!(path.exists() && others.exists());
    // A journal in use is never outdated.
    let used = elsewhere.open(OBJECT).unwrap();
    let found = journals.remove_outdated(in_days(8));
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].upload.as_str(), found[0].object.as_str()),
        ("id-1", OBJECT)
    );
    assert!(!path.exists() && others.exists() && foreign.exists());
    drop(used);
    assert_eq!(journals.remove_outdated(in_days(8)), []);
    assert!(!others.exists() && foreign.exists());
}

#[test]
fn links_and_folders_that_others_can_write_are_not_used() {
    let (folder, journals) = journals();
    let path = written(&journals);
    fs::remove_file(&path).unwrap();
    let target = folder.path().join("target");
    std::os::unix::fs::symlink(&target, &path).unwrap();
    assert!(journals.open(OBJECT).is_none());
    assert!(!target.exists());
    fs::remove_file(&path).unwrap();
    drop(journals.open(OBJECT).unwrap());
    let shared = fs::Permissions::from_mode(0o777);
    fs::set_permissions(path.parent().unwrap(), shared).unwrap();
    assert!(journals.open(OBJECT).is_none());
    assert!(journals.find(OBJECT).is_none());
}
