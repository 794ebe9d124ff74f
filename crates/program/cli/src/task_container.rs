//! The container that runs a task's command, with this project's program.

use longshore::{
    client::{Cluster, Item, kinds::Pod},
    launcher::{
        RunSummary,
        names::{self, Task},
        runs::{self, TaskPod},
    },
};

use crate::{
    bootstrap_program::program_of,
    error::{Error, Kind, Result},
    owners::Access,
    place::{self, Container, Place},
};

/// The container of a task.
#[derive(Debug)]
pub(crate) struct TaskContainer {
    pub(crate) pod: Item<Pod>,
    /// The container's name.
    pub(crate) container: String,
    /// The path of the program in the container.
    pub(crate) program: String,
}

impl TaskContainer {
    /// Finds the container of a task by its name, or the container of a run's first running task.
    /// Asks if the run belongs to another user.
    pub(crate) async fn find(
        cluster: &Cluster,
        namespace: &str,
        text: &str,
        access: Access,
    ) -> Result<Self> {
        let place = match place::find(cluster, namespace, text, access).await? {
            Place::Run(run) => first_running(cluster, &run).await?,
            Place::Tasks {
                run,
                role,
                index: None,
            } => Place::Tasks {
                index: Some(0),
                run,
                role,
            },
            place => place,
        };
        let found = Container::of(cluster, place, None).await?;
        let pods = cluster.pods().in_namespace(namespace)?;
        let pod = pods.fetch(&found.pod).await?;
        let container = found.name.unwrap_or_else(|| names::MAIN.to_owned());
        let Some(program) = program_of(&pod, &container) else {
            let message = format!("the pod {} is not a task of a run", found.pod);
            return Err(Error::new(Kind::Failed, message).hint(format!(
                "`longshore exec -it pod/{} -- sh` opens a shell in any pod",
                found.pod
            )));
        };
        Ok(Self {
            pod,
            container,
            program,
        })
    }
}

/// The first task of a run that runs, in the order of the roles.
async fn first_running(cluster: &Cluster, found: &RunSummary) -> Result<Place> {
    let run = &found.run;
    let pods = run.list_pods(cluster).await?;
    let mut running: Vec<(usize, Task, Item<Pod>)> = Vec::new();
    for pod in pods {
        let task_pod = pod.typed::<TaskPod>()?;
        let Some(task) = task_pod.task() else {
            continue;
        };
        if task_pod.has_started() && !task_pod.is_over() {
            let role = run.roles.iter().position(|role| role.name == task.role);
            running.push((role.unwrap_or(usize::MAX), task, pod));
        }
    }
    running.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    match running.into_iter().next() {
        Some((_, _, pod)) => Ok(Place::Pod(Box::new(pod))),
        None => Err(none_runs(found)),
    }
}

fn none_runs(found: &RunSummary) -> Error {
    let name = &found.run.name;
    if !found.state.is_over() {
        return Error::new(Kind::Failed, format!("no task of the run {name} runs yet"))
            .hint(format!("`longshore why {name}` explains what it waits for"));
    }
    let state = found.state.as_str();
    let message = format!("the run {name} has ended ({state}), and its containers are gone");
    let fetch = match found.state {
        runs::RunState::Succeeded => "",
        _ => ", `longshore why` the cause of its end",
    };
    Error::new(Kind::Failed, message).hint(format!(
        "`longshore logs {name}` shows its output, `longshore outputs {name}` its files{fetch}; `longshore dev` keeps the containers of commands that end"
    ))
}
