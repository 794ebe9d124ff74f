//! `longshore cp` out of a task that has ended: copies the files that remain, its outputs.

use std::path::{Path, PathBuf};

use longshore::{
    client::{Item, kinds::Pod},
    launcher::{
        Run,
        names::{self, Task},
        outputs::{FetchOptions, Fetched, Manifest, OutputsError},
        run_outputs::{RunFiles, RunOutputsError, TaskChoice, TaskFiles},
        runs::TaskPod,
    },
};
use tokio::runtime::Handle;

use crate::{
    error::{Error, Kind, Result},
    fetch_outputs,
    owners::Access,
    place::{self, Place, task_of},
    target::Target,
};

/// The outputs of a task that match a path.
struct Matching {
    files: RunFiles,
    task: TaskFiles,
    /// The matching files, with their paths in the destination.
    chosen: Manifest,
    to: PathBuf,
}

/// Copies outputs of a task whose container has ended. `None` if the task has not ended, or has no
/// outputs at this path.
pub(crate) async fn copy(
    target: &Target,
    namespace: &str,
    task: &str,
    path: &str,
    to: &Path,
) -> Result<Option<(Fetched, PathBuf)>> {
    let cluster = target.cluster();
    let found = place::find(cluster, namespace, task, Access::Read).await?;
    let Some((run, task)) = ended_task(&found)? else {
        return Ok(None);
    };
    let is_running = |pod: &Item<Pod>| {
        let facts = pod.typed::<TaskPod>();
        task_of(pod).as_ref() == Some(&task) && facts.is_ok_and(|facts| !facts.is_over())
    };
    if run.list_pods(cluster).await?.iter().any(is_running) {
        return Ok(None);
    }
    let choice = TaskChoice {
        role: Some(task.role),
        index: Some(task.index),
    };
    let files = fetch_outputs::find(target, &run, &choice, None).await;
    let files = match files {
        Ok(files) => files,
        // The reason why the container cannot be reached is more helpful.
        Err(
            RunOutputsError::NotRequested { .. }
            | RunOutputsError::None { .. }
            | RunOutputsError::Outputs(OutputsError::NotKept),
        ) => return Ok(None),
        Err(error) => return Err(Error::from_source(Kind::Failed, &error)),
    };
    let Some(matching) = Matching::find(files, path, to) else {
        return Ok(None);
    };
    let runtime = Handle::current();
    let copying = tokio::task::spawn_blocking(move || {
        let options = FetchOptions {
            to: matching.to.clone(),
            // The same as `cp`.
            force: true,
        };
        let copied =
            matching
                .files
                .fetch_as(&runtime, &matching.task, &matching.chosen, &options)?;
        Ok::<_, OutputsError>((copied, matching.to))
    });
    let failed =
        |error: &(dyn std::error::Error + 'static)| Error::from_source(Kind::Failed, error);
    let copied = copying.await.map_err(|error| failed(&error))?;
    copied.map(Some).map_err(|error| failed(&error))
}

/// The run and the task of a name.
fn ended_task(place: &Place) -> Result<Option<(Run, Task)>> {
    Ok(match place {
        // The run of a pod is not known.
        Place::Pod(_) => None,
        Place::Run(run) => Some((run.run.clone(), run.run.only_task(None, None)?)),
        Place::Tasks { run, role, index } => {
            Some((run.run.clone(), run.run.only_task(Some(role), *index)?))
        }
    })
}

impl Matching {
    /// The files at a path: a file, or all files of a folder. A copy into an existing folder keeps
    /// its name.
    fn find(files: RunFiles, path: &str, to: &Path) -> Option<Self> {
        let task = files.tasks.first()?.clone();
        let path = in_work(path)?;
        let mut chosen = task.manifest().clone();
        let name = path.rsplit('/').next().unwrap_or_default();
        let is_file = chosen.files.iter().any(|file| file.path == path);
        let below = format!("{path}/");
        let is_into = to.is_dir();
        let (folder, new_name) = match (is_into, is_file) {
            (true, _) => (to.to_owned(), name.to_owned()),
            (false, true) => {
                let above = to.parent().filter(|above| !above.as_os_str().is_empty());
                let above = above.unwrap_or(Path::new(".")).to_owned();
                (above, to.file_name()?.to_str()?.to_owned())
            }
            (false, false) => (to.to_owned(), String::new()),
        };
        chosen.files.retain_mut(|file| {
            let rest = match (file.path == path, file.path.strip_prefix(&below)) {
                (true, _) => String::new(),
                (false, Some(rest)) => rest.to_owned(),
                (false, None) if path.is_empty() => file.path.clone(),
                (false, None) => return false,
            };
            file.path = [new_name.as_str(), &rest]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("/");
            !file.path.is_empty()
        });
        (!chosen.files.is_empty()).then_some(Self {
            files,
            task,
            chosen,
            to: folder,
        })
    }
}

/// A path in the folder of the task's code; `None` if it is elsewhere.
fn in_work(path: &str) -> Option<String> {
    let relative = match path.strip_prefix('/') {
        Some(_) => path.strip_prefix(names::WORK)?,
        None => path,
    };
    let names = relative
        .split('/')
        .filter(|name| !matches!(*name, "" | "."));
    let names: Vec<&str> = names.collect();
    (!names.contains(&"..")).then(|| names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_in_the_folder_of_the_code() {
        assert_eq!(in_work("a/./b/"), Some("a/b".to_owned()));
        assert_eq!(in_work("."), Some(String::new()));
        let absolute = format!("{}/a", names::WORK);
        assert_eq!(in_work(&absolute), Some("a".to_owned()));
        assert_eq!(in_work("/tmp/a"), None);
        assert_eq!(in_work("../a"), None);
    }
}
