//! Tests of keeping and fetching outputs in folders.

#![allow(clippy::unwrap_used)]
use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _, fs::symlink, net::UnixListener},
    time::{Duration, SystemTime},
};

use jiff::Timestamp;

use super::*;

/// A pod's volume, a folder of outputs, and a target folder of a client.
struct Stage {
    folder: tempfile::TempDir,
    outputs: Outputs,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("volume/work")).unwrap();
        let outputs = Outputs::new(folder.path().join("outputs"));
        Self { folder, outputs }
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("volume/work")
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn collect(&self, task: &OutputTask) -> Option<Manifest> {
        self.collect_while(task, true)
    }

    fn collect_while(&self, task: &OutputTask, ended: bool) -> Option<Manifest> {
        let volume = self.folder.path().join("volume");
        let now = Timestamp::UNIX_EPOCH;
        self.outputs.collect(task, &volume, ended, now).unwrap()
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("target")
    }

    fn fetch(&self, manifest: &Manifest, force: bool) -> Result<Fetched, OutputsError> {
        let to = self.target();
        self.outputs.fetch(manifest, &FetchOptions { to, force })
    }

    fn contents(&self) -> usize {
        usize::try_from(self.outputs.usage().unwrap().files).unwrap()
    }
}

fn task(patterns: &[&str]) -> OutputTask {
    OutputTask {
        namespace: "team".to_owned(),
        run: "digits-x7k2p".to_owned(),
        role: "worker".to_owned(),
        index: 1,
        pod: "digits-x7k2p-worker-1-abcde".to_owned(),
        pod_uid: "1-2-3".to_owned(),
        request: OutputRequest {
            patterns: patterns.iter().map(|&text| text.to_owned()).collect(),
            max_bytes: 1 << 20,
            max_files: 100,
            scheduled: false,
            store: None,
            claim: None,
            every: None,
        },
    }
}

fn paths(manifest: &Manifest) -> Vec<&str> {
    let files = manifest.files.iter();
    files.map(|file| file.path.as_str()).collect()
}

fn left_out(manifest: &Manifest) -> Vec<(&str, Reason)> {
    let all = manifest.left_out.iter();
    let mut all: Vec<_> = all.map(|one| (one.path.as_str(), one.reason)).collect();
    all.sort_by_key(|(path, _)| *path);
    all
}

#[test]
fn matching_files_are_kept_by_content_and_fetched_as_they_were() {
    let stage = Stage::new();
    stage.write("m.json", "{}");
    stage.write("checkpoints/1/model.bin", "weights");
    stage.write("checkpoints/2/model.bin", "weights");
    stage.write("train.py", "code");
    fs::set_permissions(
        stage.work().join("m.json"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let manifest = stage.collect(&task(&["checkpoints/**", "*.json"])).unwrap();
    let expected = [
        "checkpoints/1/model.bin",
        "checkpoints/2/model.bin",
        "m.json",
    ];
    assert_eq!(paths(&manifest), expected);
    assert_eq!((manifest.bytes(), manifest.left_out_count()), (16, 0));
    assert_eq!(stage.contents(), 2, "equal files are stored once");
    assert_eq!(
        stage.outputs.of_run("team", "digits-x7k2p").unwrap(),
        std::slice::from_ref(&manifest)
    );
    assert_eq!(stage.outputs.of_run("other", "digits-x7k2p").unwrap(), []);

    // The task's own files do not matter any more.
    fs::remove_dir_all(stage.work()).unwrap();
    let fetched = stage.fetch(&manifest, false).unwrap();
    assert_eq!((fetched.files, fetched.bytes, fetched.present), (3, 16, 0));
    let read = |path: &str| fs::read_to_string(stage.target().join(path)).unwrap();
    assert_eq!(read("checkpoints/2/model.bin"), "weights");
    let mode = |path: &str| {
        fs::metadata(stage.target().join(path))
            .unwrap()
            .permissions()
            .mode()
    };
    assert_eq!(mode("m.json") & 0o100, 0o100);
    assert_eq!(mode("checkpoints/1/model.bin") & 0o100, 0);
}

#[test]
fn files_that_exist_are_skipped_and_others_are_not_overwritten_without_force() {
    let stage = Stage::new();
    stage.write("a", "one");
    stage.write("sub/b", "two");
    let manifest = stage.collect(&task(&["**"])).unwrap();
    stage.fetch(&manifest, false).unwrap();
    let again = stage.fetch(&manifest, false).unwrap();
    assert_eq!((again.files, again.present), (0, 2));

    // An interrupted attempt continues.
    fs::remove_file(stage.target().join("sub/b")).unwrap();
    let again = stage.fetch(&manifest, false).unwrap();
    assert_eq!((again.files, again.present), (1, 1));

    fs::write(stage.target().join("a"), "own").unwrap();
    fs::remove_file(stage.target().join("sub/b")).unwrap();
    let refused = stage.fetch(&manifest, false).unwrap_err().to_string();
    assert!(
        refused.contains("another content: a; use --force"),
        "{refused}"
    );
    assert!(!stage.target().join("sub/b").exists(), "nothing is written");
    assert_eq!(fs::read(stage.target().join("a")).unwrap(), b"own");
    stage.fetch(&manifest, true).unwrap();
    assert_eq!(fs::read(stage.target().join("a")).unwrap(), b"one");
    let names = fs::read_dir(stage.target()).unwrap().count();
    assert_eq!(names, 2, "no temporary file is left");
}

#[test]
fn a_fetch_never_follows_links_in_the_target() {
    let stage = Stage::new();
    stage.write("sub/b", "two");
    stage.write("a", "one");
    let manifest = stage.collect(&task(&["**"])).unwrap();
    let outside = stage.folder.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir_all(stage.target()).unwrap();
    symlink(&outside, stage.target().join("sub")).unwrap();
    for force in [false, true] {
        let refused = stage.fetch(&manifest, force).unwrap_err();
        assert!(matches!(refused, OutputsError::Blocked { .. }), "{refused}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);

    // A link in the place of a file is replaced, not followed.
    fs::remove_file(stage.target().join("sub")).unwrap();
    let victim = outside.join("victim");
    fs::write(&victim, "safe").unwrap();
    symlink(&victim, stage.target().join("a")).unwrap();
    assert!(stage.fetch(&manifest, false).is_err());
    stage.fetch(&manifest, true).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"safe");
    assert_eq!(fs::read(stage.target().join("a")).unwrap(), b"one");
}

#[test]
fn links_out_of_the_folder_and_special_files_are_left_out() {
    let stage = Stage::new();
    let secret = stage.folder.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    stage.write("out/real/model.bin", "weights");
    let work = stage.work();
    symlink("real/model.bin", work.join("out/latest")).unwrap();
    symlink("real", work.join("out/folder")).unwrap();
    symlink(&secret, work.join("out/absolute")).unwrap();
    symlink("../../../secret", work.join("out/above")).unwrap();
    symlink("/proc/self/environ", work.join("out/proc")).unwrap();
    symlink("missing", work.join("out/missing")).unwrap();
    let _socket = UnixListener::bind(work.join("out/socket")).unwrap();
    let manifest = stage.collect(&task(&["out/**"])).unwrap();
    assert_eq!(paths(&manifest), ["out/latest", "out/real/model.bin"]);
    assert_eq!(manifest.files[0].sha256, manifest.files[1].sha256);
    let link = |path| (path, Reason::Link);
    assert_eq!(
        left_out(&manifest),
        [
            link("out/above"),
            link("out/absolute"),
            link("out/folder"),
            link("out/missing"),
            link("out/proc"),
            ("out/socket", Reason::NotAFile),
        ]
    );
}

#[test]
fn a_task_cannot_replace_its_folder_by_a_link() {
    let stage = Stage::new();
    let outside = stage.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    fs::remove_dir(stage.work()).unwrap();
    symlink(&outside, stage.work()).unwrap();
    let volume = stage.folder.path().join("volume");
    let collected = stage
        .outputs
        .collect(&task(&["**"]), &volume, true, Timestamp::UNIX_EPOCH);
    let collected = collected.unwrap().unwrap();
    assert!(collected.problem.is_some() && collected.files.is_empty());
    assert_eq!(stage.contents(), 0);
}

#[test]
fn names_that_could_deceive_are_left_out_and_shown_escaped() {
    let stage = Stage::new();
    stage.write("out/fine", "1");
    stage.write("out/clear\x1b[2J", "2");
    stage.write("out/line\nbreak", "3");
    stage.write("out/right\u{202e}left", "4");
    let name = stage
        .work()
        .join("out")
        .join(OsStr::from_bytes(b"not\xffutf8"));
    fs::write(name, "5").unwrap();
    let manifest = stage.collect(&task(&["out"])).unwrap();
    assert_eq!(paths(&manifest), ["out/fine"]);
    let left_out = left_out(&manifest);
    assert_eq!(left_out.len(), 4);
    for (path, reason) in left_out {
        assert_eq!(reason, Reason::Name);
        assert!(!path.contains(['\x1b', '\n', '\u{202e}']), "{path:?}");
    }
}

#[test]
fn what_exceeds_a_limit_is_left_out_and_listed() {
    let stage = Stage::new();
    for (name, size) in [("a", 40), ("b", 80), ("c", 20), ("d", 10)] {
        stage.write(name, &"x".repeat(size));
    }
    let mut limited = task(&["**"]);
    limited.request.max_bytes = 100;
    let manifest = stage.collect(&limited).unwrap();
    assert_eq!(paths(&manifest), ["a", "c", "d"], "smaller files still fit");
    assert_eq!(left_out(&manifest), [("b", Reason::SizeLimit)]);
    limited.request.max_files = 2;
    let manifest = stage.collect(&limited).unwrap();
    assert_eq!(paths(&manifest), ["a", "c"]);
    let expected = [("b", Reason::SizeLimit), ("d", Reason::FileLimit)];
    assert_eq!(left_out(&manifest), expected);

    let mut none = task(&["**"]);
    none.request.max_files = 0;
    for n in 0..1_100 {
        stage.write(&format!("many/{n}"), "");
    }
    let manifest = stage.collect(&none).unwrap();
    assert_eq!(
        (manifest.left_out.len(), manifest.left_out_count()),
        (1_000, 1_104)
    );
}

#[test]
fn files_of_a_running_task_do_not_replace_those_of_one_that_has_ended() {
    let stage = Stage::new();
    let task = task(&["**"]);
    stage.write("a", "1");
    assert!(!stage.collect_while(&task, false).unwrap().ended);
    stage.write("a", "12");
    let last = stage.collect(&task).unwrap();
    stage.write("a", "123");
    assert_eq!(stage.collect_while(&task, false), None);
    assert_eq!(stage.outputs.of_run("team", &task.run).unwrap(), [last]);
    // The next attempt has ended.
    assert_eq!(stage.collect(&task).unwrap().bytes(), 3);
}

#[test]
fn damaged_content_is_not_fetched() {
    let stage = Stage::new();
    stage.write("a", "one");
    let manifest = stage.collect(&task(&["a"])).unwrap();
    let content = stage.outputs.content(&manifest.files[0].sha256);
    fs::set_permissions(&content, fs::Permissions::from_mode(0o600)).unwrap();
    for damage in ["two", "longer"] {
        fs::write(&content, damage).unwrap();
        let error = stage.fetch(&manifest, false).unwrap_err();
        assert!(matches!(error, OutputsError::Damaged { .. }), "{error}");
    }
    fs::remove_file(&content).unwrap();
    let error = stage.fetch(&manifest, false).unwrap_err();
    assert!(error.to_string().contains("it was removed"), "{error}");
    assert_eq!(fs::read_dir(stage.target()).unwrap().count(), 0);
}

#[test]
fn manifests_are_not_trusted() {
    let stage = Stage::new();
    stage.write("a", "one");
    let manifest = stage.collect(&task(&["a"])).unwrap();
    let file = manifest.files[0].clone();
    let wrong = |change: &dyn Fn(&mut Manifest)| {
        let mut manifest = manifest.clone();
        change(&mut manifest);
        manifest.check().unwrap_err()
    };
    for path in ["../a", "/etc/passwd", "a/../../b", "", "a\n"] {
        let error = wrong(&|manifest| manifest.files[0].path = path.to_owned());
        assert!(error.contains("is not a path"), "{error}");
    }
    assert!(wrong(&|manifest| manifest.files.push(file.clone())).contains("twice"));
    let below = OutputFile {
        path: "a/b/c".to_owned(),
        ..file.clone()
    };
    assert!(wrong(&|manifest| manifest.files.push(below.clone())).contains("a file and a folder"));
    for sha256 in ["", "../../../etc/passwd", &"A".repeat(64)] {
        let error = wrong(&|manifest| manifest.files[0].sha256 = sha256.to_owned());
        assert!(error.contains("no sha256"), "{error}");
    }
    assert!(wrong(&|manifest| manifest.version = 2).contains("version"));

    let path = stage
        .outputs
        .root()
        .join("runs/team/digits-x7k2p/worker.1.json");
    fs::write(path, "{").unwrap();
    let error = stage.outputs.of_run("team", "digits-x7k2p").unwrap_err();
    assert!(matches!(error, OutputsError::Manifest { .. }), "{error}");
}

#[test]
fn outputs_are_removed_with_their_run_and_shared_contents_with_the_last() {
    let stage = Stage::new();
    stage.write("a", "shared");
    let first = task(&["a"]);
    let mut second = task(&["**"]);
    second.run = "other-x7k2p".to_owned();
    stage.collect(&first).unwrap();
    stage.write("b", "own");
    stage.collect(&second).unwrap();
    let usage = stage.outputs.usage().unwrap();
    assert_eq!((usage.runs, usage.files, usage.bytes), (2, 2, 9));
    assert_eq!(stage.outputs.remove("team", &second.run).unwrap(), 3);
    assert_eq!(stage.outputs.of_run("team", &second.run).unwrap(), []);
    assert_eq!(stage.outputs.of_run("team", &first.run).unwrap().len(), 1);
    // The run's pods may still be terminating.
    assert_eq!(stage.collect(&second), None);
    assert_eq!(stage.outputs.remove("team", &first.run).unwrap(), 6);
    assert_eq!(stage.outputs.usage().unwrap(), OutputsUsage::default());
}

#[test]
fn outputs_of_runs_that_no_longer_exist_are_removed_after_a_day() {
    let stage = Stage::new();
    stage.write("a", "1");
    let task = task(&["a"]);
    stage.collect(&task).unwrap();
    let now = SystemTime::now();
    let later = now + Duration::from_secs(25 * 3600);
    let existing = BTreeSet::from([("team".to_owned(), task.run.clone())]);
    let none = BTreeSet::new();
    assert!(!stage.outputs.has_old(now).unwrap());
    assert_eq!(stage.outputs.remove_old(&none, now).unwrap(), 0);
    assert!(stage.outputs.has_old(later).unwrap());
    assert_eq!(stage.outputs.remove_old(&existing, later).unwrap(), 0);
    assert_eq!(stage.outputs.remove_old(&none, later).unwrap(), 1);
    assert!(!stage.outputs.has_old(later).unwrap());
}

#[test]
fn a_path_that_is_too_long_is_left_out_and_the_list_stays_readable() {
    let stage = Stage::new();
    stage.write("a.txt", "a");
    let folder = vec!["d".repeat(200); 11].join("/");
    stage.write(&format!("{folder}/deep.txt"), "deep");
    let manifest = stage.collect(&task(&["**"])).unwrap();
    assert_eq!(paths(&manifest), ["a.txt"]);
    assert_eq!(manifest.left_out[0].reason, Reason::Name);
    assert!(manifest.left_out[0].path.len() < 600);
    let found = stage.outputs.of_run("team", "digits-x7k2p").unwrap();
    assert_eq!(found, [manifest]);
}

#[test]
fn a_damaged_list_does_not_hide_those_of_other_tasks() {
    let stage = Stage::new();
    stage.write("a.txt", "a");
    let manifest = stage.collect(&task(&["**"])).unwrap();
    let folder = stage.outputs.root().join("runs/team/digits-x7k2p");
    fs::write(folder.join("worker.2.json"), "{\"version\": 1, \"run\": ").unwrap();
    let (found, damaged) = stage.outputs.of_tasks("team", "digits-x7k2p").unwrap();
    assert_eq!(found, [manifest]);
    assert!(damaged[0].to_string().contains("worker.2.json is damaged"));
    assert!(stage.outputs.of_run("team", "digits-x7k2p").is_err());
}

#[test]
fn processes_that_fetch_the_same_file_do_not_name_the_incomplete_file_of_each_other() {
    let stage = Stage::new();
    stage.write("a.txt", "complete");
    let manifest = stage.collect(&task(&["**"])).unwrap();
    fs::create_dir_all(stage.target()).unwrap();
    let name = format!(".longshore-{}.part", &manifest.files[0].sha256[..16]);
    let part = stage.target().join(name);
    fs::write(&part, "comp").unwrap();
    // Another process writes the file.
    let other = fs::File::open(&part).unwrap();
    other.lock().unwrap();
    stage.fetch(&manifest, false).unwrap();
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    assert_eq!(read(&stage.target().join("a.txt")), "complete");
    assert_eq!(read(&part), "comp");
    // The other process was killed, so its file is removed.
    drop(other);
    fs::remove_file(stage.target().join("a.txt")).unwrap();
    stage.fetch(&manifest, false).unwrap();
    assert_eq!(fs::read_dir(stage.target()).unwrap().count(), 1);
}

#[test]
fn a_task_without_metrics_has_no_list() {
    let stage = Stage::new();
    stage.write("model.bin", "weights");
    let task = task(&[longshore_diagnosis::names::METRICS_FILE]);
    assert_eq!(stage.collect(&task), None);
    assert!(!stage.outputs.root().exists());
    stage.write(longshore_diagnosis::names::METRICS_FILE, "{\"loss\": 1}");
    let kept = stage.collect(&task).unwrap();
    assert_eq!(kept.files.len(), 1);
    // A later attempt replaces the list of this one.
    fs::remove_file(stage.work().join(longshore_diagnosis::names::METRICS_FILE)).unwrap();
    assert_eq!(stage.collect(&task).unwrap().files.len(), 0);
}
