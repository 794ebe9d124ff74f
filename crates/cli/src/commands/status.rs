//! `longshore status`: whether the embedded cluster runs, where, until when, and how much
//! room code takes.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::{RunState, runs},
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
    output::{self, Format},
    target::{Lifetime, age},
    ui,
    usage::CodeUsage,
};

/// Show whether the embedded cluster runs, where, and until when
///
/// Names the runs in progress, and tells how much room bundles of code and volumes of
/// pods take. The exit code is 0 when it runs and answers, 3 when
/// not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore status
  longshore status --output json")]
pub(crate) struct StatusArgs {
    /// The folder of the cluster
    #[arg(long, value_name = "DIR", env = env::DATA_DIR, hide_env_values = true)]
    data_dir: Option<PathBuf>,
    /// How to write it
    #[arg(long, short, value_enum, default_value_t)]
    output: StatusFormat,
}

/// The formats that make sense for a single thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum StatusFormat {
    /// Lines for people.
    #[default]
    Table,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

pub(crate) async fn status(args: StatusArgs) -> Result<ExitCode> {
    let layout = embedded::layout(args.data_dir.as_ref())?;
    let running = daemon::find(&layout).await?.running();
    let state = match &running {
        Some(record) => ask(record).await,
        None => None,
    };
    let seen = running.as_ref().zip(Some(state.as_deref()));
    let ephemeral = running.as_ref().is_some_and(|record| record.ephemeral);
    let measured = layout.clone();
    let usage = tokio::task::spawn_blocking(move || CodeUsage::measure(&measured, ephemeral)).await;
    let usage = usage.map_err(|error| Error::from_source(Kind::Failed, &error))?;
    match args.output {
        StatusFormat::Table => {
            describe(&layout, seen);
            usage.describe();
        }
        StatusFormat::Json => output::value(Format::Json, &value(&layout, seen, &usage))?,
        StatusFormat::Yaml => output::value(Format::Yaml, &value(&layout, seen, &usage))?,
    }
    Ok(if state.is_some() {
        ExitCode::SUCCESS
    } else {
        exit_code(Kind::Cluster)
    })
}

/// The runs in progress; `None` if the cluster does not answer, as any client
/// would find.
async fn ask(record: &Record) -> Option<Vec<String>> {
    let cluster = Cluster::from_kubeconfig(Some(&record.kubeconfig), None).await;
    let cluster = cluster.ok()?;
    cluster.proxy().get_bytes("/readyz", &[]).await.ok()?;
    let found = runs::list(&cluster, None).await.unwrap_or_default();
    let goes_on = found
        .iter()
        .filter(|run| matches!(run.state, RunState::Pending | RunState::Running));
    Some(goes_on.map(|run| run.run.name.to_string()).collect())
}

/// A running cluster, and the runs in progress if it answers.
type Seen<'a> = Option<(&'a Record, Option<&'a [String]>)>;

fn value(layout: &Layout, seen: Seen<'_>, usage: &CodeUsage) -> serde_json::Value {
    let runs = seen.and_then(|(_, runs)| runs);
    let mut value = json!({
        "running": seen.is_some(),
        "ready": runs.is_some(),
        "folder": layout.dir(),
        "log": layout.log(),
        "code": usage.value(),
    });
    if let Some((record, _)) = seen {
        let lifetime = Lifetime::of(record, layout);
        value["runs"] = json!(runs.unwrap_or_default());
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
    let Some((record, runs)) = seen else {
        ui::line("The embedded cluster is not running.");
        ui::line(format!("  folder      {}", layout.dir().display()));
        return;
    };
    let state = match runs {
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
    match runs {
        Some([]) => ui::line("  runs        none in progress"),
        Some(runs) => ui::line(format!("  runs        {}", runs.join(", "))),
        None => {}
    }
    ui::line(format!(
        "  folder      {} (objects {kept})",
        layout.dir().display()
    ));
    ui::line(format!("  kubeconfig  {}", record.kubeconfig.display()));
    ui::line(format!("  log         {}", layout.log().display()));
}
