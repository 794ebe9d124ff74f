//! The progress of a run's roles.

use std::fmt;

use serde::Serialize;

/// The progress of the roles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Each role.
    pub roles: Vec<RoleProgress>,
}

impl fmt::Display for Progress {
    /// `ps 1 running; worker 2 running, 1 pending`; for independent tasks, `main 12/100 done, 1
    /// failed, 4 running`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, role) in self.roles.iter().enumerate() {
            let between = if n == 0 { "" } else { "; " };
            if role.independent {
                write!(
                    f,
                    "{between}{} {}/{} done",
                    role.role,
                    role.ended(),
                    role.tasks()
                )?;
                for (count, state) in [(role.failed, "failed"), (role.running, "running")] {
                    if count > 0 {
                        write!(f, ", {count} {state}")?;
                    }
                }
                continue;
            }
            let states = [
                (role.running, "running"),
                (role.pending, "pending"),
                (role.succeeded, "succeeded"),
                (role.failed, "failed"),
            ];
            let states = states.iter().filter(|(count, _)| *count > 0);
            let states: Vec<String> = states
                .map(|(count, state)| format!("{count} {state}"))
                .collect();
            write!(f, "{between}{} {}", role.role, states.join(", "))?;
        }
        Ok(())
    }
}

/// The number of tasks of a role in each state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RoleProgress {
    /// The role.
    pub role: String,
    /// Tasks whose command has not started.
    pub pending: u32,
    /// Tasks whose command runs.
    pub running: u32,
    /// Tasks that succeeded.
    pub succeeded: u32,
    /// Tasks that failed and are not retried.
    pub failed: u32,
    /// True if a task that fails does not end the others, as in a sweep.
    #[serde(skip)]
    pub independent: bool,
}

impl RoleProgress {
    /// The number of tasks that have ended.
    fn ended(&self) -> u32 {
        self.succeeded.saturating_add(self.failed)
    }

    /// The number of all tasks.
    fn tasks(&self) -> u32 {
        let active = self.pending.saturating_add(self.running);
        active.saturating_add(self.ended())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_in_words() {
        let role = |name: &str, running, pending| RoleProgress {
            role: name.into(),
            running,
            pending,
            ..RoleProgress::default()
        };
        let progress = Progress {
            roles: vec![role("ps", 1, 0), role("worker", 2, 1)],
        };
        let text = progress.to_string();
        assert_eq!(text, "ps 1 running; worker 2 running, 1 pending");
        let independent = |succeeded, failed| RoleProgress {
            independent: true,
            succeeded,
            failed,
            ..role("main", 4, 84)
        };
        let text = |role: RoleProgress| Progress { roles: vec![role] }.to_string();
        assert_eq!(
            text(independent(11, 1)),
            "main 12/100 done, 1 failed, 4 running"
        );
        assert_eq!(text(independent(0, 0)), "main 0/88 done, 4 running");
    }
}
