//! `longshore note`: sets, removes and prints the note of a run.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    client::Cluster,
    launcher::{RunSummary, runs, tag::check_note, terminal_text::escaped},
};

use crate::{
    complete, config,
    error::{Error, Result},
    owners::{self, Access, OwnerArgs},
    several_runs,
    target::{self, ClusterArgs},
    ui,
};

/// Set, remove or print the note of a run
///
/// With TEXT, replaces the note; without, prints it. The note is an annotation of the run's
/// Jobs: everyone who can read the run can read it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  longshore note last \"diverged after epoch 3\"
  longshore note digits-x7k2p
  longshore note digits-x7k2p --remove")]
pub(crate) struct NoteArgs {
    /// Run: its name, a prefix of it, `last`, or a pattern; several are separated by commas
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    run: String,
    /// Text of the note
    text: Option<String>,
    /// Remove the note
    #[arg(long, conflicts_with = "text")]
    remove: bool,
    #[command(flatten)]
    owners: OwnerArgs,
    /// Namespace [default: the namespace of the context]
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn note(args: NoteArgs) -> Result<ExitCode> {
    if let Some(text) = &args.text {
        check_note(text).map_err(|rule| Error::usage(format!("invalid note: {rule}")))?;
    }
    let target = args.cluster.open(&config::here()?).await?;
    let result = change(target.cluster(), &args).await;
    target.close().await?;
    result.map(|()| ExitCode::SUCCESS)
}

async fn change(cluster: &Cluster, args: &NoteArgs) -> Result<()> {
    let namespace = target::namespace(args.namespace.as_deref(), cluster);
    let changes = args.text.is_some() || args.remove;
    let access = match changes {
        true => args.owners.act("note on"),
        false => Access::Read,
    };
    let all = runs::list(cluster, Some(namespace)).await?;
    let words = [args.run.clone()];
    let chosen = several_runs::choose(cluster, &all, namespace, &words, access).await?;
    if !changes {
        chosen.iter().for_each(|run| print(run, chosen.len()));
        return Ok(());
    }
    owners::allow(cluster, &chosen, access).await?;
    let set = several_runs::each(&chosen, |found| async {
        let set = runs::set_note(cluster, &found.run, args.text.as_deref());
        set.await.map_err(Error::from)
    });
    set.await.1
}

/// Prints the note of a run, one of several.
fn print(run: &RunSummary, count: usize) {
    let name = &run.run.name;
    match &run.note {
        Some(note) => {
            if count > 1 {
                ui::line(format!("{name}:"));
            }
            note.lines().for_each(|line| ui::line(escaped(line)));
        }
        None => ui::note(format!("The run {name} has no note.")),
    }
}
