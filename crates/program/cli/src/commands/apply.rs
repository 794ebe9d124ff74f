//! `longshore create` and `longshore apply`: create objects from manifests, or apply them.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

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
    target::{self, ClusterArgs},
    ui,
};

/// The maximum size of a manifest. Manifests of operators have a few MiB.
const LARGEST_MANIFEST: u64 = 64 << 20;
/// The field manager of `apply`.
const MANAGER: &str = "longshore";

/// Arguments for manifests.
#[derive(Debug, Args)]
pub(crate) struct ManifestArgs {
    /// Manifests, YAML or JSON; - is stdin
    #[arg(long = "filename", short = 'f', value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Namespace of objects without one [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    /// Validate the objects on the server without storing them
    #[arg(long)]
    dry_run: bool,
    /// Output format [default: one line per object]
    #[arg(long, short, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Create objects from manifests
///
/// Fails if an object exists. Objects created before it are kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore create -f job.yaml
  longshore create -f job.yaml --dry-run --output yaml
  cat job.yaml | longshore create -f - -n shop")]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    manifest: ManifestArgs,
}

/// Apply manifests: create objects, or update the fields that the manifests set
///
/// Uses server-side apply: longshore becomes the manager of the fields in the manifest, and
/// other fields do not change. A field that another manager owns is a conflict.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore apply -f deployment.yaml
  longshore apply -f deployment.yaml --force-conflicts
  longshore apply -f deployment.yaml --dry-run --output yaml")]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    manifest: ManifestArgs,
    /// Take over fields that other managers own
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
    let objects = read_all(&args.files)?;
    let target = args.cluster.open(&config::here()?).await?;
    let result = send_all(target.cluster(), &args, &how, objects).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

/// The objects of manifests.
pub(super) fn read_all(files: &[PathBuf]) -> Result<Vec<serde_json::Value>> {
    let mut objects = Vec::new();
    for file in files {
        let text = read(file)?;
        let read = manifest::read(&text).map_err(|error| {
            let error = Error::new(Kind::Usage, format!("{}: {error}", file.display()));
            with_tool(error, file, &text)
        })?;
        if read.iter().any(is_kustomization) {
            let message = format!("{} is a kustomization, not an object", file.display());
            return Err(Error::new(Kind::Usage, message).hint(RENDER_KUSTOMIZATION));
        }
        objects.extend(read);
    }
    Ok(objects)
}

const RENDER_KUSTOMIZATION: &str =
    "`kubectl kustomize FOLDER | longshore apply -f -` applies the objects that it describes";
const RENDER_TEMPLATE: &str =
    "it is a template: `helm template CHART | longshore apply -f -` renders and applies it";

fn is_kustomization(object: &serde_json::Value) -> bool {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    version.starts_with("kustomize.config.k8s.io/")
}

/// Adds the tool for files that are not manifests to an error.
fn with_tool(error: Error, file: &Path, text: &str) -> Error {
    let stem = file.file_stem().unwrap_or_default();
    if stem.eq_ignore_ascii_case("kustomization") {
        return error.hint(RENDER_KUSTOMIZATION);
    }
    if text.contains("{{") {
        return error.hint(RENDER_TEMPLATE);
    }
    error
}

fn read(file: &Path) -> Result<String> {
    let (name, content) = match file.as_os_str() == "-" {
        true => ("the standard input".into(), read_stdin()),
        false => (
            file.to_string_lossy(),
            longshore_files::read_limited(file, LARGEST_MANIFEST),
        ),
    };
    let text = content.and_then(|content| String::from_utf8(content).map_err(io::Error::other));
    text.map_err(|error| Error::new(Kind::Usage, format!("cannot read {name}: {error}")))
}

/// Reads stdin on a blocking thread, because it may take any time.
fn read_stdin() -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut stdin = io::stdin().lock().take(LARGEST_MANIFEST + 1);
    if stdin.read_to_end(&mut content)? as u64 > LARGEST_MANIFEST {
        let text = format!("it is larger than {LARGEST_MANIFEST} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(content)
}

async fn send_all(
    cluster: &Cluster,
    args: &ManifestArgs,
    how: &How,
    objects: Vec<serde_json::Value>,
) -> Result<()> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    for object in objects {
        let view = cluster.place(&object, namespace).await;
        let mut view = view.map_err(|error| select::unknown_kind_of(error, &object))?;
        if args.dry_run {
            view = view.dry_run();
        }
        let (item, done) = match how {
            How::Create => {
                let created = view.strict().create(&object).await;
                (created.map_err(explained)?, "created")
            }
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
    let only = if args.dry_run { " (dry run)" } else { "" };
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

/// The remedy for a refusal whose message is about an API server and not about manifests.
fn remedy(message: &str) -> Option<&'static str> {
    let says = |text: &str| message.contains(text);
    if says("field is immutable") {
        return Some(
            "delete the object with `longshore delete`, and create it again, or give the new one another name",
        );
    }
    // The messages of apply and of create.
    if says("expected string, got") || says(" of type string") {
        return Some("put values in quotes that YAML reads as numbers or booleans, as in \"8080\"");
    }
    if says("expected numeric") || says(" of type int") {
        return Some("write numbers without quotes, and octal modes as in 0o644");
    }
    if says("expected boolean, got") || says(" of type bool") {
        return Some("write true or false without quotes: `yes` and `on` are strings");
    }
    let is_list = says("expected list, got") || says("of type []");
    is_list.then_some("the items of a list begin with a dash, as in `- name: web`")
}

/// Adds the fields and their managers to a conflict, and the remedy to other errors.
fn explained(error: longshore::Error) -> Error {
    let conflicts = error.conflicts();
    let lines = conflicts
        .iter()
        .map(|conflict| format!("{} belongs to {}", conflict.field, conflict.manager));
    let lines: Vec<String> = lines.collect();
    let remedy = remedy(&error.to_string());
    let shown = Error::from(error);
    if lines.is_empty() {
        return shown.hint_if(remedy.map(str::to_owned));
    }
    shown
        .details(lines)
        .hint("remove these fields, or take them over with --force-conflicts")
}
