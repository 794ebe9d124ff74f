//! A host path on a file system that does not answer.

use std::{
    ffi::CString,
    fs,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::{helpers::is_root, *};

/// A FUSE file system without a server, so that each access waits until the value is dropped.
struct Unresponsive {
    path: PathBuf,
    _device: fs::File,
}

impl Unresponsive {
    /// Returns an error with the reason if the machine forbids the mount.
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

/// Serves a FUSE file system that answers only its start, so that even a killed process waits for
/// it.
fn take_requests(device: &fs::File) {
    use std::io::{Read as _, Write as _};
    const INIT: u32 = 26;
    let mut device = device.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut request = vec![0; 1 << 18];
        while let Ok(length) = device.read(&mut request) {
            let request = &request[..length];
            if request.get(4..8) != Some(&INIT.to_ne_bytes()) {
                continue;
            }
            // The header with the number of the request, then the protocol's version.
            let mut answer = vec![0; 16 + 64];
            answer[..4].copy_from_slice(&80_u32.to_ne_bytes());
            answer[8..16].copy_from_slice(&request[8..16]);
            answer[16..20].copy_from_slice(&7_u32.to_ne_bytes());
            answer[20..24].copy_from_slice(&31_u32.to_ne_bytes());
            answer[36..40].copy_from_slice(&4096_u32.to_ne_bytes());
            if device.write_all(&answer).is_err() {
                return;
            }
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stderr, reason = "says why it is skipped")]
async fn a_pod_stays_until_its_processes_that_cannot_be_killed_have_ended() {
    let mut stage = Stage::new().await;
    if !super::helpers::has_namespaces(&stage).await {
        return;
    }
    let mounted = match Unresponsive::mount(&stage.folder.path().join("lost")) {
        Ok(mounted) => mounted,
        Err(reason) => return eprintln!("skipped: {reason}"),
    };
    take_requests(&mounted._device);
    let script = format!("echo waits; exec cat {}/file", mounted.path.display());
    for name in ["deleted", "left"] {
        let mut main = shell(&script);
        main["securityContext"] = json!({"privileged": true});
        let spec = json!({"restartPolicy": "Always", "containers": [main]});
        stage.run(name, spec).await;
        let running = |pod: &Value| pod["status"]["phase"] == "Running";
        let pod = stage.until(name, running).await;
        let waits = async {
            while stage.log(&pod).await != "waits\n" {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, waits).await.unwrap();
    }
    let pods = stage.cluster.pods().in_namespace("default").unwrap();
    let soon = DeleteOptions {
        grace_seconds: Some(1),
        ..DeleteOptions::default()
    };
    pods.delete("deleted", &soon).await.unwrap();
    let event = stage.event("deleted", "FailedKillPod").await;
    assert!(event.contains("(cat) wait in the kernel"), "{event}");
    assert!(pods.find("deleted").await.unwrap().is_some());

    // The next agent finds the recorded processes, and starts nothing alongside them.
    stage.agent.take().unwrap().stop().await;
    stage.start().await;
    let event = stage.event("left", "FailedKillPod").await;
    assert!(event.contains("has not ended"), "{event}");
    assert!(pods.find("deleted").await.unwrap().is_some());
    let restarts = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].clone();
    let left = stage.until("left", |_| true).await;
    assert_eq!(restarts(&left), 0, "{left:#}");

    drop(mounted);
    stage.until("deleted", Value::is_null).await;
    stage.until("left", |pod| restarts(pod) == 1).await;
    stage.stop().await;
}
