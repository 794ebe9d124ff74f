//! `longshore controllers`: the controllers of the embedded cluster on another API server.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use longshore::client::Cluster;
use longshore_embedded::controllers::{self, Files};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    env,
    error::{Error, Kind, Result},
    ui,
};

/// Run the controllers and the scheduler on another API server, until Ctrl-C
///
/// They do the work of the kube-controller-manager and the kube-scheduler, as clients of
/// the API server: for example of the kube-apiserver that envtest starts, which has no
/// controllers. Run them once for each API server, because they elect no leader. They
/// sign no certificate requests and make no volumes for claims.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore controllers --kubeconfig ./kubeconfig
  longshore controllers --kubeconfig ./kubeconfig --root-ca-file ca.crt")]
pub(crate) struct ControllersArgs {
    /// Kubeconfig of the API server, with the permissions of system:masters
    #[arg(long, value_name = "FILE", env = env::KUBECONFIG, hide_env_values = true, required = true)]
    kubeconfig: PathBuf,
    /// Context of the kubeconfig to use
    #[arg(long, env = env::CONTEXT, hide_env_values = true)]
    context: Option<String>,
    /// CA certificate of the API server, for the ConfigMap kube-root-ca.crt of each namespace
    #[arg(long, value_name = "FILE")]
    root_ca_file: Option<PathBuf>,
    /// P-256 key that signs the tokens in Secrets of service accounts
    #[arg(long, value_name = "FILE")]
    service_account_private_key_file: Option<PathBuf>,
}

pub(crate) async fn controllers(args: ControllersArgs) -> Result<ExitCode> {
    let failed =
        |error: std::io::Error| Error::new(Kind::Failed, format!("cannot handle signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let cluster = Cluster::from_kubeconfig(Some(&args.kubeconfig), args.context.as_deref());
    let cluster = cluster.await.map_err(|error| {
        Error::from(error).hint("--kubeconfig and --context name the API server to run them on")
    })?;
    let files = Files {
        root_ca: args.root_ca_file,
        service_account_key: args.service_account_private_key_file,
    };
    let url = cluster.url().to_owned();
    let ready = || {
        ui::line(format!("the controllers run on {url}"));
        ui::flush();
    };
    let end = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let done = controllers::run(cluster, files, ready, end).await;
    done.map_err(|error| Error::from_source(Kind::Failed, &error))?;
    Ok(ExitCode::SUCCESS)
}
