//! Point 45: copies to and from containers.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use longshore::client::{Copied, CopyOptions, Error, Result};
use serde_json::json;

use crate::sessions::{RunningPod, lacks_a_node};

/// The reason for a failed copy, without the paths.
fn problem(outcome: Result<Copied>) -> String {
    match outcome.unwrap_err() {
        Error::Copy { problem, .. } => problem,
        other => panic!("{other:?}"),
    }
}

/// A folder in a pod and a local one.
struct Folders {
    running: RunningPod,
    local: tempfile::TempDir,
    remote: String,
}

impl Folders {
    async fn new() -> Self {
        let running = RunningPod::sleeping().await;
        let output = running.pod.output(["mktemp", "-d"], None).await.unwrap();
        let remote = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let local = tempfile::tempdir().unwrap();
        Self {
            running,
            local,
            remote,
        }
    }

    async fn shell(&self, script: &str) -> String {
        let script = format!("cd {} && {script}", self.remote);
        let output = self.running.pod.output(["sh", "-c", &script], None).await;
        let output = output.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.code, 0, "{stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn local(&self, path: &str) -> PathBuf {
        self.local.path().join(path)
    }

    async fn fetch(&self, from: &str, to: &str) -> Result<Copied> {
        let from = format!("{}/{from}", self.remote);
        let options = CopyOptions::default();
        self.running
            .pod
            .copy_out(&from, &self.local(to), &options)
            .await
    }

    async fn send(&self, from: &str, to: &str) -> Result<Copied> {
        let to = format!("{}/{to}", self.remote);
        let options = CopyOptions::default();
        self.running
            .pod
            .copy_in(&self.local(from), &to, &options)
            .await
    }

    async fn end(self) {
        self.shell("rm -rf ..?* .[!.]* *").await;
        self.running.server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn point_45_files_are_copied_out_and_stay_within_the_target_folder() {
    if lacks_a_node().await {
        return;
    }
    let folders = Folders::new().await;
    folders
        .shell(
            "mkdir -p tree/deep && head -c 3000000 /dev/urandom > tree/big && echo hi > tree/deep/-x \
             && chmod 750 tree/deep/-x && touch -d @1000000000 tree/deep/-x && ln -s deep/-x tree/in \
             && ln -s /etc/passwd tree/out && ln tree/deep/-x tree/same && mkfifo tree/pipe && ln -s tree top",
        )
        .await;
    let sum = folders.shell("cksum < tree/big").await;

    let copied = folders.fetch("tree", "").await.unwrap();
    assert_eq!(copied.path, folders.local("tree"));
    assert_eq!(
        (copied.transferred.files, copied.transferred.bytes),
        (4, 3_000_006)
    );
    let mut left_out: Vec<_> = copied
        .transferred
        .left_out
        .iter()
        .map(|(path, why)| format!("{} {why}", path.display()))
        .collect();
    left_out.sort();
    assert_eq!(
        left_out,
        [
            "./tree/out is a link out of the folder, to /etc/passwd",
            "./tree/pipe is a named pipe"
        ]
    );
    let big = std::process::Command::new("cksum")
        .stdin(fs::File::open(folders.local("tree/big")).unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(big.stdout).unwrap(), sum);
    let found = fs::metadata(folders.local("tree/in")).unwrap();
    assert_eq!(found.permissions().mode() & 0o7777, 0o750);
    assert_eq!(
        found.modified().unwrap(),
        UNIX_EPOCH + Duration::from_secs(1_000_000_000)
    );
    assert_eq!(
        fs::read_to_string(folders.local("tree/same")).unwrap(),
        "hi\n"
    );

    // An existing folder is not merged with the copy; an existing file is replaced.
    assert!(problem(folders.fetch("tree", "").await).contains("already exists: delete it"));
    let renamed = folders.fetch("tree", "other").await.unwrap();
    assert_eq!(renamed.path, folders.local("other"));
    fs::write(folders.local("-x"), "old").unwrap();
    folders.fetch("tree/deep/-x", "").await.unwrap();
    assert_eq!(fs::read_to_string(folders.local("-x")).unwrap(), "hi\n");

    for (from, to, words) in [
        ("none", "", "none"),
        ("top", "", "it is a symbolic link to tree: copy the target"),
        ("tree/pipe", "", "it is a named pipe"),
        ("tree/..", "", "specify the file or folder itself"),
        ("tree", "no/such/place", "no/such does not exist"),
    ] {
        let message = problem(folders.fetch(from, to).await);
        assert!(message.contains(words), "{from}: {message}");
    }
    // Failed copies leave no files.
    let mut names: Vec<_> = fs::read_dir(folders.local.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["-x", "other", "tree"]);
    folders.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn point_45_files_are_copied_into_containers() {
    if lacks_a_node().await {
        return;
    }
    let folders = Folders::new().await;
    fs::create_dir_all(folders.local("data/deep")).unwrap();
    fs::write(folders.local("data/deep/file"), vec![7; 3_000_000]).unwrap();
    fs::write(folders.local("data/run.sh"), "echo it runs").unwrap();
    fs::set_permissions(
        folders.local("data/run.sh"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    symlink("run.sh", folders.local("data/link")).unwrap();
    std::os::unix::net::UnixListener::bind(folders.local("data/socket")).unwrap();

    let seen = Arc::new(AtomicU64::new(0));
    let progress = {
        let seen = seen.clone();
        Arc::new(move |transferred: &longshore::client::Transferred| {
            seen.store(transferred.bytes, Ordering::Relaxed)
        })
    };
    let options = CopyOptions {
        container: Some("main".to_owned()),
        progress: Some(progress),
    };
    let pod = &folders.running.pod;
    let copied = pod
        .copy_in(&folders.local("data"), &folders.remote, &options)
        .await
        .unwrap();
    assert_eq!(copied.path, Path::new(&folders.remote).join("data"));
    assert_eq!(
        (copied.transferred.files, copied.transferred.left_out.len()),
        (3, 1)
    );
    assert_eq!(
        (copied.transferred.bytes, seen.load(Ordering::Relaxed)),
        (3_000_012, 3_000_012)
    );
    assert_eq!(
        folders
            .shell("./data/link; wc -c < data/deep/file; ls data")
            .await,
        "it runs\n3000000\ndeep\nlink\nrun.sh\n"
    );
    // Copies to a new name, and over an existing file.
    folders.send("data", "again").await.unwrap();
    folders
        .send("data/run.sh", "again/deep/file")
        .await
        .unwrap();
    assert_eq!(folders.shell("cat again/deep/file").await, "echo it runs");

    for (from, to, words) in [
        ("none", "", "No such file"),
        ("data", "no/such/place", "no/such"),
        ("data", "new/", "the container has no such folder"),
        ("data", "data/..none/", "the container has no such folder"),
    ] {
        let message = problem(folders.send(from, to).await);
        assert!(message.contains(words), "{from}: {message}");
    }
    folders.end().await;
}

/// Containers are not trusted: here, `tar` returns invalid archives.
#[tokio::test(flavor = "multi_thread")]
async fn point_45_archives_of_untrusted_containers_are_checked() {
    if lacks_a_node().await {
        return;
    }
    let tools = tempfile::tempdir().unwrap();
    let container = json!({
        "command": ["/bin/sleep", "1000"],
        "env": [{"name": "PATH", "value": tools.path()}],
    });
    let running = RunningPod::start(container).await;
    let local = tempfile::tempdir().unwrap();
    let tar = tools.path().join("tar");
    let write_tar = |script: &str| {
        fs::write(&tar, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")).unwrap();
        fs::set_permissions(&tar, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let copy = async |script: &str| {
        if script.is_empty() {
            let _ = fs::remove_file(&tar);
        } else {
            write_tar(script);
        }
        let options = CopyOptions::default();
        let outcome = running.pod.copy_out("/data", local.path(), &options).await;
        let message = problem(outcome);
        assert_eq!(fs::read_dir(local.path()).unwrap().count(), 0, "{message}");
        message
    };
    let make =
        |name: &str| format!("cd $(mktemp -d); echo x > x; tar -cPf - --transform 's,x,{name},' x");
    for (script, words) in [
        (String::new(), "the container has no tar"),
        (make("../x"), "../x has `..` in its path"),
        (make("/tmp/x"), "/tmp/x has an absolute path"),
        (make("other"), "the archive does not contain it"),
        (
            "head -c 2000 /dev/urandom".to_owned(),
            "the archive cannot be read",
        ),
        ("echo no room >&2; exit 2".to_owned(), "no room"),
        (
            format!("({}) | head -c 600; echo broken >&2; exit 1", make("data")),
            "broken",
        ),
        ("yes >&2 & yes; wait".to_owned(), "y\ny\n"),
        (
            format!("({}); head -c 9000000 /dev/zero", make("data")),
            "more than 4194304 bytes follow its end",
        ),
        (
            format!("({}); exec yes", make("data")),
            "more than 4194304 bytes follow its end",
        ),
    ] {
        let message = copy(&script).await;
        assert!(message.contains(words), "{script}: {message}");
    }
    // Padding is not an error.
    let script = format!("({}); head -c 1000000 /dev/zero", make("data"));
    write_tar(&script);
    let options = CopyOptions::default();
    let copied = running.pod.copy_out("/data", local.path(), &options).await;
    assert_eq!(copied.unwrap().transferred.bytes, 2);
    running.server.stop().await;
}
