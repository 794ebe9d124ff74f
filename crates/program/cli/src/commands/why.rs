//! `longshore why`: explains why runs are pending or failed.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    client::Cluster,
    launcher::{
        RunSummary, runs,
        terminal_text::escaped,
        why::{self, State, Why},
    },
};

use crate::{
    complete, config,
    error::{Error, Kind, Result, exit_code},
    hints,
    output::TextFormat,
    owners::Access,
    several_runs,
    target::{self, ClusterArgs},
    ui,
};

/// Explain why runs are pending or failed
///
/// Reads the run's Jobs and pods, their events and, where permitted, nodes and quotas,
/// and prints one cause and one remedy; for an active run, its progress. Exits with 0
/// if nothing is wrong or the cause was found, 1 if it was not. RUN is the name of a
/// run, a prefix of it that no other of your runs has, `last` for your newest run, or a
/// quoted pattern with * and ?. With several names or a pattern, JSON and YAML are a list.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore why last
  longshore why digits-x7k2p --output json
  longshore why 'sweep-*'
  longshore why digits-x7k2p --context production --namespace team")]
pub(crate) struct WhyArgs {
    /// Runs: names, prefixes, `last`, or patterns such as 'sweep-*'
    #[arg(value_name = "RUN", required = true, add = ArgValueCompleter::new(complete::runs))]
    runs: Vec<String>,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    /// Output format
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: TextFormat,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn why(args: WhyArgs) -> Result<ExitCode> {
    let target = args.cluster.open(&config::here()?).await?;
    let result = ask(target.cluster(), &args).await;
    target.close().await?;
    result
}

async fn ask(cluster: &Cluster, args: &WhyArgs) -> Result<ExitCode> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let all = runs::list(cluster, Some(namespace)).await?;
    let words = &args.runs;
    let chosen = several_runs::choose_made(cluster, &all, namespace, words, Access::Read).await?;
    let (answers, result) = several_runs::each(&chosen, |run| explain(cluster, run)).await;
    match (&answers[..], several_runs::are_several(words)) {
        ([answer], false) => args.output.print(answer, || show(answer))?,
        ([], false) => {}
        _ => args.output.print(&answers, || show_all(&answers))?,
    }
    result?;
    Ok(match answers.iter().all(Why::is_explained) {
        true => ExitCode::SUCCESS,
        false => exit_code(Kind::Failed),
    })
}

async fn explain(cluster: &Cluster, found: &RunSummary) -> Result<Why> {
    let mut answer = why::why(cluster, &found.run).await.map_err(Error::from)?;
    answer
        .explanation
        .iter_mut()
        .for_each(hints::in_explanation);
    Ok(answer)
}

fn show_all(answers: &[Why]) {
    for (n, answer) in answers.iter().enumerate() {
        if n > 0 {
            ui::line("");
        }
        show(answer);
    }
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
    ui::line(format!("{} {}: {}", why.run, head, escaped(&why.summary)));
    if let Some(known) = &why.explanation {
        ui::line(format!(
            "{} {}",
            paint.cyan("remedy:"),
            escaped(&known.remedy)
        ));
        for fact in &known.evidence {
            ui::line(format!("  seen: {}", escaped(fact)));
        }
    }
    for note in &why.notes {
        ui::line(format!("{} {}", paint.yellow("note:"), escaped(note)));
    }
    for unseen in &why.unseen {
        ui::note(format!("not seen: {unseen}"));
    }
}
