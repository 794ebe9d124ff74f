//! A host path on a file system that does not answer.

use std::{
    ffi::CString,
    fs,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::{helpers::is_root, *};

/// A FUSE file system without a server, so that each access waits; until it is dropped.
struct Unresponsive {
    path: PathBuf,
    _device: fs::File,
}

impl Unresponsive {
    /// Returns why it cannot be mounted, if the machine forbids it.
    fn mount(path: &Path) -> Result<Self, String> {
        if !is_root() {
            return Err("only root can mount a file system without a server".to_owned());
        }
        let device = fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .map_err(|error| format!("/dev/fuse: {error}"))?;
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        let options = CString::new(options).unwrap();
        fs::create_dir(path).unwrap();
        mount("none", path, "fuse", MountFlags::empty(), Some(&*options))
            .map_err(|error| format!("mount: {error}"))?;
        Ok(Self {
            path: path.to_owned(),
            _device: device,
        })
    }
}

impl Drop for Unresponsive {
    fn drop(&mut self) {
        // Also ends the accesses that wait.
        unmount(&self.path, UnmountFlags::FORCE | UnmountFlags::DETACH).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stderr, reason = "says why it is skipped")]
async fn a_volume_that_does_not_answer_holds_up_its_pod_only() {
    let stage = Stage::new().await;
    let mounted = match Unresponsive::mount(&stage.folder.path().join("lost")) {
        Ok(mounted) => mounted,
        Err(reason) => return eprintln!("skipped: {reason}"),
    };
    for pod in 0..4 {
        let mut main = shell("ls /lost");
        main["volumeMounts"] = json!([{"name": "lost", "mountPath": "/lost"}]);
        let spec = json!({"restartPolicy": "Never", "containers": [main], "volumes": [
            {"name": "lost", "hostPath": {"path": mounted.path.join("data")}},
        ]});
        stage.run(&format!("waits-{pod}"), spec).await;
    }
    let event = stage.event("waits-0", "FailedMount").await;
    assert!(
        event.contains("volumes are not ready after 5 s: lost"),
        "{event}"
    );

    stage.run("other", run_once("echo ran")).await;
    let other = stage.ended("other").await;
    assert_eq!(stage.log(&other).await, "ran\n");

    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    let now = DeleteOptions {
        grace_seconds: Some(0),
        ..DeleteOptions::default()
    };
    pods.delete("waits-1", &now).await.unwrap();
    stage.until("waits-1", Value::is_null).await;
    drop(mounted);
    stage.stop().await;
}
