//! Measures the start of a cluster, and its idle memory.

use crate::{
    program::Instance,
    report::{Failure, Report, median, median_async, millis},
};

/// Starts a cluster in this process, and as a background process.
pub(crate) async fn run(report: &mut Report, runs: usize) -> Result<(), Failure> {
    let in_process = median_async(runs, async || {
        let cluster = longshore::embedded::start().await?;
        cluster.stop().await;
        Ok(())
    })
    .await?;
    report.figure("in process, start and stop", millis(in_process), "");

    let mut times = Vec::new();
    let mut idle = 0.0;
    for _ in 0..runs {
        let instance = Instance::new()?;
        times.push(median(1, || instance.up(&["--ephemeral"]))?);
        idle = instance.memory()?.0;
    }
    times.sort();
    let up = times.get(times.len() / 2).copied().unwrap_or_default();
    report.figure(
        "`longshore up --ephemeral` until ready",
        millis(up),
        "50 ms",
    );
    report.figure("memory when idle", format!("{idle:.0} MB"), "40 MB");
    Ok(())
}
