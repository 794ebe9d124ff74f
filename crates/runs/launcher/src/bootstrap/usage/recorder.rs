//! Collects measurements into a record whose size is limited. Pure.

use std::time::Duration;

use longshore_diagnosis::usage::{GpuRecord, MOST_POINTS, Point, UsageRecord};

/// The time between two points at first. It doubles whenever the series is full.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);
/// The largest interval of measurements.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The largest gap between measurements that is filled with points: a longer one counts as
/// this long, for example if the machine was suspended.
const LONGEST_GAP: u64 = 100_000;
const MIB: u64 = 1 << 20;

/// A measurement of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Measured {
    /// The time since the begin of the measurements.
    pub(super) at: Duration,
    /// The CPU time until now.
    pub(super) cpu: Duration,
    /// The memory in bytes.
    pub(super) memory: u64,
    /// The GPUs, if they were measured.
    pub(super) gpu: Option<GpuMeasured>,
}

/// A measurement of all GPUs of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct GpuMeasured {
    pub(super) count: u32,
    /// The mean utilisation, in percent.
    pub(super) mean_percent: f64,
    /// The highest utilisation, in percent.
    pub(super) highest_percent: f64,
    pub(super) memory: u64,
    pub(super) total_memory: u64,
}

/// The values since the last point.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    began: Duration,
    cpu_at_begin: Duration,
    memory: u64,
    gpu_percent: f64,
    gpu_memory: u64,
    gpu_measurements: u32,
}

/// Collects measurements.
#[derive(Debug)]
pub(super) struct Recorder {
    record: UsageRecord,
    interval: Duration,
    bucket: Bucket,
    /// Up to this utilisation in percent, a GPU counts as idle.
    idle_percent: f64,
    idle_since: Option<Duration>,
    gpu_percent_sum: f64,
    gpu_measurements: u32,
}

impl Recorder {
    /// `start` is the time of the first measurement, in seconds since 1970.
    pub(super) fn new(start: i64, idle_percent: f64) -> Self {
        Self {
            record: UsageRecord {
                start,
                interval: FIRST_INTERVAL.as_secs(),
                ..UsageRecord::default()
            },
            interval: FIRST_INTERVAL,
            bucket: Bucket::default(),
            idle_percent,
            idle_since: None,
            gpu_percent_sum: 0.0,
            gpu_measurements: 0,
        }
    }

    /// The time until the next measurement.
    pub(super) fn pause(&self) -> Duration {
        self.interval.min(LONGEST_PAUSE)
    }

    /// The time for which all GPUs have been idle.
    pub(super) fn idle(&self) -> Option<Duration> {
        self.idle_since
            .map(|since| Duration::from_secs_f64(self.record.seconds).saturating_sub(since))
    }

    pub(super) fn record(&self) -> &UsageRecord {
        &self.record
    }

    /// Records that the task is ended because its GPUs were idle for this time.
    pub(super) fn ends_idle(&mut self, idle: Duration) {
        self.record.idle_end = Some(idle.as_secs());
    }

    /// Adds a measurement.
    pub(super) fn add(&mut self, measured: Measured) {
        let record = &mut self.record;
        record.seconds = round(measured.at.as_secs_f64());
        record.cpu_seconds = round(measured.cpu.as_secs_f64()).max(record.cpu_seconds);
        record.peak_memory = record.peak_memory.max(measured.memory);
        self.bucket.memory = self.bucket.memory.max(measured.memory);
        if let Some(gpu) = measured.gpu {
            self.add_gpu(measured.at, gpu);
        }
        let passed = measured.at.saturating_sub(self.bucket.began);
        if passed >= self.interval {
            self.close(measured, passed);
        }
    }

    fn add_gpu(&mut self, at: Duration, gpu: GpuMeasured) {
        self.bucket.gpu_percent += gpu.mean_percent;
        self.bucket.gpu_memory = self.bucket.gpu_memory.max(gpu.memory);
        self.bucket.gpu_measurements = self.bucket.gpu_measurements.saturating_add(1);
        self.gpu_percent_sum += gpu.mean_percent;
        self.gpu_measurements = self.gpu_measurements.saturating_add(1);
        match gpu.highest_percent <= self.idle_percent {
            true => self.idle_since = self.idle_since.or(Some(at)),
            false => self.idle_since = None,
        }
        let idle = self.idle().map_or(0, |idle| idle.as_secs());
        let known = self.record.gpu.unwrap_or_default();
        self.record.gpu = Some(GpuRecord {
            count: gpu.count,
            mean_percent: round(self.gpu_percent_sum / f64::from(self.gpu_measurements)),
            peak_memory: known.peak_memory.max(gpu.memory),
            total_memory: gpu.total_memory,
            idle_seconds: idle,
        });
    }

    /// Ends the bucket with one point, or with several after a long pause.
    fn close(&mut self, measured: Measured, passed: Duration) {
        let cpu = measured.cpu.saturating_sub(self.bucket.cpu_at_begin);
        let millicores = cpu.as_millis().saturating_mul(1000) / passed.as_millis().max(1);
        let bucket = self.bucket;
        let measurements = f64::from(bucket.gpu_measurements);
        let gpu = (bucket.gpu_measurements > 0).then(|| {
            let percent = (bucket.gpu_percent / measurements).round();
            (whole(percent), bucket.gpu_memory / MIB)
        });
        let point = Point {
            cpu_millicores: u64::try_from(millicores).unwrap_or(u64::MAX),
            memory_mib: bucket.memory.div_ceil(MIB),
            // Between two measurements of GPUs, the last one counts.
            gpu: gpu.or_else(|| self.record.points.last()?.gpu),
        };
        let points = passed.as_secs() / self.interval.as_secs().max(1);
        for _ in 0..points.clamp(1, LONGEST_GAP) {
            self.push(point);
        }
        self.bucket = Bucket {
            began: measured.at,
            cpu_at_begin: measured.cpu,
            ..Bucket::default()
        };
    }

    /// Adds a point. A full series is halved first.
    fn push(&mut self, point: Point) {
        let points = &mut self.record.points;
        if points.len() >= MOST_POINTS {
            *points = points.chunks(2).map(merged).collect();
            self.interval = self.interval.saturating_mul(2);
            self.record.interval = self.interval.as_secs();
        }
        points.push(point);
    }
}

/// The point of a period that is twice as long.
fn merged(pair: &[Point]) -> Point {
    let [one, other] = pair else {
        return pair.first().copied().unwrap_or_default();
    };
    let mean = |one: u64, other: u64| one.midpoint(other);
    Point {
        cpu_millicores: mean(one.cpu_millicores, other.cpu_millicores),
        memory_mib: one.memory_mib.max(other.memory_mib),
        gpu: match (one.gpu, other.gpu) {
            (Some(one), Some(other)) => Some((mean(one.0, other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        },
    }
}

/// Two digits are enough, and keep the record short.
fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn whole(percent: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the conversion of a small positive number"
    )]
    let whole = percent.clamp(0.0, 100.0) as u64;
    whole
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(seconds: u64, cores: f64, memory: u64, percent: Option<f64>) -> Measured {
        Measured {
            at: Duration::from_secs(seconds),
            cpu: Duration::from_secs_f64(cores * seconds as f64),
            memory: memory * MIB,
            gpu: percent.map(|percent| GpuMeasured {
                count: 2,
                mean_percent: percent / 2.0,
                highest_percent: percent,
                memory: 100 * MIB,
                total_memory: 200 * MIB,
            }),
        }
    }

    #[test]
    fn a_long_task_has_a_limited_series_of_the_same_mean() {
        let mut recorder = Recorder::new(7, 5.0);
        for second in 1..=100_000 {
            let memory = if second == 50_000 { 999 } else { 10 };
            recorder.add(at(second, 1.5, memory, None));
            assert!(recorder.record().points.len() <= MOST_POINTS);
        }
        let record = recorder.record();
        assert_eq!((record.start, record.interval), (7, 2048));
        assert_eq!(record.points.len(), 49);
        assert_eq!(record.peak_memory, 999 * MIB);
        let highest = record.points.iter().map(|point| point.memory_mib).max();
        assert_eq!(highest, Some(999));
        assert!(
            record
                .points
                .iter()
                .all(|point| point.cpu_millicores == 1500)
        );
        assert_eq!(record.mean_cpu(), Some(1.5));
        assert_eq!(recorder.pause(), LONGEST_PAUSE);
    }

    #[test]
    fn a_pause_of_the_machine_fills_points() {
        let mut recorder = Recorder::new(0, 5.0);
        recorder.add(at(1, 1.0, 1, None));
        recorder.add(at(11, 1.0, 1, None));
        assert_eq!(recorder.record().points.len(), 11);
        recorder.add(at(u64::from(u32::MAX), 1.0, 1, None));
        assert!(recorder.record().points.len() <= MOST_POINTS);
    }

    #[test]
    fn gpus_are_idle_while_none_is_used() {
        let mut recorder = Recorder::new(0, 5.0);
        recorder.add(at(1, 0.1, 1, Some(80.0)));
        assert_eq!(recorder.idle(), None);
        recorder.add(at(2, 0.1, 1, Some(5.0)));
        recorder.add(at(3, 0.1, 1, None));
        recorder.add(at(12, 0.1, 1, Some(0.0)));
        assert_eq!(recorder.idle(), Some(Duration::from_secs(10)));
        let gpu = recorder.record().gpu.unwrap();
        assert_eq!((gpu.count, gpu.idle_seconds), (2, 10));
        assert_eq!(gpu.mean_percent, 14.17);
        assert_eq!(gpu.peak_memory, 100 * MIB);
        assert_eq!(recorder.record().points[2].gpu, Some((3, 100)));
        recorder.add(at(13, 0.1, 1, Some(50.0)));
        assert_eq!(recorder.idle(), None);
        assert_eq!(recorder.record().gpu.unwrap().idle_seconds, 0);
    }
}
