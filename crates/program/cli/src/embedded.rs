//! The embedded cluster as the command line uses it: its data folder, and the arguments
//! with which this program runs it in the background.

use std::{ffi::OsString, path::PathBuf};

use clap::Args;
use longshore::model::Quantity;
use longshore_embedded::{
    AuditOptions, AuthorizationMode, ImageEntrypoint, ImageUser, Layout, LogLimits, MAX_NODES,
    daemon::{self, Record, SpawnOptions},
};

use crate::{
    clock::ClockChoice,
    error::{Error, Kind, Result},
    hints, ui,
};

/// The data folder of a cluster, checked without modifying it.
pub(crate) fn layout(data_dir: Option<&PathBuf>) -> Result<Layout> {
    let layout = match data_dir.filter(|dir| !dir.as_os_str().is_empty()) {
        Some(dir) => {
            hints::remember_folder(dir);
            let absolute = std::path::absolute(dir);
            Layout::new(absolute.map_err(|error| Error::from_source(Kind::Usage, &error))?)
        }
        None => Layout::of_user().ok_or_else(|| {
            Error::usage("no folder for the embedded cluster: HOME is not set")
                .hint("set --data-dir or LONGSHORE_DATA_DIR")
        })?,
    };
    let dir = layout.dir();
    if dir.exists() && !dir.is_dir() {
        return Err(Error::usage(format!("{} is not a folder", dir.display()))
            .hint("--data-dir names the folder of an embedded cluster"));
    }
    Ok(layout)
}

/// Settings of the background process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wish {
    pub(crate) ephemeral: bool,
    pub(crate) faults: bool,
    pub(crate) clock: Option<ClockChoice>,
    pub(crate) authorization: AuthorizationMode,
    pub(crate) audit: Option<AuditOptions>,
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) node: NodeArgs,
}

/// Options of the nodes.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct NodeArgs {
    /// Number of nodes [default: 1]
    ///
    /// More than one shows what happens on several: DaemonSets, affinity, topology spread and
    /// drained nodes. All run their pods on this machine, and each offers the
    /// whole CPU and memory of it; GPUs are distributed to them. See docs/node.md.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_NODES)))]
    nodes: Option<u8>,
    /// Maximum size of a container log file before it is rotated [default: 10Mi]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    container_log_max_size: Option<u64>,
    /// Maximum number of log files of a container [default: 5]
    ///
    /// Up to ten times as many files are kept for 30 seconds, and while a reader of the
    /// log still needs them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    container_log_max_files: Option<u32>,
    /// Entrypoint of an image, for containers without a command; can be repeated
    ///
    /// The cluster does not pull images, so it does not know their entrypoints. The args of
    /// the container follow the entrypoint. IMAGE without a tag matches every tag. Without
    /// an entrypoint, the args are the command.
    #[arg(long, value_name = "IMAGE=COMMAND")]
    image_entrypoint: Vec<ImageEntrypoint>,
    /// User of an image, for containers without `runAsUser`; can be repeated
    ///
    /// Charts that set `runAsNonRoot` alone rely on the user that the image sets. IMAGE
    /// without a tag matches every tag. Without this option, the containers run as the user
    /// of the cluster.
    #[arg(long, value_name = "IMAGE=UID[:GID]")]
    image_user: Vec<ImageUser>,
    /// Root folder of the kernel's GPU files, for tests
    #[arg(long, value_name = "DIR", hide = true)]
    device_root: Option<PathBuf>,
}

impl NodeArgs {
    /// The number of nodes, if it was set.
    pub(crate) fn nodes(&self) -> Option<u8> {
        self.nodes
    }

    pub(crate) fn image_entrypoints(&self) -> Vec<ImageEntrypoint> {
        self.image_entrypoint.clone()
    }

    pub(crate) fn image_users(&self) -> Vec<ImageUser> {
        self.image_user.clone()
    }

    pub(crate) fn device_root(&self) -> PathBuf {
        self.device_root.clone().unwrap_or_else(|| "/".into())
    }

    pub(crate) fn log_limits(&self) -> LogLimits {
        let usual = LogLimits::default();
        LogLimits {
            max_size: self.container_log_max_size.unwrap_or(usual.max_size),
            max_files: self.container_log_max_files.unwrap_or(usual.max_files),
        }
    }

    /// The same options as command-line arguments.
    fn again(&self) -> impl Iterator<Item = OsString> {
        let size = self.container_log_max_size;
        let files = self.container_log_max_files;
        let size = size.map(|size| format!("--container-log-max-size={size}"));
        let files = files.map(|files| format!("--container-log-max-files={files}"));
        let entrypoints = self.image_entrypoint.iter();
        let entrypoints = entrypoints.map(|one| format!("--image-entrypoint={}", one.as_str()));
        let users = self.image_user.iter();
        let users = users.map(|user| format!("--image-user={}", user.as_str()));
        let images = entrypoints.chain(users);
        let nodes = self.nodes.map(|nodes| format!("--nodes={nodes}"));
        let arguments = nodes.into_iter().chain(size).chain(files).chain(images);
        let root = self.device_root.as_ref().map(|root| {
            let mut argument = OsString::from("--device-root=");
            argument.push(root);
            argument
        });
        arguments.map(OsString::from).chain(root)
    }
}

/// A number of bytes, as in `10Mi`.
pub(crate) fn size(text: &str) -> std::result::Result<u64, String> {
    let quantity = text
        .parse::<Quantity>()
        .map_err(|error| error.to_string())?;
    let bytes = quantity.value();
    if bytes < 1.0 {
        return Err("a size is at least 1, as in 10Mi".to_owned());
    }
    if bytes >= 2_f64.powi(53) {
        return Err("a size is less than 8Pi, as in 10Mi".to_owned());
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is in range"
    )]
    Ok(bytes as u64)
}

/// The path of this program.
pub(crate) fn program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| {
        Error::new(
            Kind::Cluster,
            format!("cannot find the program itself: {error}"),
        )
    })
}

/// Starts the background process and waits until it serves.
pub(crate) async fn spawn(layout: &Layout, wish: &Wish) -> Result<Record> {
    let mut options = SpawnOptions::new(&program()?, layout);
    let arguments = &mut options.arguments;
    if wish.ephemeral {
        arguments.push("--ephemeral".into());
    }
    if wish.faults {
        arguments.push("--faults".into());
    }
    if let Some(clock) = wish.clock {
        arguments.push(format!("--clock={clock}").into());
    }
    if wish.authorization != AuthorizationMode::default() {
        arguments.push(format!("--authorization-mode={}", wish.authorization).into());
    }
    if let Some(audit) = &wish.audit {
        arguments.extend(["--audit-log".into(), (&audit.log).into()]);
        if let Some(policy) = &audit.policy {
            arguments.extend(["--audit-policy-file".into(), policy.into()]);
        }
    }
    if let Some(file) = &wish.kubeconfig {
        arguments.extend(["--kubeconfig".into(), file.into()]);
    }
    arguments.extend(wish.node.again());
    let record = daemon::spawn(options).await?;
    warn(&record);
    Ok(record)
}

/// Prints the problems of a start.
pub(crate) fn warn(record: &Record) {
    for warning in &record.warnings {
        ui::warning(warning);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        node: NodeArgs,
    }

    #[test]
    fn the_options_of_the_node_are_passed_to_the_background_process() {
        let options = [
            "--nodes=3",
            "--container-log-max-size=2048",
            "--container-log-max-files=3",
            "--image-entrypoint=nginx=nginx -g 'daemon off;'",
            "--image-entrypoint=redis=redis-server",
            "--image-user=redis=999:999",
            "--device-root=/tmp",
        ];
        let program = Program::try_parse_from(["longshore"].iter().chain(&options)).unwrap();
        assert_eq!(program.node.again().collect::<Vec<_>>(), options);
    }
}
