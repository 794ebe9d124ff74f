//! The resource usage of a whole run in one line, and hints about its requests. Pure.

use super::TaskUsage;

/// The minimum duration of a run for hints, in seconds.
const SHORTEST: f64 = 60.0;
/// A request is too high if it is at least twice the usage and exceeds it by at least this number
/// of cores.
const SPARE_CORES: f64 = 1.0;
/// The same limit for memory, in bytes.
const SPARE_MEMORY: f64 = 2.0 * 1_073_741_824.0;
/// Usage above this fraction of the requested memory is close to the limit.
const CLOSE: f64 = 0.9;
/// Up to this mean utilisation in percent, GPUs are hardly used.
const LOW_GPU: f64 = 15.0;

/// GPUs that are idle for this time are reported, in seconds.
const IDLE: u64 = 600;

/// A sentence about each task whose GPUs are idle, or were idle at its end, for ten minutes or
/// longer.
#[must_use]
pub fn idle_gpus(tasks: &[TaskUsage]) -> Vec<String> {
    let idle = tasks.iter().filter_map(|task| {
        let gpu = task.record.as_ref()?.gpu?;
        let minutes = gpu.idle_seconds / 60;
        (gpu.idle_seconds >= IDLE).then(|| match task.is_running {
            true => format!(
                "the GPUs of {} have not been used for {minutes} minutes; `idle_timeout` ends such tasks",
                task.task
            ),
            false => format!(
                "the GPUs of {} were not used in the last {minutes} minutes of the task",
                task.task
            ),
        })
    });
    idle.collect()
}

/// The resource usage of a whole run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunUsageSummary {
    /// The number of tasks with a record.
    pub tasks: usize,
    /// The sum of the CPU time, in seconds.
    pub cpu_seconds: f64,
    /// The mean number of cores of a task.
    pub mean_cpu: f64,
    /// The highest memory of a task, in bytes.
    pub peak_memory: u64,
    /// The mean utilisation of GPUs in percent, and the highest GPU memory of a task in bytes.
    pub gpu: Option<(f64, u64)>,
    /// Recommended changes of the requests.
    pub hints: Vec<String>,
}

impl RunUsageSummary {
    /// Summarizes the records of tasks. `None` without records.
    #[must_use]
    pub fn of(tasks: &[TaskUsage]) -> Option<Self> {
        let recorded: Vec<_> = tasks
            .iter()
            .filter_map(|task| Some((task, task.record.as_ref()?)))
            .collect();
        if recorded.is_empty() {
            return None;
        }
        let records = || recorded.iter().map(|(_, record)| record);
        let cpu_seconds: f64 = records().map(|record| record.cpu_seconds).sum();
        let seconds: f64 = records().map(|record| record.seconds).sum();
        let gpus: Vec<_> = records().filter_map(|record| record.gpu).collect();
        let gpu = (!gpus.is_empty()).then(|| {
            let sum: f64 = gpus.iter().map(|gpu| gpu.mean_percent).sum();
            let peak = gpus.iter().map(|gpu| gpu.peak_memory).max();
            (sum / gpus.len() as f64, peak.unwrap_or(0))
        });
        let mut summary = Self {
            tasks: recorded.len(),
            cpu_seconds,
            mean_cpu: cpu_seconds / seconds.max(0.01),
            peak_memory: records()
                .map(|record| record.peak_memory)
                .max()
                .unwrap_or(0),
            gpu,
            hints: Vec::new(),
        };
        let longest = records().map(|record| record.seconds).fold(0.0, f64::max);
        let requested = |of: fn(&TaskUsage) -> Option<f64>| {
            let requests = recorded.iter().filter_map(|(task, _)| of(task));
            requests.fold(None, |most: Option<f64>, one| {
                Some(most.map_or(one, |most| most.max(one)))
            })
        };
        summary.hints.extend(idle_gpus(tasks));
        if longest >= SHORTEST {
            let cpu = requested(|task| task.requested.cpu);
            let memory = requested(|task| task.requested.memory);
            summary.add_hints(cpu, memory);
        }
        Some(summary)
    }

    fn add_hints(&mut self, cpu: Option<f64>, memory: Option<f64>) {
        let (used, peak) = (self.mean_cpu, self.peak_memory as f64);
        if let Some(cpu) = cpu.filter(|cpu| cpu - used >= SPARE_CORES && *cpu >= 2.0 * used) {
            self.hints.push(format!(
                "each task requested {} CPUs and used {used:.1}: lower `cpu`, or use more threads",
                short(cpu)
            ));
        }
        if let Some(memory) =
            memory.filter(|memory| memory - peak >= SPARE_MEMORY && *memory >= 2.0 * peak)
        {
            self.hints.push(format!(
                "each task requested {} of memory and used at most {}: lower `memory`",
                bytes(memory),
                bytes(peak)
            ));
        }
        if let Some(memory) = memory.filter(|memory| peak > CLOSE * memory) {
            self.hints.push(format!(
                "a task used {} of {} of memory: raise `memory` before it is killed",
                bytes(peak),
                bytes(memory)
            ));
        }
        if let Some((percent, _)) = self.gpu.filter(|(percent, _)| *percent <= LOW_GPU) {
            self.hints.push(format!(
                "the GPUs were used by {percent:.0}% on average: load data with more processes, or use larger batches"
            ));
        }
    }

    /// `cpu 0.9 mem 1.1Gi (highest) gpu 87%`.
    #[must_use]
    pub fn line(&self) -> String {
        let gpu = self.gpu.map_or_else(String::new, |(percent, memory)| {
            format!(
                ", mean GPU {percent:.0}%, peak GPU memory {}",
                bytes(memory as f64)
            )
        });
        let each = if self.tasks > 1 { " of a task" } else { "" };
        format!(
            "mean CPU {:.1}, peak memory {}{gpu}{each}",
            self.mean_cpu,
            bytes(self.peak_memory as f64)
        )
    }
}

/// `cpu 3.2 mem 1.1Gi gpu 87%`: the sums over all running tasks, and the mean of their GPUs.
#[must_use]
pub fn live_line(tasks: &[TaskUsage]) -> Option<String> {
    let sum = |of: fn(&TaskUsage) -> Option<f64>| {
        let values: Vec<f64> = tasks.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>())
    };
    let (cpu, memory) = (sum(TaskUsage::cpu)?, sum(TaskUsage::memory)?);
    let gpus: Vec<f64> = tasks
        .iter()
        .filter_map(|task| Some(task.gpu()?.0))
        .collect();
    let gpu = match gpus.len() {
        0 => String::new(),
        count => format!(" gpu {:.0}%", gpus.iter().sum::<f64>() / count as f64),
    };
    Some(format!("cpu {cpu:.1} mem {}{gpu}", bytes(memory)))
}

/// A size as in `1.1Gi`.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    let mut value = bytes.max(0.0);
    for unit in ["", "Ki", "Mi", "Gi"] {
        if value < 1000.0 {
            let digits = usize::from(!unit.is_empty() && value < 10.0);
            return format!("{value:.digits$}{unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1}Ti")
}

/// A number without a fraction if it is an integer.
fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_diagnosis::{
        names::Task,
        usage::{GpuRecord, Point, UsageRecord},
    };

    use super::{super::Requested, *};

    fn task(index: u32, cpu: f64, memory_gib: u64, running: bool) -> TaskUsage {
        TaskUsage {
            task: Task {
                role: "worker".to_owned(),
                index,
            },
            pod: format!("worker-{index}"),
            container: "main".to_owned(),
            program: None,
            has_accelerators: true,
            is_running: running,
            requested: Requested {
                cpu: Some(8.0),
                memory: Some(16.0 * 1_073_741_824.0),
            },
            current: None,
            record: Some(UsageRecord {
                seconds: 100.0,
                cpu_seconds: cpu * 100.0,
                peak_memory: memory_gib << 30,
                gpu: Some(GpuRecord {
                    count: 1,
                    mean_percent: 10.0,
                    peak_memory: 1 << 30,
                    ..GpuRecord::default()
                }),
                interval: 2,
                points: vec![Point {
                    cpu_millicores: 1600,
                    memory_mib: 600,
                    gpu: Some((87, 4000)),
                }],
                ..UsageRecord::default()
            }),
        }
    }

    #[test]
    fn a_run_is_summarized_with_hints() {
        let summary = RunUsageSummary::of(&[task(0, 0.9, 2, false), task(1, 0.9, 1, false)]);
        let summary = summary.unwrap();
        assert_eq!(
            summary.line(),
            "mean CPU 0.9, peak memory 2.0Gi, mean GPU 10%, peak GPU memory 1.0Gi of a task"
        );
        assert_eq!(
            summary.hints,
            [
                "each task requested 8 CPUs and used 0.9: lower `cpu`, or use more threads",
                "each task requested 16Gi of memory and used at most 2.0Gi: lower `memory`",
                "the GPUs were used by 10% on average: load data with more processes, or use larger batches",
            ]
        );
        let close = RunUsageSummary::of(&[task(0, 7.0, 15, false)]).unwrap();
        assert!(close.hints[0].starts_with("a task used 15Gi of 16Gi of memory"));
        assert_eq!(RunUsageSummary::of(&[]), None);
        let mut short = task(0, 0.9, 2, false);
        short.record.as_mut().unwrap().seconds = 5.0;
        assert!(RunUsageSummary::of(&[short]).unwrap().hints.is_empty());
    }

    #[test]
    fn idle_gpus_are_reported() {
        let mut tasks = [task(0, 1.0, 1, true), task(1, 1.0, 1, false)];
        assert!(idle_gpus(&tasks).is_empty());
        for task in &mut tasks {
            task.record
                .as_mut()
                .unwrap()
                .gpu
                .as_mut()
                .unwrap()
                .idle_seconds = 900;
        }
        assert_eq!(
            idle_gpus(&tasks),
            [
                "the GPUs of worker/0 have not been used for 15 minutes; `idle_timeout` ends such tasks",
                "the GPUs of worker/1 were not used in the last 15 minutes of the task",
            ]
        );
    }

    #[test]
    fn the_live_line_sums_tasks_that_run() {
        let tasks = [
            task(0, 1.0, 1, true),
            task(1, 1.0, 1, true),
            task(2, 1.0, 1, false),
        ];
        assert_eq!(
            live_line(&tasks).as_deref(),
            Some("cpu 3.2 mem 1.2Gi gpu 87%")
        );
        assert_eq!(live_line(&tasks[2..]), None);
    }

    #[test]
    fn sizes_are_short() {
        let text = [0.0, 999.0, 1536.0, 1e12, 1e15, -1.0].map(bytes);
        assert_eq!(text, ["0", "999", "1.5Ki", "931Gi", "909.5Ti", "0"]);
    }
}
