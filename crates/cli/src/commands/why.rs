//! `longshore why`: one cause and one remedy for what a run does.

use std::process::ExitCode;

use clap::Args;
use longshore::{
    client::Cluster,
    launcher::{
        runs,
        why::{self, State, Why},
    },
};

use crate::{
    config,
    error::{Error, Kind, Result, exit_code},
    output::{self, Format},
    target::ClusterArgs,
    ui,
};

/// Say why a run waits or failed, and what to do about it
///
/// Asks for the run's Jobs and pods, their events, and where that is permitted
/// for nodes and quotas, and tells one cause and one remedy. Of a run that goes
/// on it tells how far it is. The exit code is 0 when nothing is wrong or the
/// cause was found, 1 when it was not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore why digits-x7k2p
  longshore why digits-x7k2p --output json
  longshore why digits-x7k2p --context production --namespace team")]
pub(crate) struct WhyArgs {
    /// The run's name
    run: String,
    /// The namespace; the context's own without it
    #[arg(long, short)]
    namespace: Option<String>,
    /// How to write it
    #[arg(long, short, value_enum, default_value_t)]
    output: WhyFormat,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// The formats that make sense for a single thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum WhyFormat {
    /// Lines for people.
    #[default]
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

pub(crate) async fn why(args: WhyArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = ask(target.cluster(), &args).await;
    target.close().await?;
    result
}

async fn ask(cluster: &Cluster, args: &WhyArgs) -> Result<ExitCode> {
    let namespace = args
        .namespace
        .as_deref()
        .unwrap_or_else(|| cluster.default_namespace());
    let found = runs::find_made(cluster, namespace, &args.run).await?;
    let answer = why::why(cluster, &found.run).await.map_err(Error::from)?;
    match args.output {
        WhyFormat::Text => show(&answer),
        WhyFormat::Json => output::value(Format::Json, &answer)?,
        WhyFormat::Yaml => output::value(Format::Yaml, &answer)?,
    }
    Ok(match answer.is_explained() {
        true => ExitCode::SUCCESS,
        false => exit_code(Kind::Failed),
    })
}

fn show(why: &Why) {
    let paint = ui::Paint::stdout();
    let head = match why.state {
        State::Succeeded => paint.green("succeeded"),
        State::Pending => "pending".to_owned(),
        State::Running => "running".to_owned(),
        State::Waiting => paint.yellow("waiting"),
        State::Cancelled => "cancelled".to_owned(),
        State::NotStarted => paint.red("not started"),
        _ => paint.red("failed"),
    };
    ui::line(format!("{} {}: {}", why.run, head, why.summary));
    if let Some(known) = &why.explanation {
        ui::line(format!("{} {}", paint.cyan("remedy:"), known.remedy));
        for fact in &known.evidence {
            ui::line(format!("  seen: {fact}"));
        }
    }
    for unseen in &why.unseen {
        ui::note(format!("not seen: {unseen}"));
    }
}
