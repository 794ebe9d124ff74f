//! The metrics of two runs side by side. Pure.

use std::collections::BTreeSet;

use longshore_diagnosis::names::Task;
use serde::{Serialize, Serializer};

use crate::metrics::{Metrics, RunMetrics, json_number, shown};

/// A metric of a task in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricChange {
    /// The task: `worker/0`.
    pub task: String,
    /// The name of the metric.
    pub name: String,
    /// The last values. `None` if the task of a run does not have it.
    pub values: [Option<MetricValue>; 2],
    /// The second value minus the first one, if both are finite.
    pub difference: Option<MetricValue>,
}

/// A value of a metric. Its JSON is a number, or `NaN`, `Infinity` or `-Infinity` as a string.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricValue(pub f64);

impl std::fmt::Display for MetricValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shown(self.0))
    }
}

impl Serialize for MetricValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json_number(self.0).serialize(serializer)
    }
}

impl MetricChange {
    /// The difference with its sign, rounded to six digits.
    #[must_use]
    pub fn signed(&self) -> Option<String> {
        let difference = self.difference?.0;
        let rounded: f64 = format!("{difference:.5e}").parse().unwrap_or(difference);
        Some(match rounded > 0.0 {
            true => format!("+{}", shown(rounded)),
            // Removes the sign of a negative zero.
            false => shown(rounded + 0.0),
        })
    }
}

/// All metrics of both runs, by task and name.
pub(super) fn metrics(one: &RunMetrics, other: &RunMetrics) -> Vec<MetricChange> {
    let keys = |run: &RunMetrics| {
        let tasks = run.tasks.iter();
        let keys = tasks.flat_map(|own| {
            let names = own.values.iter();
            names.map(|(name, _)| (own.task.clone(), name.to_owned()))
        });
        keys.collect::<BTreeSet<(Task, String)>>()
    };
    let mut all = keys(one);
    all.extend(keys(other));
    let of_task = |run: &RunMetrics, task: &Task, name: &str| {
        let position = run.tasks.binary_search_by(|own| own.task.cmp(task));
        let own: Option<&Metrics> = position.ok().map(|at| &run.tasks[at].values);
        own.and_then(|values| values.get(name))
    };
    let changes = all.into_iter().map(|(task, name)| {
        let values = [one, other].map(|run| of_task(run, &task, &name));
        let difference = match values {
            [Some(one), Some(other)] => Some(other - one).filter(|number| number.is_finite()),
            _ => None,
        };
        MetricChange {
            task: task.to_string(),
            name,
            values: values.map(|value| value.map(MetricValue)),
            difference: difference.map(MetricValue),
        }
    });
    changes.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::metrics::TaskMetrics;

    fn run(tasks: &[(u32, &str)]) -> RunMetrics {
        let tasks = tasks.iter().map(|(index, text)| {
            let mut values = Metrics::default();
            values.read_json_lines(text);
            let role = "main".to_owned();
            let index = *index;
            TaskMetrics {
                task: Task { role, index },
                values,
            }
        });
        RunMetrics {
            tasks: tasks.collect(),
            unread: Vec::new(),
        }
    }

    #[test]
    fn metrics_of_the_same_task_are_compared() {
        let one = run(&[
            (0, r#"{"loss": 0.3, "step": 5, "gone": 1}"#),
            (2, r#"{"a": NaN}"#),
            (10, r#"{"a": 1}"#),
        ]);
        let other = run(&[
            (0, r#"{"loss": 0.1, "step": 5}"#),
            (2, r#"{"a": 3, "new": 1e300}"#),
        ]);
        let found = metrics(&one, &other);
        let found: Vec<String> = found
            .iter()
            .map(|change| {
                let value =
                    |at: usize| change.values[at].map_or("-".to_owned(), |own| own.to_string());
                let signed = change.signed().unwrap_or_else(|| "-".to_owned());
                format!(
                    "{} {} {} {} {signed}",
                    change.task,
                    change.name,
                    value(0),
                    value(1)
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                "main/0 gone 1 - -",
                "main/0 loss 0.3 0.1 -0.2",
                "main/0 step 5 5 0",
                "main/2 a NaN 3 -",
                "main/2 new - 1e300 -",
                "main/10 a 1 - -",
            ]
        );
        let change = &metrics(&one, &other)[3];
        let text = serde_json::to_string(change).unwrap();
        assert_eq!(
            text,
            r#"{"task":"main/2","name":"a","values":["NaN",3],"difference":null}"#
        );
    }
}
