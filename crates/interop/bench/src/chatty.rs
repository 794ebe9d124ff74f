//! A client follows 200 pods that all write logs at the same time.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    time::Instant,
};

use crate::{
    program::Instance,
    report::{Failure, Report},
};

const PODS: usize = 200;
/// Log lines per pod, about 80 bytes each.
const LINES: usize = 5_000;

/// Measures lines per second and the client's memory. Fails unless each line arrives once
/// and in order.
pub(crate) fn run(report: &mut Report) -> Result<(), Failure> {
    let instance = Instance::new()?;
    instance.up(&[])?;
    let folder = instance.path().join("code");
    fs::create_dir(&folder)?;
    let toml = format!(
        "command = \"\"\"i=0; while [ $i -lt {LINES} ]; do echo \"line $i of a task that has much to say about nothing, over and over\"; i=$((i+1)); done\"\"\"\n[roles.worker]\ncount = {PODS}\n"
    );
    fs::write(folder.join("longshore.toml"), toml)?;
    let begin = Instant::now();
    let mut child = instance
        .command(&["run", "code", "--start-timeout", "30m"])?
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let stdout = child.stdout.take().ok_or("the program has no output")?;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let (mut lines, mut peak, mut first) = (0_usize, 0.0_f64, None);
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        first.get_or_insert_with(Instant::now);
        let (task, text) = line.split_once(" | ").ok_or("a line without a task")?;
        let next = seen.entry(task.trim().to_owned()).or_default();
        if !text.starts_with(&format!("line {next} ")) {
            return Err(format!("{task}: {text:?} instead of line {next}").into());
        }
        *next += 1;
        lines += 1;
        if lines % 50_000 == 0 {
            peak = peak.max(memory(&child)?);
        }
    }
    let took = first.unwrap_or(begin).elapsed();
    let status = child.wait()?;
    if !status.success() || lines != PODS * LINES {
        return Err(format!("{status}, {lines} lines of {}", PODS * LINES).into());
    }
    #[allow(clippy::cast_precision_loss, reason = "a figure for display")]
    let rate = lines as f64 / took.as_secs_f64();
    report.figure(
        &format!("{PODS} pods of {LINES} lines, followed"),
        format!("{rate:.0} lines/s"),
        "no line lost or duplicated",
    );
    report.figure(
        "peak memory of the client",
        format!("{peak:.0} MB"),
        "bounded",
    );
    Ok(())
}

/// The peak memory of the process, in MB.
fn memory(child: &Child) -> Result<f64, Failure> {
    let text = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let line = line.ok_or("no VmHWM in the process's status")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}
