//! The resource usage of a task, which its bootstrap records in the termination message of its
//! container. Pure.
//!
//! The record is the first line of the message, so that programs can append their own.

use serde::{Deserialize, Serialize};

/// The begin of the line.
pub const PREFIX: &str = "longshore-usage: ";
/// The exit code of a task that [`UsageRecord::idle_end`] explains.
pub const IDLE_EXIT_CODE: i32 = 123;
/// The maximum number of points of a series.
pub const MOST_POINTS: usize = 60;

/// The resource usage of a task in one attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageRecord {
    /// The time of the first measurement, in seconds since 1970.
    pub start: i64,
    /// The duration of the measurements, in seconds.
    pub seconds: f64,
    /// The CPU time, in seconds.
    pub cpu_seconds: f64,
    /// The maximum of the measured memory, in bytes.
    pub peak_memory: u64,
    /// The usage of the task's GPUs, if they could be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuRecord>,
    /// The GPUs were idle for this time in seconds, and the task was ended for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_end: Option<u64>,
    /// The time between two points of the series, in seconds.
    pub interval: u64,
    /// The series.
    pub points: Vec<Point>,
}

/// The usage of a task's GPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuRecord {
    /// The number of GPUs.
    pub count: u32,
    /// The mean utilisation of all GPUs, in percent.
    pub mean_percent: f64,
    /// The maximum of the memory of all GPUs, in bytes.
    pub peak_memory: u64,
    /// The memory that all GPUs have, in bytes.
    pub total_memory: u64,
    /// The time for which all GPUs had been idle at the last measurement, in seconds.
    pub idle_seconds: u64,
}

/// A point of a series. In JSON, a list of the CPU in thousandths of a core, the memory in MiB,
/// and, for tasks with GPUs, their utilisation in percent and their memory in MiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<u64>", from = "Vec<u64>")]
pub struct Point {
    /// The mean CPU usage, in thousandths of a core.
    pub cpu_millicores: u64,
    /// The maximum of the memory, in MiB.
    pub memory_mib: u64,
    /// The mean utilisation of the GPUs in percent, and the maximum of their memory in MiB.
    pub gpu: Option<(u64, u64)>,
}

impl From<Point> for Vec<u64> {
    fn from(point: Point) -> Self {
        let mut numbers = vec![point.cpu_millicores, point.memory_mib];
        numbers.extend(
            point
                .gpu
                .into_iter()
                .flat_map(|(percent, mib)| [percent, mib]),
        );
        numbers
    }
}

impl From<Vec<u64>> for Point {
    fn from(numbers: Vec<u64>) -> Self {
        let number = |at: usize| numbers.get(at).copied();
        Self {
            cpu_millicores: number(0).unwrap_or(0),
            memory_mib: number(1).unwrap_or(0),
            gpu: number(2).zip(number(3)),
        }
    }
}

impl UsageRecord {
    /// The mean number of cores; `None` before the first measurement.
    #[must_use]
    pub fn mean_cpu(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.cpu_seconds / self.seconds)
    }

    /// The line of a termination message.
    ///
    /// # Errors
    /// The record contains a number that is not finite.
    pub fn line(&self) -> Result<String, serde_json::Error> {
        Ok(format!("{PREFIX}{}\n", serde_json::to_string(self)?))
    }
}

/// Divides a termination message into the record, if there is one, and the rest, which the task
/// wrote.
#[must_use]
pub fn split(message: &str) -> (Option<UsageRecord>, &str) {
    let Some(text) = message.strip_prefix(PREFIX) else {
        return (None, message);
    };
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    let record = serde_json::from_str(line).ok();
    (record.map(limited), rest)
}

/// Limits a record to the size and numbers that a bootstrap writes, because any program can write a
/// termination message.
fn limited(mut record: UsageRecord) -> UsageRecord {
    record.points.truncate(MOST_POINTS);
    record.interval = record.interval.clamp(1, 1 << 32);
    record.seconds = record.seconds.max(0.0);
    record.cpu_seconds = record.cpu_seconds.max(0.0);
    record
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn record() -> UsageRecord {
        UsageRecord {
            start: 1_700_000_000,
            seconds: 20.0,
            cpu_seconds: 5.0,
            peak_memory: 3 << 20,
            interval: 2,
            points: vec![
                Point {
                    cpu_millicores: 250,
                    memory_mib: 3,
                    gpu: Some((87, 4000)),
                },
                Point::default(),
            ],
            ..UsageRecord::default()
        }
    }

    #[test]
    fn a_record_is_the_first_line_of_a_message() {
        let line = record().line().unwrap();
        assert!(line.contains("[[250,3,87,4000],[0,0]]"), "{line}");
        assert_eq!(split(&line), (Some(record()), ""));
        let more = format!("{line}own words\nof a task");
        assert_eq!(split(&more), (Some(record()), "own words\nof a task"));
        assert_eq!(record().mean_cpu(), Some(0.25));
        assert_eq!(UsageRecord::default().mean_cpu(), None);
    }

    #[test]
    fn other_messages_have_no_record() {
        assert_eq!(split(""), (None, ""));
        assert_eq!(split("longshore: no"), (None, "longshore: no"));
        let broken = format!("{PREFIX}{{\"seconds\": 1");
        assert_eq!(split(&broken), (None, ""));
    }

    #[test]
    fn hostile_records_are_limited() {
        let points = vec!["[18446744073709551615]"; 500].join(",");
        let text = format!("{PREFIX}{{\"interval\":0,\"seconds\":-5,\"points\":[{points}]}}");
        let found = split(&text).0.unwrap();
        assert_eq!(found.points.len(), MOST_POINTS);
        assert_eq!((found.interval, found.mean_cpu()), (1, None));
    }

    #[test]
    fn the_largest_record_fits_a_termination_message() {
        let point = Point {
            cpu_millicores: 999_999,
            memory_mib: 9_999_999,
            gpu: Some((100, 9_999_999)),
        };
        let largest = UsageRecord {
            seconds: 123_456_789.123,
            cpu_seconds: 123_456_789.123,
            peak_memory: u64::MAX,
            gpu: Some(GpuRecord {
                count: 16,
                mean_percent: 12.345_678,
                peak_memory: u64::MAX,
                total_memory: u64::MAX,
                idle_seconds: u64::MAX,
            }),
            idle_end: Some(u64::MAX),
            interval: 1 << 32,
            points: vec![point; MOST_POINTS],
            ..record()
        };
        let length = largest.line().unwrap().len();
        assert!(length <= 2400, "{length}");
    }
}
