//! The waiting times in docs/side-by-side.md: runs the commands of the page on a warm embedded
//! cluster.

#[path = "../../../program/cli/tests/documents/blocks.rs"]
mod blocks;

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    program::Instance,
    report::{Failure, Report, middle},
};

/// Measures the time that the commands of each numbered section take, including the checks of
/// their results. The other sections prepare and clean up.
pub(crate) fn run(report: &mut Report, runs: usize) -> Result<(), Failure> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/side-by-side.md");
    let page = fs::read_to_string(page)?;
    let mut headings = Vec::new();
    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for _ in 0..runs.max(1) {
        let instance = Instance::new()?;
        let mut sums: BTreeMap<&str, Duration> = BTreeMap::new();
        for block in blocks::blocks(&page) {
            if !block.name.is_empty() {
                let file = instance.path().join(block.name);
                fs::create_dir_all(file.parent().ok_or("a file has no folder")?)?;
                fs::write(file, block.text)?;
                continue;
            }
            if block.language != "sh" {
                continue;
            }
            let mut shell = instance.shell(&block.text)?;
            let begin = Instant::now();
            let output = shell.output()?;
            let took = begin.elapsed();
            if !output.status.success() {
                let why = String::from_utf8_lossy(&output.stderr);
                return Err(format!("{}\n{}\n{why}", block.text, output.status).into());
            }
            if !headings.contains(&block.heading) {
                headings.push(block.heading);
            }
            *sums.entry(block.heading).or_default() += took;
        }
        for (heading, time) in sums {
            times.entry(heading).or_default().push(time);
        }
    }
    for heading in headings {
        if heading.starts_with(|first: char| first.is_ascii_digit()) {
            let time = middle(&times[heading]).as_secs_f64();
            report.figure(heading, format!("{time:.2} s"), "");
        }
    }
    Ok(())
}
