//! Selects a task of a run. Pure.

use longshore_diagnosis::names::Task;

use super::Run;
use crate::suggest;

/// The reason why a selection does not match exactly one task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The run does not have the role.
    #[error("the run {run} has no role {role:?}{}; its roles: {}", nearest.as_ref().map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default(), roles.join(", "))]
    NoSuchRole {
        /// The run's name.
        run: String,
        /// The requested role.
        role: String,
        /// The closest role name.
        nearest: Option<String>,
        /// The roles of the run.
        roles: Vec<String>,
    },
    /// The role has fewer tasks.
    #[error("the run {run} has no task {}; its tasks: {tasks}", named(role.as_ref(), *index))]
    NoSuchIndex {
        /// The run's name.
        run: String,
        /// The requested role, if any.
        role: Option<String>,
        /// The requested index.
        index: u32,
        /// A summary of the run's tasks.
        tasks: String,
    },
    /// Several tasks match.
    #[error("the run {run} has {count} tasks: name one, as in {run}/{example}")]
    Several {
        /// The run's name.
        run: String,
        /// The number of matching tasks.
        count: u64,
        /// An example of the matching tasks.
        example: Task,
    },
}

fn named(role: Option<&String>, index: u32) -> String {
    match role {
        Some(role) => format!("{role}/{index}"),
        None => format!("with the index {index}"),
    }
}

impl Run {
    /// The role and index of a task. In a run of one role, the index alone is enough, as in
    /// `RUN/17`.
    #[must_use]
    pub fn role_and_index<'a>(
        &'a self,
        role: &'a str,
        index: Option<u32>,
    ) -> (&'a str, Option<u32>) {
        match (&self.roles[..], role.parse()) {
            ([only], Ok(number)) if index.is_none() && only.name != role => {
                (&only.name, Some(number))
            }
            _ => (role, index),
        }
    }

    /// Checks that a task of this role, of this index, or of both exists.
    ///
    /// # Errors
    /// [`TaskError::NoSuchRole`] and [`TaskError::NoSuchIndex`].
    pub fn check_task(&self, role: Option<&str>, index: Option<u32>) -> Result<(), TaskError> {
        let mut meant = self
            .roles
            .iter()
            .filter(|known| role.is_none_or(|role| known.name == role));
        if let Some(role) = role
            && !self.roles.iter().any(|known| known.name == role)
        {
            let names = || self.roles.iter().map(|known| known.name.as_str());
            return Err(TaskError::NoSuchRole {
                run: self.name.to_string(),
                role: role.to_owned(),
                nearest: suggest::nearest(role, names()).map(str::to_owned),
                roles: names().map(str::to_owned).collect(),
            });
        }
        match index {
            Some(index) if !meant.any(|known| index < known.count) => Err(TaskError::NoSuchIndex {
                run: self.name.to_string(),
                role: role.map(str::to_owned),
                index,
                tasks: self.tasks_in_words(),
            }),
            _ => Ok(()),
        }
    }

    /// The task with this role and index, or the only task.
    ///
    /// # Errors
    /// The same as [`Run::check_task`], and [`TaskError::Several`].
    pub fn only_task(&self, role: Option<&str>, index: Option<u32>) -> Result<Task, TaskError> {
        self.check_task(role, index)?;
        let meant = self.roles.iter().filter(|known| {
            role.is_none_or(|role| known.name == role)
                && index.map_or(known.count > 0, |index| index < known.count)
        });
        let meant: Vec<_> = meant.collect();
        let count = meant.iter().map(|role| match index {
            Some(_) => 1,
            None => u64::from(role.count),
        });
        let count: u64 = count.sum();
        let first = meant.first().map(|role| Task {
            role: role.name.clone(),
            index: index.unwrap_or(0),
        });
        match first {
            Some(task) if count == 1 => Ok(task),
            first => Err(TaskError::Several {
                run: self.name.to_string(),
                count,
                example: first.unwrap_or(Task {
                    role: "main".to_owned(),
                    index: 0,
                }),
            }),
        }
    }

    /// `worker/0 to worker/3, ps/0`.
    fn tasks_in_words(&self) -> String {
        let words = self.roles.iter().map(|role| match role.count {
            0 => format!("none of {}", role.name),
            1 => format!("{}/0", role.name),
            count => format!("{0}/0 to {0}/{1}", role.name, count - 1),
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use longshore_diagnosis::{names::RunName, role::RunRole};

    use super::*;

    fn run(roles: &[(&str, u32)]) -> Run {
        let role = |(name, count): &(&str, u32)| RunRole {
            name: (*name).to_owned(),
            count: *count,
            service: false,
        };
        Run {
            name: RunName::existing("digits-x7k2p").unwrap(),
            namespace: "default".to_owned(),
            roles: roles.iter().map(role).collect(),
            schedule: None,
        }
    }

    fn only(run: &Run, role: Option<&str>, index: Option<u32>) -> String {
        match run.only_task(role, index) {
            Ok(task) => task.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_only_task_needs_no_name() {
        let alone = run(&[("main", 1)]);
        assert_eq!(only(&alone, None, None), "main/0");
        assert_eq!(only(&alone, Some("main"), Some(0)), "main/0");
        let two = run(&[("ps", 1), ("worker", 2)]);
        assert_eq!(only(&two, Some("ps"), None), "ps/0");
        assert_eq!(only(&two, None, Some(1)), "worker/1");
        insta::assert_snapshot!(only(&two, None, None), @"the run digits-x7k2p has 3 tasks: name one, as in digits-x7k2p/ps/0");
        insta::assert_snapshot!(only(&two, Some("worker"), None), @"the run digits-x7k2p has 2 tasks: name one, as in digits-x7k2p/worker/0");
        insta::assert_snapshot!(only(&two, None, Some(0)), @"the run digits-x7k2p has 2 tasks: name one, as in digits-x7k2p/ps/0");
        let huge = run(&[("a", u32::MAX), ("b", u32::MAX)]);
        assert!(only(&huge, None, None).contains("8589934590 tasks"));
        assert!(run(&[]).only_task(None, None).is_err());
    }

    #[test]
    fn an_index_names_a_task_of_the_only_role() {
        let sweep = run(&[("main", 20)]);
        assert_eq!(sweep.role_and_index("17", None), ("main", Some(17)));
        assert_eq!(sweep.role_and_index("main", None), ("main", None));
        assert_eq!(sweep.role_and_index("7", Some(1)), ("7", Some(1)));
        let two = run(&[("ps", 1), ("worker", 2)]);
        assert_eq!(two.role_and_index("1", None), ("1", None));
        assert_eq!(run(&[("7", 9)]).role_and_index("7", None), ("7", None));
    }

    #[test]
    fn tasks_that_do_not_exist() {
        let two = run(&[("ps", 1), ("worker", 2)]);
        insta::assert_snapshot!(only(&two, Some("wroker"), None), @r#"the run digits-x7k2p has no role "wroker" (did you mean "worker"?); its roles: ps, worker"#);
        insta::assert_snapshot!(only(&two, Some("worker"), Some(7)), @"the run digits-x7k2p has no task worker/7; its tasks: ps/0, worker/0 to worker/1");
        insta::assert_snapshot!(only(&two, None, Some(7)), @"the run digits-x7k2p has no task with the index 7; its tasks: ps/0, worker/0 to worker/1");
        assert_eq!(two.check_task(None, Some(1)), Ok(()));
    }
}
