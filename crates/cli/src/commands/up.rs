//! `longshore up`: a lasting embedded cluster, in the background or here.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::kept::{self, Kept},
};
use longshore_embedded::{
    Layout,
    daemon::{self, Record, Report, ServeOptions, State, Usage},
};

use crate::{
    embedded::{self, NodeArgs, Wish},
    env,
    error::{self, Error, Kind, Result},
    hints, leftovers,
    ready::ReadyCode,
    ui,
};

/// Start an embedded cluster that stays until `longshore down`
///
/// Other commands start one that stops by itself: when no run, pod or schedule
/// is left and no command uses it. `up` makes a running one stay.
///
/// It serves the Kubernetes API on 127.0.0.1, to kubectl and every other
/// client, and runs pods as local processes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore up
  longshore up --ephemeral --data-dir /tmp/try
  longshore up --ephemeral --faults
  longshore up --image-entrypoint 'trainer=python -m trainer'
  longshore up --kubeconfig ./kubeconfig && KUBECONFIG=./kubeconfig kubectl get nodes")]
pub(crate) struct UpArgs {
    /// Keep all objects in memory; a stop forgets them
    #[arg(long)]
    ephemeral: bool,
    /// The folder of the cluster
    #[arg(long, value_name = "DIR", env = env::DATA_DIR, hide_env_values = true)]
    data_dir: Option<PathBuf>,
    /// Write the kubeconfig to this file
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Let tests ask for faults: errors, delays, broken watches
    ///
    /// Rules about faults are added, listed and removed at
    /// /longshore.dev/v1/faults of the cluster, with its own credentials. For
    /// tests of programs that talk to Kubernetes; see docs/faults.md.
    #[arg(long)]
    faults: bool,
    /// How much room bundles of code may take [default: 10Gi]
    ///
    /// It stays until another limit is given; never more than half of the free disk.
    /// Bundles that active runs need stay in any case. See docs/stores.md.
    #[arg(long, value_name = "SIZE", value_parser = embedded::size)]
    code_limit: Option<u64>,
    #[command(flatten)]
    node: NodeArgs,
    /// Run in this process until Ctrl-C
    #[arg(long)]
    foreground: bool,
    /// Started by another of our processes, to which we report
    #[arg(long, hide = true, requires = "foreground")]
    spawned: bool,
    /// End when no command uses the cluster and it has no work
    #[arg(long, hide = true, requires = "foreground")]
    on_demand: bool,
}

impl UpArgs {
    pub(crate) fn is_foreground(&self) -> bool {
        self.foreground
    }

    /// The folder whose log this process writes, if it is a background process.
    pub(crate) fn log_folder(&self) -> Option<Layout> {
        let layout = self
            .spawned
            .then(|| embedded::layout(self.data_dir.as_ref()));
        layout?.ok()
    }
}

pub(crate) async fn up(args: UpArgs) -> Result<ExitCode> {
    let layout = embedded::layout(args.data_dir.as_ref())?;
    let kubeconfig = args
        .kubeconfig
        .as_ref()
        .map(std::path::absolute)
        .transpose()
        .map_err(|error| Error::from_source(Kind::Usage, &error))?;
    if args.spawned {
        return serve_spawned(args, layout, kubeconfig).await;
    }
    if let Some(file) = &kubeconfig {
        longshore_embedded::check_kubeconfig_place(file)?;
    }
    if args.foreground {
        let options = serve_options(&args, &layout, kubeconfig);
        layout.create()?;
        set_code_limit(&args, &layout)?;
        daemon::serve(options, |record, cluster| {
            look_after_runs(cluster, &layout);
            describe("is up", record, &layout);
            ui::line("Ctrl-C stops it.");
            ui::flush();
        })
        .await?;
        return Ok(ExitCode::SUCCESS);
    }
    start(&args, &layout, kubeconfig).await
}

async fn start(args: &UpArgs, layout: &Layout, kubeconfig: Option<PathBuf>) -> Result<ExitCode> {
    // Holds a cluster on demand until it is made a lasting one.
    let usage = Usage::begin(layout).await?;
    let (news, record) = match daemon::find(layout).await? {
        State::Running(record) => {
            if record.on_demand {
                usage.keep()?;
            }
            if args.ephemeral && !record.ephemeral {
                ui::warning(
                    "it keeps its objects on disk; --ephemeral has no effect while it runs",
                );
            }
            if args.faults && !record.faults {
                return Err(Error::usage(
                    "the embedded cluster runs already, and without --faults",
                )
                .hint("stop it with `longshore down` first"));
            }
            if let Some(file) = &kubeconfig {
                record.copy_kubeconfig(file)?;
            }
            ("is already up", record)
        }
        State::Stopped => {
            let wish = Wish {
                ephemeral: args.ephemeral,
                on_demand: false,
                faults: args.faults,
                kubeconfig: kubeconfig.clone(),
                node: args.node.clone(),
            };
            ("is up", embedded::spawn(layout, &wish).await?)
        }
    };
    set_code_limit(args, layout)?;
    let record = Record {
        kubeconfig: kubeconfig.unwrap_or(record.kubeconfig),
        ..record
    };
    describe(news, &record, layout);
    ui::line(hints::complete("Stop it with `longshore down`."));
    Ok(ExitCode::SUCCESS)
}

/// Begins what the cluster's process does for runs, until the cluster ends.
fn look_after_runs(cluster: Cluster, layout: &Layout) {
    tokio::spawn(leftovers::stop_them(cluster.clone()));
    tokio::spawn(kept::keep(cluster, Kept::new(layout.bundles())));
}

/// Keeps the limit in the cluster's folder, where the cluster's process finds it.
fn set_code_limit(args: &UpArgs, layout: &Layout) -> Result<()> {
    let Some(bytes) = args.code_limit else {
        return Ok(());
    };
    let folder = layout.bundles();
    Kept::new(&folder).set_limit(bytes).map_err(|error| {
        let message = format!("cannot write to {}: {error}", folder.display());
        Error::new(Kind::Failed, message).hint("the limit for code was not set")
    })
}

fn describe(news: &str, record: &Record, layout: &Layout) {
    let kept = if record.ephemeral {
        "in memory"
    } else {
        "on disk"
    };
    ui::line(format!("The embedded cluster {news}: {}", record.url));
    ui::line(format!(
        "  folder      {} (objects {kept})",
        layout.dir().display()
    ));
    ui::line(format!("  kubeconfig  {}", record.kubeconfig.display()));
    ui::line("Use it with kubectl:");
    ui::line(format!(
        "  export KUBECONFIG={}",
        quoted(&record.kubeconfig.to_string_lossy())
    ));
    ui::line("  kubectl get nodes");
}

/// A word for a shell, in quotes if it needs them.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn serve_options(args: &UpArgs, layout: &Layout, kubeconfig: Option<PathBuf>) -> ServeOptions {
    let program = std::env::current_exe().ok();
    ServeOptions {
        dir: layout.dir().to_owned(),
        ephemeral: args.ephemeral,
        kubeconfig,
        on_demand: args.on_demand,
        faults: args.faults,
        log_limits: args.node.log_limits(),
        image_entrypoints: args.node.image_entrypoints(),
        device_root: args.node.device_root(),
        fill_volumes: Some(Arc::new(ReadyCode(Kept::new(layout.bundles())))),
        program_dir: program.and_then(|program| program.parent().map(PathBuf::from)),
    }
}

/// The background process, which has a session of its own; says once, on standard
/// output, how it went.
async fn serve_spawned(
    args: UpArgs,
    layout: Layout,
    kubeconfig: Option<PathBuf>,
) -> Result<ExitCode> {
    // No file system is kept from being unmounted.
    let _ = std::env::set_current_dir("/");
    let result = daemon::serve(
        serve_options(&args, &layout, kubeconfig),
        |record, cluster| {
            look_after_runs(cluster, &layout);
            report(&Report::Ready(record.clone()));
            // Whoever started it has heard all; the rest goes to the log.
            let _ = rustix::stdio::dup2_stdout(std::io::stderr());
        },
    )
    .await;
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error @ longshore_embedded::Error::Busy(_)) => {
            report(&Report::Busy);
            Err(error.into())
        }
        Err(error) => {
            report(&Report::Failed(error::chain(&error)));
            Err(error.into())
        }
    }
}

fn report(report: &Report) {
    if let Ok(text) = serde_json::to_string(report) {
        ui::line(text);
        ui::flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_the_shell() {
        assert_eq!(quoted("/a/b-c.d"), "/a/b-c.d");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
