//! `longshore envtest`: the programs that envtest of controller-runtime starts.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use clap::Args;
use longshore_embedded::{EmbeddedCluster, NAME, Options, envtest::Assets};

use crate::{
    child, env,
    error::{Error, Kind, Result},
    interrupt::Interrupt,
    ui,
};

/// The variable with the folder of envtest's programs.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

/// Run the tests of a Go operator (envtest) on the embedded API server
///
/// envtest of controller-runtime starts the programs kube-apiserver and etcd from the
/// folder in KUBEBUILDER_ASSETS. This command creates a folder whose programs start the
/// embedded API server instead, and runs COMMAND with that variable, or prints the folder
/// if there is no command. The tests do not change. As in envtest, no controllers run and
/// no pods start, unless an option says so.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore envtest -- go test ./...
  longshore envtest --controllers -- go test ./internal/controller/...
  longshore envtest --latency 3 -- go test ./internal/controller/...
  longshore envtest --existing-cluster -- go test ./test/e2e/...
  export KUBEBUILDER_ASSETS=\"$(longshore envtest)\"")]
pub(crate) struct EnvtestArgs {
    /// Run the cluster's controllers: garbage collection, Deployments, Jobs, namespaces
    #[arg(long)]
    controllers: bool,
    /// Delay each request by this many milliseconds, for tests that depend on the speed of etcd
    ///
    /// The embedded API server responds in less than a millisecond. Tests that expect that a
    /// controller has acted by the time of their next request can fail. A few milliseconds are
    /// as long as a kube-apiserver with etcd takes.
    #[arg(long, value_name = "MILLISECONDS", conflicts_with = "existing_cluster",
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    latency: Option<u16>,
    /// Start one cluster that runs pods, and set USE_EXISTING_CLUSTER and KUBECONFIG
    #[arg(long, conflicts_with = "controllers", requires = "command")]
    existing_cluster: bool,
    /// Create the folder in this folder [default: the user's cache folder]
    #[arg(long, value_name = "DIR")]
    assets_dir: Option<PathBuf>,
    /// The command to run
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl EnvtestArgs {
    /// Returns true if the command runs a cluster in this process.
    pub(crate) fn is_server(&self) -> bool {
        self.existing_cluster
    }
}

pub(crate) async fn envtest(args: EnvtestArgs) -> Result<ExitCode> {
    if args.existing_cluster {
        return with_cluster(&args.command).await;
    }
    let parent = args
        .assets_dir
        .or_else(|| Some(env::cache_dir()?.join("envtest")));
    let parent = parent.ok_or_else(|| {
        Error::usage("there is no cache folder: HOME is not set")
            .hint("set --assets-dir to a folder for the programs")
    })?;
    let parent = std::path::absolute(&parent)
        .map_err(|error| Error::new(Kind::Failed, format!("{}: {error}", parent.display())))?;
    let program = std::env::current_exe()
        .map_err(|error| Error::new(Kind::Failed, format!("cannot find this program: {error}")))?;
    let assets = Assets {
        parent,
        program,
        kubectl: program_on_path("kubectl"),
        controllers: args.controllers,
        latency: Duration::from_millis(args.latency.unwrap_or_default().into()),
    };
    let folder = assets
        .create()
        .map_err(|error| Error::from_source(Kind::Failed, &error))?;
    let Some((program, arguments)) = args.command.split_first() else {
        ui::line(folder.display().to_string());
        return Ok(ExitCode::SUCCESS);
    };
    ui::flush();
    let error = Command::new(program)
        .args(arguments)
        .env(ASSETS, &folder)
        .exec();
    Err(child::not_started(program, &error))
}

/// Runs the command with its own cluster.
async fn with_cluster(command: &[OsString]) -> Result<ExitCode> {
    let mut signals = Interrupt::listen()?;
    let program_dir = std::env::current_exe();
    let program_dir = program_dir
        .ok()
        .and_then(|path| path.parent().map(Path::to_owned));
    let options = Options {
        listen: Some(([127, 0, 0, 1], 0).into()),
        program_dir,
        ..Options::default()
    };
    let cluster = EmbeddedCluster::start(options)
        .await
        .map_err(|error| Error::from_source(Kind::Failed, &error))?;
    let kubeconfig = cluster.kubeconfig_path().unwrap_or(Path::new(""));
    ui::note(format!(
        "cluster {NAME} of this command at {}",
        cluster.url().unwrap_or_default()
    ));
    let variables = vec![
        ("USE_EXISTING_CLUSTER", "true".into()),
        ("KUBECONFIG", kubeconfig.into()),
    ];
    let code = child::run(command, variables, &mut signals).await;
    cluster.stop().await;
    Ok(code?.into())
}

fn program_on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_absolute() && program.is_file())
}
