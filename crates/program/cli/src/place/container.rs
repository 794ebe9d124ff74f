//! Finds the running container for a task or pod name, for `exec`, `attach`, `cp` and
//! `port-forward`.

use longshore::{
    client::{Cluster, Item, kinds::Pod},
    launcher::{
        RunSummary,
        names::{self, Task},
        runs::TaskPod,
    },
};

use super::{Place, find, pod_of, task_of};
use crate::{
    error::{Error, Kind, Result},
    owners::Access,
};

/// A running container.
#[derive(Debug)]
pub(crate) struct Container {
    /// The pod's name.
    pub(crate) pod: String,
    /// The container's name; `None` lets the server choose.
    pub(crate) name: Option<String>,
}

impl Container {
    /// Finds the container for a task or pod name: the container of the run's command, or `name`.
    pub(crate) async fn find(
        cluster: &Cluster,
        namespace: &str,
        text: &str,
        name: Option<&str>,
        access: Access,
    ) -> Result<Self> {
        let place = find(cluster, namespace, text, access).await?;
        Self::of(cluster, place, name).await
    }

    /// The container of a resolved name.
    pub(crate) async fn of(cluster: &Cluster, place: Place, name: Option<&str>) -> Result<Self> {
        let (pod, task) = match place {
            Place::Pod(pod) => {
                let task = task_of(&pod).zip(pod.meta().labels.get(names::RUN).cloned());
                let task = task.map(|(task, run)| (run, task));
                (*pod, task)
            }
            Place::Run(run) => of_task(cluster, &run, None, None).await?,
            Place::Tasks { run, role, index } => of_task(cluster, &run, Some(&role), index).await?,
        };
        let task_pod = pod.typed::<TaskPod>()?;
        check(&task_pod, task.as_ref())?;
        let of_run = task.is_some().then(|| task_pod.main_container().to_owned());
        Ok(Self {
            pod: pod.name().to_owned(),
            name: name.map(str::to_owned).or(of_run),
        })
    }
}

type Found = (Item<Pod>, Option<(String, Task)>);

async fn of_task(
    cluster: &Cluster,
    found: &RunSummary,
    role: Option<&str>,
    index: Option<u32>,
) -> Result<Found> {
    let run = &found.run;
    let task = run.only_task(role, index)?;
    if let Some(pod) = pod_of(cluster, run, &task).await? {
        return Ok((pod, Some((run.name.to_string(), task))));
    }
    let name = &run.name;
    Err(match found.state.is_over() {
        true => Error::new(
            Kind::Failed,
            format!(
                "the task {name}/{task} has ended ({}), and its pod no longer exists",
                found.state.as_str()
            ),
        ),
        false => Error::new(
            Kind::Failed,
            format!("the task {name}/{task} has no pod yet"),
        )
        .hint(format!("`longshore why {name}` explains what it waits for")),
    })
}

/// Rejects a pod whose container has ended or not started.
fn check(pod: &TaskPod, task: Option<&(String, Task)>) -> Result<()> {
    let name = match task {
        Some((run, task)) => format!("the task {run}/{task}"),
        None => format!("the pod {}", pod.name()),
    };
    if task.is_some() && pod.is_over() || matches!(pod.phase(), "Succeeded" | "Failed") {
        let end = match pod.exit_code() {
            Some(code) => format!("exit code {code}"),
            None => pod.phase().to_lowercase(),
        };
        let log = match task {
            Some((run, task)) => format!("{run}/{task}"),
            None => format!("pod/{}", pod.name()),
        };
        let hint = format!(
            "`longshore logs {log}` shows its output; `longshore run --output-files PATTERN` keeps files"
        );
        let message = format!("{name} has ended, and its files are gone ({end})");
        return Err(Error::new(Kind::Failed, message).hint(hint));
    }
    if let Some((run, _)) = task
        && !pod.has_started()
    {
        let message = format!("{name} cannot be reached: its command has not started yet");
        return Err(Error::new(Kind::Failed, message)
            .hint(format!("`longshore why {run}` explains what it waits for")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn checked(status: Value, of_run: bool) -> String {
        let pod = json!({"metadata": {"name": "web"}, "status": status});
        let pod: TaskPod = serde_json::from_value(pod).unwrap();
        let task = Task {
            role: "worker".into(),
            index: 1,
        };
        let task = of_run.then(|| ("digits-x7k2p".to_owned(), task));
        match check(&pod, task.as_ref()) {
            Ok(()) => "ok".to_owned(),
            Err(error) => error
                .lines()
                .into_iter()
                .map(|(_, line)| line)
                .collect::<Vec<_>>()
                .join("; "),
        }
    }

    #[test]
    fn only_a_running_container_can_be_entered() {
        let main = |state: Value| json!({"phase": "Running", "containerStatuses": [{"name": "main", "state": state}]});
        assert_eq!(checked(main(json!({"running": {}})), true), "ok");
        assert_eq!(checked(json!({"phase": "Running"}), false), "ok");
        insta::assert_snapshot!(checked(json!({"phase": "Pending"}), true), @"the task digits-x7k2p/worker/1 cannot be reached: its command has not started yet; `longshore why digits-x7k2p` explains what it waits for");
        insta::assert_snapshot!(checked(main(json!({"terminated": {"exitCode": 3}})), true), @"the task digits-x7k2p/worker/1 has ended, and its files are gone (exit code 3); `longshore logs digits-x7k2p/worker/1` shows its output; `longshore run --output-files PATTERN` keeps files");
        insta::assert_snapshot!(checked(json!({"phase": "Succeeded"}), false), @"the pod web has ended, and its files are gone (succeeded); `longshore logs pod/web` shows its output; `longshore run --output-files PATTERN` keeps files");
    }
}
