//! Runs `longshore run -- true` on a warm cluster.

use std::fs;

use crate::{
    program::Instance,
    report::{Failure, Report, median, millis},
};

/// Measures the time from the start of the command to its exit.
pub(crate) fn run(report: &mut Report, runs: usize) -> Result<(), Failure> {
    let instance = Instance::new()?;
    instance.up(&[])?;
    let folder = instance.path().join("code");
    fs::create_dir(&folder)?;
    fs::write(folder.join("hello.txt"), "hello")?;
    let folder = folder
        .to_str()
        .ok_or("the temporary folder's name is not UTF-8")?;
    let once = || instance.longshore(&["run", folder, "--", "true"]).map(drop);
    once()?;
    let time = median(runs, once)?;
    report.figure("`longshore run -- true`, warm", millis(time), "300 ms");
    Ok(())
}
