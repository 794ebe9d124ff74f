//! `longshore cp`: copies files into and out of containers.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    client::{Cluster, Copied, CopyOptions},
    launcher::outputs::Fetched,
};

use crate::{
    complete, config, copy_outputs,
    error::{Error, Kind, Result},
    owners::{Access, OwnerArgs},
    place::{Container, looks_like_a_task},
    progress::Spinner,
    target::{self, ClusterArgs, Target},
    ui,
};

/// The maximum number of skipped files to print.
const NAMED: usize = 10;

/// Copy files and folders to or from a running container
///
/// Exactly one of the two paths is in a container: TASK:PATH, where TASK is
/// RUN/ROLE/INDEX, RUN if it has one task, or POD, as for `longshore exec`. A relative
/// PATH begins in the container's working directory, which for a task is the folder of
/// its code. A copy into an existing folder keeps its name. The container needs `tar`.
/// Of a task that has ended, only its outputs are left (see `longshore outputs`).
///
/// Write a local path with a colon as ./a:b.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore cp last:/tmp/results .
  longshore cp data.csv digits-x7k2p/worker/0:/tmp
  longshore cp ./with:colon pod/web:/tmp --container main")]
pub(crate) struct CpArgs {
    /// Source: PATH or TASK:PATH
    #[arg(add = ArgValueCompleter::new(complete::tasks))]
    from: String,
    /// Destination: TASK:PATH or PATH
    #[arg(add = ArgValueCompleter::new(complete::tasks))]
    to: String,
    /// Container name [default: the one that runs the command, or the pod's only one]
    #[arg(long, short)]
    container: Option<String>,
    #[command(flatten)]
    owners: OwnerArgs,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// The source or destination of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side<'a> {
    Local(&'a Path),
    Container { task: &'a str, path: &'a str },
}

impl<'a> Side<'a> {
    /// The text before the first colon names a task or pod, unless it looks like a path.
    fn parse(text: &'a str) -> Self {
        match text.split_once(':') {
            Some((task, path)) if looks_like_a_task(task) => Self::Container { task, path },
            _ => Self::Local(Path::new(text)),
        }
    }
}

pub(crate) async fn cp(args: CpArgs) -> Result<ExitCode> {
    let sides = (Side::parse(&args.from), Side::parse(&args.to));
    match sides {
        (Side::Local(_), Side::Local(_)) => {
            return Err(Error::usage("one of the two paths must be in a container")
                .hint("write TASK:PATH, as in `longshore cp last:/tmp/results .`"));
        }
        (Side::Container { .. }, Side::Container { .. }) => {
            return Err(
                Error::usage("only one of the two paths can be in a container")
                    .hint("copy to this machine first; a local path with a colon is written ./a:b"),
            );
        }
        _ => {}
    }
    let target = args.cluster.open(&config::here()?).await?;
    let spinner = Spinner::start("copying");
    let outcome = tokio::select! {
        outcome = copy_any(&target, &args, sides, &spinner) => outcome,
        _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
    };
    spinner.end();
    target.close().await?;
    match outcome? {
        Outcome::Copied(copied) => report(&copied),
        Outcome::Kept(fetched, folder) => ui::note(format!(
            "copied {}, {}, to {} (from the outputs of the task, which has ended)",
            ui::count(fetched.files.saturating_add(fetched.present), "file"),
            ui::size(fetched.bytes),
            folder.display()
        )),
    }
    Ok(ExitCode::SUCCESS)
}

/// The result of a copy, by its source.
enum Outcome {
    /// A container, or this machine.
    Copied(Copied),
    /// The outputs of a task that has ended, to this folder.
    Kept(Fetched, PathBuf),
}

/// Copies from or to a container. Of a task that has ended, its outputs are left.
async fn copy_any(
    target: &Target,
    args: &CpArgs,
    sides: (Side<'_>, Side<'_>),
    spinner: &Spinner,
) -> Result<Outcome> {
    let cluster = target.cluster();
    let error = match copy(cluster, args, sides, spinner).await {
        Ok(copied) => return Ok(Outcome::Copied(copied)),
        Err(error) => error,
    };
    if let (Side::Container { task, path }, Side::Local(to)) = sides
        && error.kind() == Kind::Failed
        && args.container.is_none()
    {
        let namespace = target::namespace(args.namespace.as_deref(), cluster);
        let kept = copy_outputs::copy(target, namespace, task, path, to).await?;
        if let Some((fetched, folder)) = kept {
            return Ok(Outcome::Kept(fetched, folder));
        }
    }
    Err(error)
}

async fn copy(
    cluster: &Cluster,
    args: &CpArgs,
    sides: (Side<'_>, Side<'_>),
    spinner: &Spinner,
) -> Result<Copied> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let pods = cluster.pods().in_namespace(namespace)?;
    let ((Side::Container { task, .. }, _) | (_, Side::Container { task, .. })) = sides else {
        return Err(Error::usage("one of the two paths must be in a container"));
    };
    let access = match sides {
        (_, Side::Container { .. }) => args.owners.act("write to"),
        _ => Access::Read,
    };
    let container = args.container.as_deref();
    let container = Container::find(cluster, namespace, task, container, access).await?;
    let spinner = spinner.clone();
    let options = CopyOptions {
        container: container.name,
        progress: Some(Arc::new(move |transferred| {
            let (files, bytes) = (transferred.files, transferred.bytes);
            spinner.say(|| format!("copying: {}, {}", ui::count(files, "file"), ui::size(bytes)));
        })),
    };
    let pod = &container.pod;
    Ok(match sides {
        (Side::Container { path, .. }, Side::Local(to)) => {
            pods.copy_out(pod, path, to, &options).await?
        }
        (Side::Local(from), Side::Container { path, .. }) => {
            pods.copy_in(pod, from, path, &options).await?
        }
        _ => return Err(Error::usage("one of the two paths must be in a container")),
    })
}

fn report(copied: &Copied) {
    let transferred = &copied.transferred;
    ui::note(format!(
        "copied {}, {}, to {}",
        ui::count(transferred.files, "file"),
        ui::size(transferred.bytes),
        copied.path.display()
    ));
    for (path, why) in transferred.left_out.iter().take(NAMED) {
        ui::warning(format!("skipped: {} {why}", path.display()));
    }
    let more = transferred.left_out.len().saturating_sub(NAMED) as u64;
    let more = more.saturating_add(transferred.left_out_more);
    if more > 0 {
        ui::warning(format!("skipped: {more} more"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_follows_a_task() {
        let local = |path| Side::Local(Path::new(path));
        let container = |task, path| Side::Container { task, path };
        for (text, side) in [
            ("web:/tmp", container("web", "/tmp")),
            ("web:a:b", container("web", "a:b")),
            (
                "last/worker/0:train.py",
                container("last/worker/0", "train.py"),
            ),
            ("pod/web:", container("pod/web", "")),
            ("data", local("data")),
            ("./a:b", local("./a:b")),
            ("/a:b", local("/a:b")),
            ("a/b/c:d", local("a/b/c:d")),
            (":x", local(":x")),
        ] {
            assert_eq!(Side::parse(text), side);
        }
    }
}
