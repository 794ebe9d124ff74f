//! Saves a file while `longshore dev` runs, and waits for the restarted command.

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use crate::{
    program::Instance,
    report::{Failure, Report, median, millis},
};

/// The number of other files in the folder.
const FILES: usize = 1_000;
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A program that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures the time from the save to the first action of the restarted command.
pub(crate) fn run(report: &mut Report, runs: usize) -> Result<(), Failure> {
    let instance = Instance::new()?;
    instance.up(&[])?;
    let code = instance.path().join("code");
    for number in 0..FILES {
        let folder = code.join(format!("package{}", number / 50));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("module{number}.py")), "x = 1\n")?;
    }
    fs::write(code.join("version"), "0")?;
    let seen = instance.path().join("seen");
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .ok_or("the name is not UTF-8")
    };
    let (folder, path) = (text(&code)?, text(&seen)?);
    let script = format!("cp version {path}.new; mv {path}.new {path}; exec sleep 1000");
    let mut command = instance.command(&["dev", &folder, "--", "sh", "-c", &script])?;
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let _running = Running(child);
    let wait = |version: &str| -> Result<(), Failure> {
        let begin = Instant::now();
        while fs::read_to_string(&seen).ok().as_deref() != Some(version) {
            if begin.elapsed() > TIMEOUT {
                return Err(format!("version {version} does not start").into());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    };
    wait("0")?;
    let mut version = 0;
    let time = median(runs.max(1), || {
        version += 1;
        let text = version.to_string();
        fs::write(code.join("version"), &text)?;
        wait(&text)
    })?;
    let what = format!("`longshore dev`, {FILES} files: save to restart");
    report.figure(&what, millis(time), "300 ms");
    Ok(())
}
