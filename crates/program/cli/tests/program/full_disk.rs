//! `down` when the disk of the data folder can take no file.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

use longshore_testing::small_disk::{self, DISK};

use crate::machine::{Answer, Machine};

fn longshore(machine: &Machine, command: &str, data: &Path) -> Answer {
    let mut command = machine.command(&[command]);
    Answer::new(&command.arg("--data-dir").arg(data).output().unwrap())
}

/// Runs `down` where the folder is read-only.
fn down_read_only(machine: &Machine, data: &Path) -> Answer {
    let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && \
                  exec \"$0\" down --data-dir \"$1\"";
    let down = machine.command(&["down"]);
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]);
    command.arg(down.get_program()).arg(data);
    Answer::new(&command.output().unwrap())
}

/// Stops a cluster in the given way.
fn stop(machine: &Machine, data: &Path, down: impl FnOnce() -> Answer) {
    longshore(machine, "up", data).expect(0);
    let stopped = down().expect(0);
    assert!(stopped.out.contains("has stopped"), "{}", stopped.out);
    let again = longshore(machine, "down", data).expect(0);
    assert!(again.out.contains("is not running"), "{}", again.out);
}

#[test]
#[ignore = "the child of the test below"]
fn child_on_a_small_disk() {
    let disk = PathBuf::from(std::env::var_os(DISK).unwrap());
    let (machine, data, full) = (Machine::new(), disk.join("data"), disk.join("full"));
    stop(&machine, &data, || down_read_only(&machine, &data));
    stop(&machine, &data, || {
        std::fs::create_dir(&full).unwrap();
        let files = (0..).map_while(|number: u32| File::create(full.join(number.to_string())).ok());
        assert!(files.count() > 100);
        longshore(&machine, "down", &data)
    });
}

#[test]
fn down_needs_no_space() {
    let disk = tempfile::tempdir().unwrap();
    small_disk::run_child(
        disk.path(),
        "64m,nr_inodes=2000",
        "full_disk::child_on_a_small_disk",
    );
}
