//! `longshore up`: a lasting embedded cluster, in the background or here.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use longshore_embedded::{
    Layout,
    daemon::{self, Record, Report, ServeOptions, State, Usage},
};

use crate::{
    embedded::{self, LogArgs, Wish},
    env,
    error::{self, Error, Kind, Result},
    ui,
};

/// Start an embedded cluster that stays until `longshore down`
///
/// It serves the Kubernetes API on 127.0.0.1, to kubectl and every other
/// client, and runs pods as local processes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore up
  longshore up --ephemeral --data-dir /tmp/try
  longshore up --ephemeral --faults
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
    #[command(flatten)]
    logs: LogArgs,
    /// Run in this process until Ctrl-C
    #[arg(long)]
    foreground: bool,
    /// Started by another of our processes, to which we report
    #[arg(long, hide = true, requires = "foreground")]
    spawned: bool,
    /// End with the last command that uses the cluster
    #[arg(long, hide = true, requires = "foreground")]
    on_demand: bool,
}

impl UpArgs {
    pub(crate) fn is_foreground(&self) -> bool {
        self.foreground
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
        daemon::serve(options, |record| {
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
                logs: args.logs.clone(),
            };
            ("is up", embedded::spawn(layout, &wish).await?)
        }
    };
    let record = Record {
        kubeconfig: kubeconfig.unwrap_or(record.kubeconfig),
        ..record
    };
    describe(news, &record, layout);
    ui::line("Stop it with `longshore down`.");
    Ok(ExitCode::SUCCESS)
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
        log_limits: args.logs.limits(),
        program_dir: program.and_then(|program| program.parent().map(PathBuf::from)),
    }
}

/// The background process: in a session of its own, so that no terminal's
/// signals reach it; says once, on standard output, how it went.
async fn serve_spawned(
    args: UpArgs,
    layout: Layout,
    kubeconfig: Option<PathBuf>,
) -> Result<ExitCode> {
    // It fails only for the leader of a group, which has what it wants.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    let result = daemon::serve(serve_options(&args, &layout, kubeconfig), |record| {
        report(&Report::Ready(record.clone()));
    })
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
