//! The series of a run's tasks as lines of charts, per task and summed. Pure.

use longshore_launcher::usage::TaskUsage;

/// The maximum number of tasks that a chart has a line of.
pub(crate) const MOST_LINES: usize = 12;
/// The number of steps of the summed line.
const SLOTS: u32 = 120;
const MIB: f64 = 1024.0 * 1024.0;

/// A measured resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Cores.
    Cpu,
    /// Bytes of memory.
    Memory,
    /// Utilisation of GPUs in percent.
    Gpu,
    /// Bytes of the memory of GPUs.
    GpuMemory,
}

impl Measure {
    /// All, in the order of the values of a [`Series`].
    pub(crate) const ALL: [Self; 4] = [Self::Cpu, Self::Memory, Self::Gpu, Self::GpuMemory];

    /// Returns true if the values of several tasks are added; otherwise, their mean counts.
    pub(crate) fn is_summed(self) -> bool {
        self != Self::Gpu
    }
}

/// The resource usage of a task over time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    /// The task, as `worker/0`.
    pub(crate) task: String,
    /// The time of the first measurement, in seconds since 1970.
    pub(crate) start: i64,
    /// The time between two points in seconds.
    pub(crate) interval: u32,
    /// The values of each point, in the order of [`Measure::ALL`].
    pub(crate) points: Vec<[Option<f64>; 4]>,
}

impl Series {
    /// The series of a task, if it has recorded one.
    pub(crate) fn of(usage: &TaskUsage) -> Option<Self> {
        let record = usage.record.as_ref()?;
        let points = record.points.iter().map(|point| {
            [
                Some(point.cpu_millicores as f64 / 1000.0),
                Some(point.memory_mib as f64 * MIB),
                point.gpu.map(|(percent, _)| percent as f64),
                point.gpu.map(|(_, mib)| mib as f64 * MIB),
            ]
        });
        Some(Self {
            task: usage.task.to_string(),
            start: record.start,
            // The text of a task is untrusted, so the interval is limited to a year.
            interval: u32::try_from(record.interval).ok()?.clamp(1, 31_536_000),
            points: points.collect(),
        })
    }

    fn value(&self, point: usize, measure: Measure) -> Option<f64> {
        let values = self.points.get(point)?;
        let place = Measure::ALL.iter().position(|own| *own == measure)?;
        values[place].filter(|value| value.is_finite() && *value >= 0.0)
    }

    fn peak(&self, measure: Measure) -> Option<f64> {
        let points = 0..self.points.len();
        let values = points.filter_map(|point| self.value(point, measure));
        values.reduce(f64::max)
    }

    /// The end of the last point, relative to a time.
    fn end(&self, begin: i64) -> f64 {
        self.offset(begin) + f64::from(self.interval) * self.points.len() as f64
    }

    fn offset(&self, begin: i64) -> f64 {
        self.start.saturating_sub(begin) as f64
    }

    /// The value at a time that is relative to `begin`.
    fn at(&self, begin: i64, time: f64, measure: Measure) -> Option<f64> {
        let point = (time - self.offset(begin)) / f64::from(self.interval);
        match point >= 0.0 && point < self.points.len() as f64 {
            true => self.value(point as usize, measure),
            false => None,
        }
    }
}

/// A value for a part of the time axis, whose begin and end are from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) value: f64,
}

/// The line of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskLine {
    pub(crate) task: String,
    pub(crate) peak: f64,
    pub(crate) steps: Vec<Step>,
}

/// A measure over time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chart {
    pub(crate) measure: Measure,
    /// The begin of the time axis, in seconds since 1970.
    pub(crate) begin: i64,
    /// The length of the time axis in seconds.
    pub(crate) seconds: f64,
    /// All tasks together.
    pub(crate) all: Vec<Step>,
    /// The tasks with the highest values.
    pub(crate) lines: Vec<TaskLine>,
    /// The number of tasks that have values, but no line.
    pub(crate) more: usize,
}

impl Chart {
    /// The highest value of all tasks together.
    pub(crate) fn peak(&self) -> f64 {
        self.all.iter().map(|step| step.value).fold(0.0, f64::max)
    }

    /// The last value of all tasks together.
    pub(crate) fn last(&self) -> f64 {
        self.all.last().map_or(0.0, |step| step.value)
    }
}

/// The charts of the measures that some task has.
pub(crate) fn charts(series: &[Series]) -> Vec<Chart> {
    let series: Vec<&Series> = series.iter().filter(|own| !own.points.is_empty()).collect();
    let Some(begin) = series.iter().map(|own| own.start).min() else {
        return Vec::new();
    };
    let ends = series.iter().map(|own| own.end(begin));
    let seconds = ends.fold(1.0, f64::max);
    let charts = Measure::ALL.into_iter();
    charts
        .filter_map(|measure| chart(&series, measure, begin, seconds))
        .collect()
}

fn chart(series: &[&Series], measure: Measure, begin: i64, seconds: f64) -> Option<Chart> {
    let peaks = series.iter();
    let mut own: Vec<(&Series, f64)> = peaks
        .filter_map(|series| Some((*series, series.peak(measure)?)))
        .collect();
    if own.is_empty() {
        return None;
    }
    let all = (0..SLOTS).filter_map(|slot| {
        let time = (f64::from(slot) + 0.5) / f64::from(SLOTS) * seconds;
        let values = own.iter();
        let values: Vec<f64> = values
            .filter_map(|(series, _)| series.at(begin, time, measure))
            .collect();
        let sum: f64 = values.iter().sum();
        let value = match measure.is_summed() {
            true => sum,
            false => sum / values.len().max(1) as f64,
        };
        (!values.is_empty()).then(|| Step {
            from: f64::from(slot) / f64::from(SLOTS),
            to: f64::from(slot + 1) / f64::from(SLOTS),
            value,
        })
    });
    let all = all.collect();
    // Stable, so that equal tasks stay in their order.
    own.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let more = own.len().saturating_sub(MOST_LINES);
    own.truncate(MOST_LINES);
    let line = |(series, peak): (&Series, f64)| {
        let offset = series.offset(begin);
        let points = 0..series.points.len();
        let steps = points.filter_map(|point| {
            let from = offset + f64::from(series.interval) * point as f64;
            let to = from + f64::from(series.interval);
            Some(Step {
                from: (from / seconds).min(1.0),
                to: (to / seconds).min(1.0),
                value: series.value(point, measure)?,
            })
        });
        TaskLine {
            task: series.task.clone(),
            peak,
            steps: steps.collect(),
        }
    };
    Some(Chart {
        measure,
        begin,
        seconds,
        all,
        lines: own.into_iter().map(line).collect(),
        more,
    })
}

/// The end of a value axis: the next of 1, 2 or 5, times a power of 10, in its unit.
pub(crate) fn axis_end(measure: Measure, peak: f64) -> f64 {
    match measure {
        Measure::Gpu => 100.0,
        Measure::Cpu => round_up(peak.max(0.1)),
        Measure::Memory | Measure::GpuMemory => {
            let mut unit = MIB;
            while peak >= unit * 1000.0 {
                unit *= 1024.0;
            }
            round_up((peak / unit).max(1.0)) * unit
        }
    }
}

fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let factors = [1.0, 2.0, 5.0].into_iter();
    let found = factors
        .map(|factor| factor * power)
        .find(|end| *end >= value);
    found.unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn series(task: &str, start: i64, interval: u32, cpu: &[f64]) -> Series {
        let points = cpu.iter().map(|cpu| [Some(*cpu), Some(MIB), None, None]);
        Series {
            task: task.to_owned(),
            start,
            interval,
            points: points.collect(),
        }
    }

    #[test]
    fn tasks_with_different_intervals_are_added() {
        let tasks = [
            series("worker/0", 1000, 1, &[1.0, 1.0, 1.0, 1.0]),
            series("worker/1", 1002, 2, &[0.5]),
        ];
        let charts = charts(&tasks);
        let measures: Vec<Measure> = charts.iter().map(|chart| chart.measure).collect();
        assert_eq!(measures, [Measure::Cpu, Measure::Memory]);
        let cpu = &charts[0];
        assert_eq!((cpu.begin, cpu.seconds), (1000, 4.0));
        let at = |time: f64| {
            let steps = cpu.all.iter();
            let mut own = steps.filter(|step| step.from <= time && time < step.to);
            own.next().unwrap().value
        };
        assert_eq!((at(0.1), at(0.6), at(0.99)), (1.0, 1.5, 1.5));
        assert_eq!((cpu.peak(), cpu.last()), (1.5, 1.5));
        let second = &cpu.lines[1];
        assert_eq!(second.task, "worker/1");
        let wanted = Step {
            from: 0.5,
            to: 1.0,
            value: 0.5,
        };
        assert_eq!(second.steps, [wanted]);
    }

    #[test]
    fn a_mean_of_gpus_and_a_gap_in_time() {
        let mut tasks = [
            series("worker/0", 0, 1, &[1.0]),
            series("worker/1", 9, 1, &[1.0]),
            series("worker/2", 9, 1, &[1.0]),
        ];
        tasks[1].points[0][2] = Some(90.0);
        tasks[2].points[0][2] = Some(30.0);
        let charts = charts(&tasks);
        let gpu = charts.iter().find(|chart| chart.measure == Measure::Gpu);
        let gpu = gpu.unwrap();
        assert_eq!(gpu.last(), 60.0);
        // The first task has no GPU, and for 8 seconds none ran.
        assert!(gpu.all.iter().all(|step| step.from >= 0.9));
        assert_eq!(gpu.lines.len(), 2);
    }

    #[test]
    fn the_number_of_lines_is_limited() {
        let tasks: Vec<Series> = (0..200)
            .map(|task| series(&format!("worker/{task}"), 0, 1, &[f64::from(task)]))
            .collect();
        let charts = charts(&tasks);
        assert_eq!((charts[0].lines.len(), charts[0].more), (12, 188));
        assert_eq!(charts[0].lines[0].task, "worker/199");
        assert_eq!(charts[0].peak(), 19_900.0);
    }

    #[test]
    fn invalid_values_and_times_draw_nothing_odd() {
        assert_eq!(charts(&[]), []);
        let tasks = [
            series("worker/0", i64::MIN, 1, &[f64::NAN]),
            series("worker/1", i64::MAX, u32::MAX, &[1.0, -1.0, f64::INFINITY]),
        ];
        for chart in charts(&tasks) {
            assert!(chart.peak().is_finite() && chart.seconds.is_finite());
            for step in chart.lines.iter().flat_map(|line| &line.steps) {
                assert!(
                    (0.0..=1.0).contains(&step.from) && step.to <= 1.0,
                    "{step:?}"
                );
            }
        }
    }

    #[test]
    fn value_axes_end_at_round_numbers() {
        assert_eq!(axis_end(Measure::Cpu, 3.2), 5.0);
        assert_eq!(axis_end(Measure::Cpu, 0.0), 0.1);
        assert_eq!(axis_end(Measure::Gpu, 12.0), 100.0);
        assert_eq!(axis_end(Measure::Memory, 300.0 * MIB), 500.0 * MIB);
        assert_eq!(axis_end(Measure::Memory, 1100.0 * MIB), 2048.0 * MIB);
        assert_eq!(axis_end(Measure::Memory, 0.0), MIB);
    }
}
