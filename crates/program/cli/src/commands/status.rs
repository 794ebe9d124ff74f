//! `longshore status`: prints the state, location and lifetime of the embedded cluster, and the
//! disk usage of code and of the logs of deleted pods.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use longshore::{
    client::{Cluster, Item, kinds::Node},
    launcher::{RunState, runs},
    model::node_condition::LIMITS_ENFORCED,
};
use longshore_embedded::{
    Layout,
    daemon::{self, Record},
};
use serde_json::json;

use crate::{
    embedded, env,
    error::{Error, Kind, Result, exit_code},
    hints,
    output::{self, Format, TableFormat},
    target::{Lifetime, age},
    ui,
    usage::DiskUsage,
};

/// Show whether the embedded cluster runs, where, and until when
///
/// Prints the runs in progress, the schedules, and the disk usage of code bundles, pod volumes and
/// logs of deleted pods. Says if limits of CPU and memory are not enforced on this machine. Exits
/// with 0 if the cluster is running and answers, 3 if not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore status
  longshore status --output json")]
pub(crate) struct StatusArgs {
    /// Data folder of the embedded cluster
    #[arg(long, value_name = "DIR", env = env::DATA_DIR, hide_env_values = true)]
    data_dir: Option<PathBuf>,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: TableFormat,
}

pub(crate) async fn status(args: StatusArgs) -> Result<ExitCode> {
    let layout = embedded::layout(args.data_dir.as_ref())?;
    let running = daemon::find(&layout).await?.running();
    let state = match &running {
        Some(record) => ask(record).await,
        None => None,
    };
    let seen = running.as_ref().zip(Some(state.as_ref()));
    let ephemeral = running.as_ref().is_some_and(|record| record.ephemeral);
    let measured = layout.clone();
    let usage = tokio::task::spawn_blocking(move || DiskUsage::measure(&measured, ephemeral)).await;
    let usage = usage.map_err(|error| Error::from_source(Kind::Failed, &error))?;
    match args.output {
        TableFormat::Table => {
            describe(&layout, seen);
            usage.describe();
        }
        TableFormat::Json => output::value(Format::Json, &value(&layout, seen, &usage))?,
        TableFormat::Yaml => output::value(Format::Yaml, &value(&layout, seen, &usage))?,
    }
    Ok(if state.is_some() {
        ExitCode::SUCCESS
    } else {
        exit_code(Kind::Cluster)
    })
}

/// The active runs; `None` if the cluster does not respond.
async fn ask(record: &Record) -> Option<Work> {
    let cluster = Cluster::from_kubeconfig(Some(&record.kubeconfig), None).await;
    let cluster = cluster.ok()?;
    cluster.proxy().get_bytes("/readyz", &[]).await.ok()?;
    let (found, limits) = futures::join!(runs::list(&cluster, None), Limits::of(&cluster));
    let found = found.unwrap_or_default();
    let named = |states: &[RunState]| -> Vec<String> {
        let found = found.iter().filter(|run| states.contains(&run.state));
        found.map(|run| run.run.name.to_string()).collect()
    };
    Some(Work {
        runs: named(&[RunState::Pending, RunState::Running]),
        schedules: named(&[RunState::Scheduled]),
        paused: named(&[RunState::Paused]),
        limits,
    })
}

/// The enforcement of limits of CPU and memory on this machine.
struct Limits {
    are_enforced: bool,
    /// The reason why the limits are not enforced, and the remedy.
    reason: Option<String>,
}

impl Limits {
    /// Returns the report of the nodes, which are all on this machine; `None` without nodes.
    async fn of(cluster: &Cluster) -> Option<Self> {
        let nodes = cluster.nodes().list().await.ok()?.items;
        let reported = |node: &Item<Node>| node.condition(LIMITS_ENFORCED).ok().flatten();
        let found = nodes.iter().find_map(reported)?;
        let are_enforced = found.holds();
        Some(Self {
            are_enforced,
            reason: found.message.filter(|_| !are_enforced),
        })
    }

    fn value(&self) -> serde_json::Value {
        json!({"enforced": self.are_enforced, "reason": self.reason})
    }
}

/// The names of active runs, and of schedules.
struct Work {
    runs: Vec<String>,
    schedules: Vec<String>,
    paused: Vec<String>,
    limits: Option<Limits>,
}

/// A running cluster, and its work if it responds.
type Seen<'a> = Option<(&'a Record, Option<&'a Work>)>;

fn value(layout: &Layout, seen: Seen<'_>, usage: &DiskUsage) -> serde_json::Value {
    let work = seen.and_then(|(_, work)| work);
    let names = |of: fn(&Work) -> &Vec<String>| work.map(of).cloned().unwrap_or_default();
    let mut value = json!({
        "running": seen.is_some(),
        "ready": work.is_some(),
        "folder": layout.dir(),
        "log": layout.log(),
        "code": usage.code(),
        "keptLogs": usage.logs(),
    });
    if let Some((record, _)) = seen {
        let lifetime = Lifetime::of(record, layout);
        value["runs"] = json!(names(|work| &work.runs));
        value["schedules"] = json!(names(|work| &work.schedules));
        value["pausedSchedules"] = json!(names(|work| &work.paused));
        let limits = work.and_then(|work| work.limits.as_ref());
        value["limits"] = json!(limits.map(Limits::value));
        value["lifetime"] = json!(lifetime.as_str());
        value["until"] = json!(hints::complete(lifetime.until()));
        value["url"] = json!(record.url);
        value["kubeconfig"] = json!(record.kubeconfig);
        value["pid"] = json!(record.pid);
        value["started"] = json!(record.started);
        value["ephemeral"] = json!(record.ephemeral);
        value["lasting"] = json!(record.is_lasting(layout));
        value["version"] = json!(record.version);
    }
    value
}

fn describe(layout: &Layout, seen: Seen<'_>) {
    let Some((record, work)) = seen else {
        ui::line("The embedded cluster is not running.");
        ui::line(format!("  folder      {}", layout.dir().display()));
        return;
    };
    let state = match work {
        Some(_) => "is running",
        None => "runs, but does not answer",
    };
    let kept = if record.ephemeral {
        "in memory"
    } else {
        "on disk"
    };
    ui::line(format!("The embedded cluster {state}: {}", record.url));
    ui::line(format!(
        "  since       {} (process {})",
        age(record),
        record.pid
    ));
    let until = hints::complete(Lifetime::of(record, layout).until());
    ui::line(format!("  until       {until}"));
    if let Some(work) = work {
        describe_work(work);
    }
    ui::line(format!(
        "  folder      {} (objects {kept})",
        layout.dir().display()
    ));
    ui::line(format!("  kubeconfig  {}", record.kubeconfig.display()));
    ui::line(format!("  log         {}", layout.log().display()));
}

fn describe_work(work: &Work) {
    ui::line(match &work.runs[..] {
        [] => "  runs        none in progress".to_owned(),
        runs => format!("  runs        {}", runs.join(", ")),
    });
    for (state, names) in [("active", &work.schedules), ("paused", &work.paused)] {
        if !names.is_empty() {
            let count = names.len();
            ui::line(format!(
                "  schedules   {count} {state}: {}",
                names.join(", ")
            ));
        }
    }
    let limits = work.limits.as_ref();
    if let Some(reason) = limits.and_then(|limits| limits.reason.as_ref()) {
        ui::line(format!(
            "  limits      of CPU and memory are not enforced: {reason}"
        ));
    }
}
