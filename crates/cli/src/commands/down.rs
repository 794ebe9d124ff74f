//! `longshore down`: stops the embedded cluster and all it runs.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use longshore_embedded::daemon::{self, Stopped};

use crate::{embedded, env, error::Result, ui};

/// Stop the embedded cluster and every process it runs
///
/// Objects and logs stay in its folder, unless it was ephemeral.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  longshore down")]
pub(crate) struct DownArgs {
    /// The folder of the cluster
    #[arg(long, value_name = "DIR", env = env::DATA_DIR, hide_env_values = true)]
    data_dir: Option<PathBuf>,
}

pub(crate) async fn down(args: DownArgs) -> Result<ExitCode> {
    let layout = embedded::layout(args.data_dir.as_ref())?;
    ui::line(match daemon::stop(&layout).await? {
        Stopped::NotRunning => "The embedded cluster is not running.",
        Stopped::Kindly(_) => "The embedded cluster has stopped.",
        Stopped::Killed(_) => "The embedded cluster did not stop by itself and was killed.",
    });
    Ok(ExitCode::SUCCESS)
}
