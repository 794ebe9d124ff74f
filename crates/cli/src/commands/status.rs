//! `longshore status`: whether the embedded cluster runs, and where.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use longshore::client::Cluster;
use longshore_embedded::{
    Layout,
    daemon::{self, Record},
};
use serde_json::json;

use crate::{
    embedded, env,
    error::{Kind, Result, exit_code},
    output::{self, Format},
    ui,
};

/// Say whether the embedded cluster runs, and where
///
/// The exit code is 0 when it runs and answers, 3 when not.
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
    let ready = match &running {
        Some(record) => is_ready(record).await,
        None => false,
    };
    match args.output {
        StatusFormat::Table => describe(&layout, running.as_ref(), ready),
        StatusFormat::Json => {
            output::value(Format::Json, &value(&layout, running.as_ref(), ready))?
        }
        StatusFormat::Yaml => {
            output::value(Format::Yaml, &value(&layout, running.as_ref(), ready))?
        }
    }
    Ok(if ready {
        ExitCode::SUCCESS
    } else {
        exit_code(Kind::Cluster)
    })
}

/// Whether the cluster answers, as any client would find.
async fn is_ready(record: &Record) -> bool {
    match Cluster::from_kubeconfig(Some(&record.kubeconfig), None).await {
        Ok(cluster) => cluster.proxy().get_bytes("/readyz", &[]).await.is_ok(),
        Err(_) => false,
    }
}

fn value(layout: &Layout, running: Option<&Record>, ready: bool) -> serde_json::Value {
    let mut value = json!({
        "running": running.is_some(),
        "ready": ready,
        "folder": layout.dir(),
        "log": layout.log(),
    });
    if let Some(record) = running {
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

fn describe(layout: &Layout, running: Option<&Record>, ready: bool) {
    let Some(record) = running else {
        ui::line("The embedded cluster is not running.");
        ui::line(format!("  folder      {}", layout.dir().display()));
        return;
    };
    let state = if ready {
        "is running"
    } else {
        "runs, but does not answer"
    };
    let age = jiff::Timestamp::now().as_second() - record.started.as_second();
    let kept = if record.ephemeral {
        "in memory"
    } else {
        "on disk"
    };
    let until = if record.is_lasting(layout) {
        "`longshore down`"
    } else {
        "the last command that uses it"
    };
    ui::line(format!("The embedded cluster {state}: {}", record.url));
    ui::line(format!(
        "  since       {} (process {})",
        ui::span(age),
        record.pid
    ));
    ui::line(format!("  until       {until}"));
    ui::line(format!(
        "  folder      {} (objects {kept})",
        layout.dir().display()
    ));
    ui::line(format!("  kubeconfig  {}", record.kubeconfig.display()));
    ui::line(format!("  log         {}", layout.log().display()));
}
