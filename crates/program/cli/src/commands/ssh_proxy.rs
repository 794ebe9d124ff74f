//! `longshore ssh-proxy`: the SSH server of a task, for the option ProxyCommand of SSH clients.

use std::{io::IsTerminal as _, process::ExitCode};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::{
    complete, config,
    error::{Error, Result},
    owners::OwnerArgs,
    ssh::{host_name, keys, proxy},
    target::{self, ClusterArgs},
};

/// Serve SSH for a task on standard input and output, for the option ProxyCommand
///
/// `longshore ssh --config` prints the options of SSH clients. The only accepted key is the
/// one in Longshore's data folder. Nothing listens, and no key is in the pod.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore ssh --config
  ssh -o ProxyCommand=\"longshore ssh-proxy '%h'\" -F config digits-x7k2p.worker.0.longshore")]
pub(crate) struct SshProxyArgs {
    /// Host name of a task or run: RUN.ROLE.INDEX.longshore, RUN.longshore, or RUN/ROLE/INDEX
    #[arg(value_name = "HOST", add = ArgValueCompleter::new(complete::tasks))]
    host: String,
    /// Last part of the host names
    #[arg(long, default_value = host_name::SUFFIX, value_parser = host_name::parse_suffix)]
    suffix: String,
    #[command(flatten)]
    owners: OwnerArgs,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn ssh_proxy(args: SshProxyArgs) -> Result<ExitCode> {
    let place = host_name::place(&args.host, &args.suffix)?;
    if std::io::stdin().is_terminal() {
        let message = "standard input is a terminal: SSH clients start this command";
        return Err(Error::usage(message).hint(format!("`longshore ssh {place}` connects")));
    }
    let keys = keys(&args.cluster.layout()?)?;
    let target = args.cluster.open(&config::here()?).await?;
    let cluster = target.cluster();
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let result = proxy::run(
        cluster,
        namespace,
        &place,
        &keys,
        args.owners.act("connect to"),
    )
    .await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}
