//! The number of an attempt of a task.

use longshore_diagnosis::names;

/// The variables of a container with the number of earlier attempts. They are removed for the
/// command.
pub(super) const VARIABLES: [&str; 3] = [
    names::FAILURES_VARIABLE,
    names::DISRUPTIONS_VARIABLE,
    names::SET_RESTARTS_VARIABLE,
];

/// The variable of the command with the number of its attempt, from 1.
pub(super) fn variable(attempt: u32) -> (String, String) {
    ("LONGSHORE_ATTEMPT".to_owned(), attempt.to_string())
}

/// The number of replacements of the task's pod, from the variables of the container.
pub(super) fn replaced(variable: impl Fn(&str) -> Option<String>) -> u32 {
    let counts = VARIABLES.map(|name| variable(name).and_then(|text| text.parse().ok()));
    counts.into_iter().flatten().fold(0, u32::saturating_add)
}

/// Returns true if only the pod of this task was replaced, and not the pods of all tasks, as JobSet
/// does.
pub(super) fn is_retried(variable: impl Fn(&str) -> Option<String>) -> bool {
    replaced(|name| variable(name).filter(|_| name != names::SET_RESTARTS_VARIABLE)) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_of_all_tasks_are_no_retry_of_this_one() {
        let only = |known: &'static str| move |name: &str| (name == known).then(|| "1".to_owned());
        assert!(is_retried(only(names::FAILURES_VARIABLE)));
        assert!(is_retried(only(names::DISRUPTIONS_VARIABLE)));
        assert!(!is_retried(only(names::SET_RESTARTS_VARIABLE)));
    }

    #[test]
    fn all_kinds_of_earlier_attempts_count() {
        let count = |failures: &str, disruptions: &str| {
            replaced(|name| match name {
                names::FAILURES_VARIABLE => Some(failures.to_owned()),
                names::DISRUPTIONS_VARIABLE => Some(disruptions.to_owned()),
                _ => None,
            })
        };
        assert_eq!(count("2", "1"), 3);
        assert_eq!(count("", ""), 0);
        assert_eq!(count("-1", "x"), 0);
        assert_eq!(count("4294967295", "1"), u32::MAX);
    }
}
