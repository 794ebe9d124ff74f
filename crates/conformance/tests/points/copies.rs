//! Point 45: copies into containers and out of them.

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

use crate::sessions::{Stage, lacks_a_node};

/// Why a copy failed, without what was to be copied.
fn problem(outcome: Result<Copied>) -> String {
    match outcome.unwrap_err() {
        Error::Copy { problem, .. } => problem,
        other => panic!("{other:?}"),
    }
}

/// A folder in a pod, and one here.
struct Places {
    stage: Stage,
    here: tempfile::TempDir,
    there: String,
}

impl Places {
    async fn new() -> Self {
        let stage = Stage::sleeping().await;
        let output = stage.pod.output(["mktemp", "-d"], None).await.unwrap();
        let there = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        let here = tempfile::tempdir().unwrap();
        Self { stage, here, there }
    }

    async fn shell(&self, script: &str) -> String {
        let script = format!("cd {} && {script}", self.there);
        let output = self.stage.pod.output(["sh", "-c", &script], None).await;
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.code, 0, "{said}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn here(&self, path: &str) -> PathBuf {
        self.here.path().join(path)
    }

    async fn fetch(&self, from: &str, to: &str) -> Result<Copied> {
        let from = format!("{}/{from}", self.there);
        let options = CopyOptions::default();
        self.stage
            .pod
            .copy_out(&from, &self.here(to), &options)
            .await
    }

    async fn send(&self, from: &str, to: &str) -> Result<Copied> {
        let to = format!("{}/{to}", self.there);
        let options = CopyOptions::default();
        self.stage
            .pod
            .copy_in(&self.here(from), &to, &options)
            .await
    }

    async fn end(self) {
        self.shell("rm -rf ..?* .[!.]* *").await;
        self.stage.server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn point_45_copies_out_are_whole_and_stay_in_their_place() {
    if lacks_a_node().await {
        return;
    }
    let places = Places::new().await;
    places
        .shell(
            "mkdir -p tree/deep && head -c 3000000 /dev/urandom > tree/big && echo hi > tree/deep/-x \
             && chmod 750 tree/deep/-x && touch -d @1000000000 tree/deep/-x && ln -s deep/-x tree/in \
             && ln -s /etc/passwd tree/out && ln tree/deep/-x tree/same && mkfifo tree/pipe && ln -s tree top",
        )
        .await;
    let sum = places.shell("cksum < tree/big").await;

    let copied = places.fetch("tree", "").await.unwrap();
    assert_eq!(copied.path, places.here("tree"));
    assert_eq!((copied.moved.files, copied.moved.bytes), (4, 3_000_006));
    let mut left_out: Vec<_> = copied
        .moved
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
        .stdin(fs::File::open(places.here("tree/big")).unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(big.stdout).unwrap(), sum);
    let found = fs::metadata(places.here("tree/in")).unwrap();
    assert_eq!(found.permissions().mode() & 0o7777, 0o750);
    assert_eq!(
        found.modified().unwrap(),
        UNIX_EPOCH + Duration::from_secs(1_000_000_000)
    );
    assert_eq!(
        fs::read_to_string(places.here("tree/same")).unwrap(),
        "hi\n"
    );

    // A folder that is there is not mixed with another; a file is replaced.
    assert!(problem(places.fetch("tree", "").await).contains("is a folder that is there already"));
    let renamed = places.fetch("tree", "other").await.unwrap();
    assert_eq!(renamed.path, places.here("other"));
    fs::write(places.here("-x"), "old").unwrap();
    places.fetch("tree/deep/-x", "").await.unwrap();
    assert_eq!(fs::read_to_string(places.here("-x")).unwrap(), "hi\n");

    for (from, to, words) in [
        ("none", "", "none"),
        ("top", "", "it is a link to tree: copy that"),
        ("tree/pipe", "", "it is a named pipe"),
        ("tree/..", "", "name the file or folder itself"),
        ("tree", "no/such/place", "no/such is not there"),
    ] {
        let told = problem(places.fetch(from, to).await);
        assert!(told.contains(words), "{from}: {told}");
    }
    // Nothing is left of what failed.
    let mut names: Vec<_> = fs::read_dir(places.here.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["-x", "other", "tree"]);
    places.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn point_45_copies_in_arrive_under_their_names() {
    if lacks_a_node().await {
        return;
    }
    let places = Places::new().await;
    fs::create_dir_all(places.here("data/deep")).unwrap();
    fs::write(places.here("data/deep/file"), vec![7; 3_000_000]).unwrap();
    fs::write(places.here("data/run.sh"), "echo it runs").unwrap();
    fs::set_permissions(
        places.here("data/run.sh"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    symlink("run.sh", places.here("data/link")).unwrap();
    std::os::unix::net::UnixListener::bind(places.here("data/socket")).unwrap();

    let seen = Arc::new(AtomicU64::new(0));
    let progress = {
        let seen = seen.clone();
        Arc::new(move |moved: &longshore::client::Moved| seen.store(moved.bytes, Ordering::Relaxed))
    };
    let options = CopyOptions {
        container: Some("main".to_owned()),
        progress: Some(progress),
    };
    let pod = &places.stage.pod;
    let copied = pod
        .copy_in(&places.here("data"), &places.there, &options)
        .await
        .unwrap();
    assert_eq!(copied.path, Path::new(&places.there).join("data"));
    assert_eq!((copied.moved.files, copied.moved.left_out.len()), (3, 1));
    assert_eq!(
        (copied.moved.bytes, seen.load(Ordering::Relaxed)),
        (3_000_012, 3_000_012)
    );
    assert_eq!(
        places
            .shell("./data/link; wc -c < data/deep/file; ls data")
            .await,
        "it runs\n3000000\ndeep\nlink\nrun.sh\n"
    );
    // Under another name, beside and over what is there.
    places.send("data", "again").await.unwrap();
    places.send("data/run.sh", "again/deep/file").await.unwrap();
    assert_eq!(places.shell("cat again/deep/file").await, "echo it runs");

    for (from, to, words) in [
        ("none", "", "No such file"),
        ("data", "no/such/place", "no/such"),
        ("data", "new/", "no such folder is in the container"),
        ("data", "data/..none/", "no such folder is in the container"),
    ] {
        let told = problem(places.send(from, to).await);
        assert!(told.contains(words), "{from}: {told}");
    }
    places.end().await;
}

/// A container is not trusted: here its `tar` is not.
#[tokio::test(flavor = "multi_thread")]
async fn point_45_copies_out_of_hostile_containers() {
    if lacks_a_node().await {
        return;
    }
    let tools = tempfile::tempdir().unwrap();
    let container = json!({
        "command": ["/bin/sleep", "1000"],
        "env": [{"name": "PATH", "value": tools.path()}],
    });
    let stage = Stage::start(container).await;
    let here = tempfile::tempdir().unwrap();
    let copy = async |script: &str| {
        let tar = tools.path().join("tar");
        if script.is_empty() {
            let _ = fs::remove_file(&tar);
        } else {
            fs::write(&tar, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")).unwrap();
            fs::set_permissions(&tar, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let options = CopyOptions::default();
        let outcome = stage.pod.copy_out("/data", here.path(), &options).await;
        let told = problem(outcome);
        assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0, "{told}");
        told
    };
    let make =
        |name: &str| format!("cd $(mktemp -d); echo x > x; tar -cPf - --transform 's,x,{name},' x");
    for (script, words) in [
        (String::new(), "the container has no tar"),
        (make("../x"), "../x has `..` in its path"),
        (make("/tmp/x"), "/tmp/x has an absolute path"),
        (make("other"), "nothing came of it"),
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
    ] {
        let told = copy(&script).await;
        assert!(told.contains(words), "{script}: {told}");
    }
    stage.server.stop().await;
}
