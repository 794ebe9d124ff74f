//! `longshore role`: prints the permissions that the commands need, for an administrator.

use std::process::ExitCode;

use clap::Args;
use longshore::launcher::{Owner, preflight};

use crate::{
    config,
    error::Result,
    target::{self, ClusterArgs},
    ui,
};

/// Print a manifest with the permissions for all commands that manage runs
///
/// The manifest has a Role for the namespace, and a RoleBinding for your user, by the cluster's
/// own name for it. Send it to an administrator of the cluster, who applies it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore role --context production --namespace team > role.yaml")]
pub(crate) struct RoleArgs {
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn role(args: RoleArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let namespace = target::namespace(args.namespace.as_deref(), target.cluster());
    let manifest = match Owner::current(target.cluster()).await {
        Ok(user) => Ok(preflight::role_manifest(namespace, &user)),
        Err(error) => Err(error),
    };
    target.close().await?;
    ui::bytes(manifest?.as_bytes());
    Ok(ExitCode::SUCCESS)
}
