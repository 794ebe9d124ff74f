//! Runs a sweep of many short combinations on a warm cluster.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    program::Instance,
    report::{Failure, Report, median, middle, millis},
};

/// The number of combinations that run at the same time: the default, and more.
const PARALLEL: [Option<&str>; 2] = [None, Some("64")];

/// Measures combinations per second, from the start of `longshore run` to its end. Fails unless
/// each combination succeeds.
pub(crate) fn run(report: &mut Report, runs: usize, combinations: usize) -> Result<(), Failure> {
    let instance = Instance::new()?;
    instance.up(&[])?;
    let folder = instance.path().join("code");
    fs::create_dir(&folder)?;
    fs::write(folder.join("hello.txt"), "hello")?;
    let sweep = |count: usize, parallel: Option<&str>| -> Result<Duration, Failure> {
        let values = format!("n=1..{count}");
        let mut arguments = vec!["run", "code", "--sweep", &values];
        arguments.extend(parallel.into_iter().flat_map(|tasks| ["--parallel", tasks]));
        arguments.extend(["--", "true"]);
        let started = Instant::now();
        instance.longshore(&arguments)?;
        Ok(started.elapsed())
    };
    sweep(2, None)?;
    for parallel in PARALLEL {
        let mut times = Vec::new();
        for _ in 0..runs.max(1) {
            times.push(sweep(combinations, parallel)?);
            let succeeded = succeeded(&instance)?;
            if succeeded != combinations {
                return Err(format!("{succeeded} of {combinations} combinations succeeded").into());
            }
            if times.len() < runs {
                instance.longshore(&["rm", "last"])?;
            }
        }
        let tasks = parallel.unwrap_or("16, the default");
        report.figure(
            &format!("{combinations} combinations of `true`, --parallel {tasks}"),
            rate(combinations, middle(&times)),
            "100/s",
        );
        let table = median(runs, || instance.longshore(&["sweep", "last"]).map(drop))?;
        report.figure("their table, `longshore sweep last`", millis(table), "");
        instance.longshore(&["rm", "last"])?;
    }
    let (now, peak) = instance.memory()?;
    report.figure(
        "memory of the cluster: current, peak",
        format!("{now:.0}, {peak:.0} MB"),
        "",
    );
    Ok(())
}

/// The number of combinations of the last sweep that succeeded.
fn succeeded(instance: &Instance) -> Result<usize, Failure> {
    let table = instance.longshore(&["sweep", "last", "--no-logs", "--output", "json"])?;
    let table: Value = serde_json::from_slice(&table.stdout)?;
    let rows = table["combinations"]
        .as_array()
        .ok_or("the table has no combinations")?;
    let succeeded = rows.iter().filter(|row| row["state"] == "succeeded");
    Ok(succeeded.count())
}

fn rate(combinations: usize, time: Duration) -> String {
    #[allow(clippy::cast_precision_loss, reason = "a figure for display")]
    let rate = combinations as f64 / time.as_secs_f64();
    format!("{rate:.0}/s ({:.2} s)", time.as_secs_f64())
}
