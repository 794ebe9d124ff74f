//! `down --force` while a process of a pod waits in the kernel, where no signal ends it.

use std::{
    ffi::CString,
    fs::{self, File},
    io::{Read as _, Write as _},
    os::fd::AsRawFd,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::machine::{Machine, eventually, found_with, is_alive, processes_with, unique_word};

/// A FUSE file system that takes requests and never answers them, until it is dropped.
struct Unresponsive {
    path: PathBuf,
    /// A process waits for an answer.
    is_asked: Arc<AtomicBool>,
}

impl Unresponsive {
    /// Returns why it cannot be mounted, if the machine forbids it.
    fn mount(path: PathBuf) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can mount a file system that others use".to_owned());
        }
        let device = File::options()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .map_err(|error| format!("/dev/fuse: {error}"))?;
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        let options = CString::new(options).unwrap();
        fs::create_dir(&path).unwrap();
        mount("none", &path, "fuse", MountFlags::empty(), Some(&*options))
            .map_err(|error| format!("mount: {error}"))?;
        let is_asked = Arc::<AtomicBool>::default();
        let asked = is_asked.clone();
        std::thread::spawn(move || take_requests(device, &asked));
        Ok(Self { path, is_asked })
    }
}

impl Drop for Unresponsive {
    fn drop(&mut self) {
        // Also ends the pending requests.
        unmount(&self.path, UnmountFlags::FORCE | UnmountFlags::DETACH).unwrap();
    }
}

/// Answers the start of the protocol only.
fn take_requests(mut device: File, is_asked: &AtomicBool) {
    const INIT: u32 = 26;
    let mut request = vec![0; 1 << 18];
    while let Ok(length) = device.read(&mut request) {
        let request = &request[..length];
        if request.get(4..8) != Some(&INIT.to_ne_bytes()) {
            is_asked.store(true, Ordering::SeqCst);
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
}

/// Returns true if a process with a word in its arguments waits in the kernel, also after a signal.
fn waits(word: &str) -> bool {
    found_with(word).iter().any(|(pid, _)| {
        let status = fs::read_to_string(format!("/proc/{pid}/stat"));
        let status = status.unwrap_or_default();
        let state = status
            .rsplit_once(") ")
            .map(|(_, rest)| rest.chars().next());
        state.flatten() == Some('D')
    })
}

#[test]
#[allow(clippy::print_stderr, reason = "says why it is skipped")]
fn down_with_force_does_not_wait_for_processes_that_cannot_be_killed() {
    let machine = Machine::new();
    let word = unique_word();
    let mounted = match Unresponsive::mount(machine.home().join("unresponsive")) {
        Ok(mounted) => mounted,
        Err(reason) => return eprintln!("skipped: {reason}"),
    };
    machine.longshore(&["up"]).expect(0);
    let first = machine.pid().unwrap();
    let file = mounted.path.join(&word);
    let pod = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stuck"},
        "spec": {"containers": [{
            "name": "main", "image": "any", "command": ["cat", file],
            "securityContext": {"privileged": true},
        }]},
    });
    machine.write("pod.json", &pod.to_string());
    machine.longshore(&["apply", "-f", "pod.json"]).expect(0);
    eventually("the process waits", || {
        mounted.is_asked.load(Ordering::SeqCst)
    });
    machine.longshore(&["down", "--force"]).expect(0);
    assert!(!is_alive(first));
    assert!(waits(&word), "no signal ends it");
    // The next cluster does not wait for the process either.
    machine.longshore(&["up"]).expect(0);
    machine.longshore(&["get", "nodes"]).expect(0);
    machine.longshore(&["down", "--force"]).expect(0);
    assert!(waits(&word), "no signal ends it");
    drop(mounted);
    eventually("the process ends", || processes_with(&word).is_empty());
}
