//! The rows of the table. Pure.

use std::cmp::Ordering;

use longshore::launcher::{
    RunState,
    usage::{TaskUsage, bytes},
};

/// Orders of the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Sort {
    /// By name
    #[default]
    Name,
    /// Highest CPU first
    Cpu,
    /// Highest memory first
    Memory,
    /// Highest GPU utilisation first
    Gpu,
}

impl Sort {
    pub(super) fn sort(self, rows: &mut [Row]) {
        let by = |of: fn(&Row) -> Option<f64>| {
            move |one: &Row, other: &Row| {
                let (one, other) = (of(one), of(other));
                // Rows without a value last.
                other.partial_cmp(&one).unwrap_or(Ordering::Equal)
            }
        };
        match self {
            // Tasks and runs are in the order of the cluster's names and indexes.
            Self::Name => {}
            Self::Cpu => rows.sort_by(by(|row| row.cpu)),
            Self::Memory => rows.sort_by(by(|row| row.memory)),
            Self::Gpu => rows.sort_by(by(|row| row.gpu.map(|gpu| gpu.0))),
        }
    }
}

/// A task, or a run with the sums of its tasks that run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Row {
    name: String,
    state: String,
    cpu: Option<f64>,
    mean_cpu: Option<f64>,
    requested_cpu: Option<f64>,
    memory: Option<f64>,
    peak_memory: Option<f64>,
    requested_memory: Option<f64>,
    gpu: Option<(f64, f64)>,
    mean_gpu: Option<f64>,
}

impl Row {
    /// A task, with this text in front of its name.
    pub(super) fn of_task(front: &str, task: &TaskUsage) -> Self {
        let record = task.record.as_ref();
        Self {
            name: format!("{front}{}", task.task),
            state: if task.is_running { "running" } else { "ended" }.to_owned(),
            cpu: task.cpu(),
            mean_cpu: record.and_then(|record| record.mean_cpu()),
            requested_cpu: task.requested.cpu,
            memory: task.memory(),
            peak_memory: record.map(|record| record.peak_memory as f64),
            requested_memory: task.requested.memory,
            gpu: task.gpu(),
            mean_gpu: record.and_then(|record| Some(record.gpu?.mean_percent)),
        }
    }

    pub(super) fn of_run(name: String, state: RunState, tasks: &[TaskUsage]) -> Self {
        let rows: Vec<Self> = tasks
            .iter()
            .filter(|task| task.is_running)
            .map(|task| Self::of_task("", task))
            .collect();
        let values = |of: fn(&Self) -> Option<f64>| rows.iter().filter_map(of).collect::<Vec<_>>();
        let sum = |of| {
            let values = values(of);
            (!values.is_empty()).then(|| values.iter().sum::<f64>())
        };
        let mean = |of| {
            let values = values(of);
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let gpu = mean(|row| Some(row.gpu?.0)).zip(sum(|row| Some(row.gpu?.1)));
        Self {
            name,
            state: format!("{} ({} running)", state.as_str(), rows.len()),
            cpu: sum(|row| row.cpu),
            mean_cpu: sum(|row| row.mean_cpu),
            requested_cpu: sum(|row| row.requested_cpu),
            memory: sum(|row| row.memory),
            peak_memory: sum(|row| row.peak_memory),
            requested_memory: sum(|row| row.requested_memory),
            gpu,
            mean_gpu: mean(|row| row.mean_gpu),
        }
    }

    pub(super) fn cells(&self) -> Vec<String> {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        // Requests of small tasks are hundredths.
        let cores = |value: Option<f64>| or_none(value.map(|value| format!("{value:.2}")));
        let size = |value: Option<f64>| or_none(value.map(bytes));
        let percent = |value: Option<f64>| or_none(value.map(|value| format!("{value:.0}%")));
        vec![
            self.name.clone(),
            self.state.clone(),
            cores(self.cpu),
            cores(self.mean_cpu),
            cores(self.requested_cpu),
            size(self.memory),
            size(self.peak_memory),
            size(self.requested_memory),
            percent(self.gpu.map(|gpu| gpu.0)),
            percent(self.mean_gpu),
            size(self.gpu.map(|gpu| gpu.1)),
        ]
    }
}

pub(super) fn header(of_tasks: bool) -> [&'static str; 11] {
    [
        if of_tasks { "TASK" } else { "RUN" },
        "STATE",
        "CPU",
        "MEAN",
        "REQUEST",
        "MEMORY",
        "PEAK",
        "REQUEST",
        "GPU",
        "MEAN",
        "GPU-MEMORY",
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, cpu: Option<f64>, memory: Option<f64>) -> Row {
        Row {
            name: name.to_owned(),
            state: "running".to_owned(),
            cpu,
            memory,
            ..Row::default()
        }
    }

    #[test]
    fn rows_are_sorted_with_unknown_values_last() {
        let mut rows = [
            row("a", None, Some(1.0)),
            row("b", Some(0.5), Some(3e9)),
            row("c", Some(2.0), None),
        ];
        let mut by = |sort: Sort| {
            sort.sort(&mut rows);
            rows.iter().map(|row| row.name.clone()).collect::<String>()
        };
        assert_eq!(by(Sort::Cpu), "cba");
        assert_eq!(by(Sort::Memory), "bac");
        assert_eq!(by(Sort::Name), "bac");
    }

    #[test]
    fn cells_are_short() {
        let cells = row("a", Some(0.25), Some(3e9)).cells();
        assert_eq!(cells.join(" "), "a running 0.25 - - 2.8Gi - - - - -");
        assert_eq!(cells.len(), header(true).len());
    }
}
