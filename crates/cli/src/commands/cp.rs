//! `longshore cp`: files into containers and out of them.

use std::{path::Path, process::ExitCode, sync::Arc};

use clap::Args;
use longshore::client::{Cluster, Copied, CopyOptions};

use crate::{
    config,
    error::{Error, Result},
    progress::Spinner,
    target::ClusterArgs,
    ui,
};

/// So many of the files that were left out are named.
const NAMED: usize = 10;

/// Copy files and folders into a container, or out of it
///
/// One of the two places is in a pod: POD:PATH; a task of a Job goes by its host
/// name, too. Into a folder that is there,
/// files come under their own name. The container needs a `tar`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore cp train-0:/data/results .
  longshore cp data.csv train-0:/tmp
  longshore cp ./with:colon train-0:/tmp -c main")]
pub(crate) struct CpArgs {
    /// What to copy: PATH, or POD:PATH
    from: String,
    /// Where to: POD:PATH, or PATH
    to: String,
    /// The container; needed when the pod has several
    #[arg(long, short)]
    container: Option<String>,
    /// The namespace; the context's own without it
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A place of files.
#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    Here(&'a Path),
    Pod { name: &'a str, path: &'a str },
}

impl<'a> Place<'a> {
    /// A colon behind a slash is part of a path here.
    fn parse(text: &'a str) -> Self {
        match text.split_once(':') {
            Some((name, path)) if !name.is_empty() && !name.contains('/') => {
                Self::Pod { name, path }
            }
            _ => Self::Here(Path::new(text)),
        }
    }
}

pub(crate) async fn cp(args: CpArgs) -> Result<ExitCode> {
    let places = (Place::parse(&args.from), Place::parse(&args.to));
    if matches!(
        places,
        (Place::Here(_), Place::Here(_)) | (Place::Pod { .. }, Place::Pod { .. })
    ) {
        return Err(Error::usage(
            "one of the two places must be in a pod, written POD:PATH, and the other here",
        ));
    }
    let target = args.cluster.open(&config::here()?).await?;
    let spinner = Spinner::start("copying");
    let outcome = tokio::select! {
        outcome = copy(target.cluster(), &args, places, &spinner) => outcome,
        _ = tokio::signal::ctrl_c() => Err(Error::interrupted()),
    };
    spinner.end();
    target.close().await?;
    tell(&outcome?);
    Ok(ExitCode::SUCCESS)
}

async fn copy(
    cluster: &Cluster,
    args: &CpArgs,
    places: (Place<'_>, Place<'_>),
    spinner: &Spinner,
) -> Result<Copied> {
    let namespace = args.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| cluster.default_namespace());
    let pods = cluster.pods().in_namespace(namespace)?;
    let spinner = spinner.clone();
    let options = CopyOptions {
        container: args.container.clone(),
        progress: Some(Arc::new(move |moved| {
            let (files, bytes) = (moved.files, moved.bytes);
            spinner.say(|| format!("copying: {}, {}", ui::count(files, "file"), ui::size(bytes)));
        })),
    };
    Ok(match places {
        (Place::Pod { name, path }, Place::Here(to)) => {
            let pod = crate::pods::find(&pods, name).await?;
            pods.copy_out(&pod, path, to, &options).await?
        }
        (Place::Here(from), Place::Pod { name, path }) => {
            let pod = crate::pods::find(&pods, name).await?;
            pods.copy_in(&pod, from, path, &options).await?
        }
        _ => return Err(Error::usage("one of the two places must be in a pod")),
    })
}

fn tell(copied: &Copied) {
    let moved = &copied.moved;
    ui::note(format!(
        "copied {}, {}, to {}",
        ui::count(moved.files, "file"),
        ui::size(moved.bytes),
        copied.path.display()
    ));
    for (path, why) in moved.left_out.iter().take(NAMED) {
        ui::warning(format!("left out: {} {why}", path.display()));
    }
    if let Some(more @ 1..) = moved.left_out.len().checked_sub(NAMED) {
        ui::warning(format!("left out: {more} more"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_makes_a_place_in_a_pod() {
        let here = |path| Place::Here(Path::new(path));
        for (text, place) in [
            (
                "web:/tmp",
                Place::Pod {
                    name: "web",
                    path: "/tmp",
                },
            ),
            (
                "web:a:b",
                Place::Pod {
                    name: "web",
                    path: "a:b",
                },
            ),
            ("data", here("data")),
            ("./a:b", here("./a:b")),
            (":x", here(":x")),
        ] {
            assert_eq!(Place::parse(text), place);
        }
    }
}
