//! `longshore up`: starts a lasting embedded cluster, in the background or foreground.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::{
        kept::{self, Kept},
        outputs::Outputs,
        run_outputs,
    },
};
use longshore_embedded::{
    AuditOptions, AuthorizationMode, KeptLogs, Layout,
    daemon::{self, Record, Report, ServeOptions, State, Usage},
};

use crate::{
    clock::ClockChoice,
    embedded::{self, NodeArgs, Wish},
    env,
    error::{self, Error, Kind, Result},
    finished_runs, hints,
    ready::ReadyCode,
    task_outputs::TaskOutputs,
    ui,
};

/// Start an embedded cluster that stays until `longshore down`
///
/// A cluster that another command starts stops when no run, pod or schedule is active
/// and no command uses it. `up` keeps a running cluster until `longshore down`.
///
/// The cluster serves the Kubernetes API on 127.0.0.1 to kubectl and all other clients,
/// and runs pods as local processes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore up
  longshore up --ephemeral --data-dir /tmp/try
  longshore up --ephemeral --faults
  longshore up --ephemeral --faults --clock 2026-01-01T00:00:00Z
  longshore up --nodes 3
  longshore up --image-entrypoint 'trainer=python -m trainer'
  longshore up --kubeconfig ./kubeconfig && KUBECONFIG=./kubeconfig kubectl get nodes")]
pub(crate) struct UpArgs {
    /// Keep all objects in memory; they are lost when the cluster stops
    #[arg(long)]
    ephemeral: bool,
    /// Data folder of the embedded cluster
    #[arg(long, value_name = "DIR", env = env::DATA_DIR, hide_env_values = true)]
    data_dir: Option<PathBuf>,
    /// Write the kubeconfig to this file
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Enable fault injection for tests: errors, delays, broken watches
    ///
    /// Clients add, list and remove fault rules at /longshore.dev/v1/faults, with the
    /// credentials of the cluster. For tests of Kubernetes clients; see docs/faults.md.
    #[arg(long)]
    faults: bool,
    /// Clock of the cluster: system, manual, or the first time of a manual clock [default: system]
    ///
    /// The time of a manual clock stands still until a client advances it at
    /// /longshore.dev/v1/clock, with the credentials of the cluster. The value is the time
    /// at the start, as 2026-01-01T00:00:00Z; `manual` is the current time. For tests of
    /// what happens after hours; see docs/clock.md.
    #[arg(long, value_name = "CLOCK", requires = "faults")]
    clock: Option<ClockChoice>,
    /// Who may do what: RBAC or AlwaysAllow [default: RBAC]
    ///
    /// With RBAC, roles and role bindings decide what pods, service accounts and other users
    /// may do. With AlwaysAllow, every authenticated user has full access. The credentials in
    /// the kubeconfig always have full access. See docs/authentication.md.
    #[arg(long, value_name = "MODE")]
    authorization_mode: Option<AuthorizationMode>,
    /// Append a record of each API request to this file, in Kubernetes' audit format
    ///
    /// Each line is an Event of audit.k8s.io/v1 in JSON. Only the owner can read the file.
    /// Bodies of Secrets, and tokens, are never recorded. See docs/audit.md.
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// Audit policy that selects the recorded requests [default: metadata of all requests]
    #[arg(long, value_name = "FILE", requires = "audit_log")]
    audit_policy_file: Option<PathBuf>,
    /// Maximum disk usage of code bundles [default: 10Gi]
    ///
    /// The limit stays in effect until another is set. It never exceeds half of the free
    /// disk space. Bundles that active runs need are kept in any case. See docs/stores.md.
    #[arg(long, value_name = "SIZE", value_parser = embedded::size)]
    code_limit: Option<u64>,
    /// Maximum disk usage of the logs of deleted pods [default: 10Gi]
    ///
    /// The limit stays in effect until another is set. It never exceeds half of the free
    /// disk space. The oldest logs are removed first. See docs/node.md.
    #[arg(long, value_name = "SIZE", value_parser = embedded::size)]
    kept_logs_limit: Option<u64>,
    #[command(flatten)]
    node: NodeArgs,
    /// Run in the foreground until Ctrl-C
    #[arg(long)]
    foreground: bool,
    /// Report to the process that started this one
    #[arg(long, hide = true, requires = "foreground")]
    spawned: bool,
    /// Stop when no command uses the cluster and it has no work
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
        let options = serve_options(&args, &layout, kubeconfig)?;
        layout.create()?;
        set_limits(&args, &layout)?;
        daemon::serve(options, |record, cluster| {
            embedded::warn(record);
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
    // Keeps an on-demand cluster running until it becomes a lasting one.
    let usage = Usage::begin(layout).await?;
    let (news, record) = match daemon::find(layout).await? {
        State::Running(record) => {
            if record.on_demand {
                usage.keep()?;
            }
            if args.ephemeral && !record.ephemeral {
                ui::warning(
                    "the running cluster keeps its objects on disk; --ephemeral has no effect",
                );
            }
            if args.faults && !record.faults {
                return Err(Error::usage(
                    "the embedded cluster is already running without --faults",
                )
                .hint("stop it with `longshore down` first"));
            }
            if args.clock.is_some_and(ClockChoice::is_manual) && !record.manual_clock {
                return Err(Error::usage(
                    "the embedded cluster is already running with the system's clock",
                )
                .hint("stop it with `longshore down` first"));
            }
            if let Some(nodes) = args.node.nodes()
                && nodes != record.nodes
            {
                let running = ui::count(record.nodes.into(), "node");
                return Err(Error::usage(format!(
                    "the embedded cluster is already running with {running}, not {nodes}"
                ))
                .hint("stop it with `longshore down` first"));
            }
            if let Some(mode) = args.authorization_mode
                && mode.as_str() != record.authorization_mode
            {
                return Err(Error::usage(format!(
                    "the embedded cluster is already running without --authorization-mode {mode}"
                ))
                .hint("stop it with `longshore down` first"));
            }
            if let Some(audit) = audit_options(args)?
                && record.audit_log.as_ref() != Some(&audit.log)
            {
                return Err(Error::usage(format!(
                    "the embedded cluster is already running without --audit-log {}",
                    audit.log.display()
                ))
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
                faults: args.faults,
                clock: args.clock,
                authorization: args.authorization_mode.unwrap_or_default(),
                audit: audit_options(args)?,
                kubeconfig: kubeconfig.clone(),
                node: args.node.clone(),
            };
            ("is up", embedded::spawn(layout, &wish).await?)
        }
    };
    set_limits(args, layout)?;
    let record = Record {
        kubeconfig: kubeconfig.unwrap_or(record.kubeconfig),
        ..record
    };
    describe(news, &record, layout);
    ui::line(hints::complete("Stop it with `longshore down`."));
    Ok(ExitCode::SUCCESS)
}

/// Starts the background tasks for runs, which end with the cluster.
fn look_after_runs(cluster: Cluster, layout: &Layout) {
    tokio::spawn(finished_runs::stop_leftovers(cluster.clone()));
    tokio::spawn(run_outputs::keep(
        cluster.clone(),
        Outputs::new(layout.outputs()),
    ));
    tokio::spawn(kept::keep(cluster, Kept::new(layout.bundles())));
}

/// Stores limits of the disk usage in the data folder, where the cluster's process reads them.
fn set_limits(args: &UpArgs, layout: &Layout) -> Result<()> {
    let not_set = |what: &'static str, folder: &Path| {
        let folder = folder.display().to_string();
        move |error| {
            let message = format!("cannot write to {folder}: {error}");
            Error::new(Kind::Failed, message).hint(format!("the limit for {what} was not set"))
        }
    };
    if let Some(bytes) = args.code_limit {
        let folder = layout.bundles();
        let set = Kept::new(&folder).set_limit(bytes);
        set.map_err(not_set("code", &folder))?;
    }
    if let Some(bytes) = args.kept_logs_limit {
        let set = KeptLogs::set_limit(layout, bytes);
        set.map_err(not_set("logs of deleted pods", layout.dir()))?;
    }
    Ok(())
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

/// Quotes a word for a shell, if necessary.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The audit log, with absolute paths, because the background process has another
/// working directory.
fn audit_options(args: &UpArgs) -> Result<Option<AuditOptions>> {
    let absolute = |path: &PathBuf| {
        std::path::absolute(path).map_err(|error| Error::from_source(Kind::Usage, &error))
    };
    let Some(log) = &args.audit_log else {
        return Ok(None);
    };
    Ok(Some(AuditOptions {
        log: absolute(log)?,
        policy: args.audit_policy_file.as_ref().map(absolute).transpose()?,
    }))
}

fn serve_options(
    args: &UpArgs,
    layout: &Layout,
    kubeconfig: Option<PathBuf>,
) -> Result<ServeOptions> {
    let program = std::env::current_exe().ok();
    Ok(ServeOptions {
        dir: layout.dir().to_owned(),
        ephemeral: args.ephemeral,
        kubeconfig,
        on_demand: args.on_demand,
        faults: args.faults,
        clock: args.clock.unwrap_or_default().clock(),
        authorization: args.authorization_mode.unwrap_or_default(),
        audit: audit_options(args)?,
        nodes: args.node.nodes().unwrap_or(1),
        log_limits: args.node.log_limits(),
        image_entrypoints: args.node.image_entrypoints(),
        image_users: args.node.image_users(),
        device_root: args.node.device_root(),
        collect_files: Some(Arc::new(TaskOutputs(Outputs::new(layout.outputs())))),
        fill_volumes: Some(Arc::new(ReadyCode(Kept::new(layout.bundles())))),
        program_dir: program.and_then(|program| program.parent().map(PathBuf::from)),
    })
}

/// Runs the background process, which has its own session. It reports once on standard output
/// whether it started.
async fn serve_spawned(
    args: UpArgs,
    layout: Layout,
    kubeconfig: Option<PathBuf>,
) -> Result<ExitCode> {
    // Do not prevent file systems from being unmounted.
    let _ = std::env::set_current_dir("/");
    let result = daemon::serve(
        serve_options(&args, &layout, kubeconfig)?,
        |record, cluster| {
            look_after_runs(cluster, &layout);
            report(&Report::Ready(record.clone()));
            // The report is complete; further output goes to the log.
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
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted("/a/b-c.d"), "/a/b-c.d");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
