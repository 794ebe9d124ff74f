//! Prints figures with their goals, and computes medians.

use std::time::{Duration, Instant};

/// An error that stops a benchmark.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// Prints the figures of one benchmark.
pub(crate) struct Report;

impl Report {
    /// Begins the report of a benchmark.
    pub(crate) fn new(name: &str) -> Self {
        println!("\n{name}");
        Self
    }

    /// Prints a figure and its goal.
    pub(crate) fn figure(&mut self, what: &str, value: impl std::fmt::Display, goal: &str) {
        let goal = if goal.is_empty() {
            String::new()
        } else {
            format!("   goal: {goal}")
        };
        println!("  {what:<52} {value:>14}{goal}");
    }
}

/// The median duration of `runs` calls of `work`.
pub(crate) fn median(
    runs: usize,
    mut work: impl FnMut() -> Result<(), Failure>,
) -> Result<Duration, Failure> {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let started = Instant::now();
        work()?;
        times.push(started.elapsed());
    }
    Ok(middle(&times))
}

/// Like [`median`], for asynchronous work.
pub(crate) async fn median_async(
    runs: usize,
    mut work: impl AsyncFnMut() -> Result<(), Failure>,
) -> Result<Duration, Failure> {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let started = Instant::now();
        work().await?;
        times.push(started.elapsed());
    }
    Ok(middle(&times))
}

/// The median of durations.
pub(crate) fn middle(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Formats a duration: `12.3 ms`.
pub(crate) fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Formats the ratio of `theirs` to `ours`: `3.2 times`.
pub(crate) fn ratio(theirs: Duration, ours: Duration) -> String {
    format!("{:.1} times", theirs.as_secs_f64() / ours.as_secs_f64())
}
