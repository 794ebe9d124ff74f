//! `longshore note`: sets, removes and prints the note of a run.

use std::process::ExitCode;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use longshore::{
    client::Cluster,
    launcher::{runs, tag::check_note, terminal_text::escaped},
};

use crate::{
    complete, config,
    error::{Error, Result},
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
    /// Run: its name, a prefix of it, or `last`
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    run: String,
    /// Text of the note
    text: Option<String>,
    /// Remove the note
    #[arg(long, conflicts_with = "text")]
    remove: bool,
    /// Namespace [default: that of the context]
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
    let found = runs::find(cluster, namespace, &args.run).await?;
    if args.text.is_some() || args.remove {
        return Ok(runs::set_note(cluster, &found.run, args.text.as_deref()).await?);
    }
    match &found.note {
        Some(note) => note.lines().for_each(|line| ui::line(escaped(line))),
        None => ui::note(format!("The run {} has no note.", found.run.name)),
    }
    Ok(())
}
