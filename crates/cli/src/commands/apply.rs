//! `longshore create` and `longshore apply`: objects of manifests.

use std::{io::Read as _, path::PathBuf, process::ExitCode};

use clap::Args;
use longshore::{
    Item,
    client::{Cluster, kinds::Any},
    manifest,
};

use crate::{
    config,
    error::{Error, Kind, Result},
    output::{self, Format},
    select,
    target::ClusterArgs,
    ui,
};

/// The name under which `apply` owns fields.
const MANAGER: &str = "longshore";

/// The manifests and what becomes of them.
#[derive(Debug, Args)]
pub(crate) struct ManifestArgs {
    /// Files of manifests, YAML or JSON; `-` is the standard input
    #[arg(long = "filename", short = 'f', value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The namespace of objects that name none; the context's own without it
    #[arg(long, short)]
    namespace: Option<String>,
    /// Only try: the server checks everything and keeps nothing
    #[arg(long)]
    dry_run: bool,
    /// How to write the objects; their names without it
    #[arg(long, short, value_enum)]
    output: Option<Format>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Make the objects of manifests
///
/// An object that is there already is an error; those before it stay.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore create -f job.yaml
  longshore create -f job.yaml --dry-run --output yaml
  cat *.yaml | longshore create -f - -n shop")]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    manifest: ManifestArgs,
}

/// Make the objects of manifests as they say, whether they are there or not
///
/// Server-side apply: the fields in the manifest become yours, others stay. A
/// field that somebody else owns is a conflict that names the owner.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore apply -f deployment.yaml
  longshore apply -f deployment.yaml --force-conflicts
  longshore apply -f deployment.yaml --dry-run --output yaml")]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    manifest: ManifestArgs,
    /// Take over fields that others own
    #[arg(long)]
    force_conflicts: bool,
}

enum How {
    Create,
    Apply { force: bool },
}

pub(crate) async fn create(args: CreateArgs) -> Result<ExitCode> {
    send(args.manifest, How::Create).await
}

pub(crate) async fn apply(args: ApplyArgs) -> Result<ExitCode> {
    let force = args.force_conflicts;
    send(args.manifest, How::Apply { force }).await
}

async fn send(args: ManifestArgs, how: How) -> Result<ExitCode> {
    let mut objects = Vec::new();
    for file in &args.files {
        let text = read(file)?;
        let read = manifest::read(&text)
            .map_err(|error| Error::new(Kind::Usage, format!("{}: {error}", file.display())))?;
        objects.extend(read);
    }
    let target = args.cluster.open(&config::here()?).await?;
    let result = send_all(target.cluster(), &args, &how, objects).await;
    if result.is_ok() && !args.dry_run {
        // What was made is to be worked on.
        target.keep()?;
    }
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

fn read(file: &PathBuf) -> Result<String> {
    let outcome = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    outcome.map_err(|error| {
        Error::new(
            Kind::Usage,
            format!("cannot read {}: {error}", file.display()),
        )
    })
}

async fn send_all(
    cluster: &Cluster,
    args: &ManifestArgs,
    how: &How,
    objects: Vec<serde_json::Value>,
) -> Result<()> {
    let namespace = args.namespace.as_deref();
    let namespace = namespace.unwrap_or_else(|| cluster.default_namespace());
    for object in objects {
        let mut view = cluster.place(&object, namespace).await?;
        if args.dry_run {
            view = view.dry_run();
        }
        let (item, done) = match how {
            How::Create => (view.create(&object).await?, "created"),
            How::Apply { force } => {
                let outcome = view.apply(&object, MANAGER, *force).await;
                (outcome.map_err(explained)?, "applied")
            }
        };
        show(&item, args, done)?;
        if !args.dry_run {
            manifest::settled(&item).await?;
        }
    }
    Ok(())
}

fn show(item: &Item<Any>, args: &ManifestArgs, done: &str) -> Result<()> {
    let only = if args.dry_run { " (only tried)" } else { "" };
    match args.output {
        Some(format @ (Format::Json | Format::Yaml)) => {
            if format == Format::Yaml {
                ui::line("---");
            }
            output::value(format, &item.raw()?)?;
        }
        Some(Format::Name) => ui::line(select::named(item)),
        _ => ui::line(format!("{} {done}{only}", select::named(item))),
    }
    Ok(())
}

/// A conflict, with the fields and their owners.
fn explained(error: longshore::Error) -> Error {
    let conflicts = error.conflicts();
    let lines = conflicts
        .iter()
        .map(|conflict| format!("{} belongs to {}", conflict.field, conflict.manager));
    let lines: Vec<String> = lines.collect();
    let told = Error::from(error);
    if lines.is_empty() {
        return told;
    }
    told.details(lines)
        .hint("leave these fields out, or take them over with --force-conflicts")
}
