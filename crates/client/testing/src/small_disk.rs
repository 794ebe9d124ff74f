//! A child process of a test with its own small file system.

use std::{path::Path, process::Command};

/// The variable with the folder of the file system, in the child process.
pub const DISK: &str = "LONGSHORE_TEST_SMALL_DISK";

/// Runs the ignored test `child` of this test program in a separate process, in which `folder` is
/// an empty file system of `size`, such as `6m`. The child reads the folder from the variable
/// [`DISK`].
///
/// Prints a line and does nothing if this machine does not allow user namespaces.
///
/// # Panics
/// The child fails, or does not exist.
#[allow(clippy::print_stderr, reason = "shows in the test's output")]
pub fn run_child(folder: &Path, size: &str, child: &str) {
    let run = |inside: &str| {
        // Root of a user namespace may mount.
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c"])
            .arg(format!(
                "mount -t tmpfs -o size={size} none \"${DISK}\" && {inside}"
            ))
            .env(DISK, folder)
            .env("PROGRAM", std::env::current_exe().unwrap_or_default())
            .output()
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match run("true") {
        Ok(tried) if tried.status.success() => {}
        Ok(tried) => {
            let reason = text(&tried.stderr);
            return eprintln!("skipped: cannot mount a disk: {reason}");
        }
        Err(error) => return eprintln!("skipped: cannot run unshare: {error}"),
    }
    let command = format!("exec \"$PROGRAM\" --exact {child} --ignored --nocapture");
    let (has_succeeded, output, errors) = match run(&command) {
        Ok(ended) => (
            ended.status.success(),
            text(&ended.stdout),
            text(&ended.stderr),
        ),
        Err(error) => (false, String::new(), error.to_string()),
    };
    assert!(has_succeeded, "{output}{errors}");
    assert!(output.contains("1 passed"), "{output}");
}
